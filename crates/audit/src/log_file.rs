//! The file that events are appended to, a line each (`--audit-log-*`), and the older files that it leaves behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Between the name and the ending of an older file: when it was set aside.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";
/// The path that stands for the standard output.
const STDOUT: &str = "-";

/// When a file is set aside, and when older ones go. Zero is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// Bytes of a file.
    pub max_bytes: u64,
    /// Age of an older file.
    pub max_age: Duration,
    /// Number of older files.
    pub max_files: usize,
}

/// Where lines go.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    rotation: Rotation,
    /// The file and how long it is; nothing before the first line and after a failure.
    open: Option<(File, u64)>,
}

impl LogFile {
    /// A file that is opened with the first line.
    #[must_use]
    pub fn new(path: &Path, rotation: Rotation) -> Self {
        Self { path: path.to_owned(), rotation, open: None }
    }

    /// Appends lines, each with its end.
    ///
    /// # Errors
    /// When they could not all be written; the file is opened anew then.
    pub fn append(&mut self, lines: &[u8], now: SystemTime) -> io::Result<()> {
        if self.path == Path::new(STDOUT) {
            let mut out = io::stdout().lock();
            out.write_all(lines)?;
            return out.flush();
        }
        let added = lines.len() as u64;
        let limit = self.rotation.max_bytes;
        if limit > 0 && self.length()?.is_some_and(|length| length > 0 && length.saturating_add(added) > limit) {
            self.set_aside(now)?;
        }
        let (file, length) = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(open(&self.path)?),
        };
        let written = file.write_all(lines);
        *length += added;
        if written.is_err() {
            self.open = None;
        }
        written
    }

    /// How long the file is, if it is there.
    fn length(&mut self) -> io::Result<Option<u64>> {
        if self.open.is_none() && self.path.exists() {
            self.open = Some(open(&self.path)?);
        }
        Ok(self.open.as_ref().map(|(_, length)| *length))
    }

    fn set_aside(&mut self, now: SystemTime) -> io::Result<()> {
        self.open = None;
        std::fs::rename(&self.path, self.older(now))?;
        // Nobody waits for what is only tidying up.
        if let Err(error) = self.forget_oldest(now) {
            tracing::warn!(path = %self.path.display(), %error, "Older audit logs could not be removed");
        }
        Ok(())
    }

    fn name_and_ending(&self) -> (String, String) {
        let text =
            |part: Option<&std::ffi::OsStr>| part.map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
        let ending = text(self.path.extension());
        (text(self.path.file_stem()), if ending.is_empty() { ending } else { format!(".{ending}") })
    }

    fn older(&self, now: SystemTime) -> PathBuf {
        let (name, ending) = self.name_and_ending();
        let stamp = Timestamp::try_from(now).unwrap_or_default().strftime(STAMP).to_string();
        self.path.with_file_name(format!("{name}-{stamp}{ending}"))
    }

    /// The older files, newest first, with when they were set aside.
    fn all_older(&self) -> io::Result<Vec<(Timestamp, PathBuf)>> {
        let (name, ending) = self.name_and_ending();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut older = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let file = path.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
            let stamp = file.strip_prefix(&format!("{name}-")).and_then(|rest| rest.strip_suffix(&ending));
            let time =
                stamp.and_then(|stamp| Timestamp::strptime("%Y-%m-%dT%H-%M-%S%.f%z", format!("{stamp}+0000")).ok());
            older.extend(time.map(|time| (time, path)));
        }
        older.sort_unstable_by(|one, other| other.cmp(one));
        Ok(older)
    }

    fn forget_oldest(&self, now: SystemTime) -> io::Result<()> {
        let Rotation { max_age, max_files, .. } = self.rotation;
        let is_old = |time: &Timestamp| {
            let age = now.duration_since(SystemTime::from(*time)).unwrap_or_default();
            !max_age.is_zero() && age > max_age
        };
        for (place, (time, path)) in self.all_older()?.into_iter().enumerate() {
            if (max_files > 0 && place >= max_files) || is_old(&time) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }
}

/// Opens for appending; tells how long the file is.
fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
    }

    #[test]
    fn files_are_set_aside_and_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deeper").join("audit.log");
        let rotation = Rotation { max_bytes: 10, max_age: Duration::from_secs(100), max_files: 2 };
        let mut log = LogFile::new(&path, rotation);
        let names = || {
            let entries = std::fs::read_dir(path.parent().expect("a folder")).expect("it is there");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        for (second, expected) in [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3), (6, 3), (8, 3)] {
            log.append(b"12345\n", at(second)).expect("it is written");
            let _ = expected;
        }
        // Each file has room for one line; the newest and two older ones stay.
        assert_eq!(names(), ["audit-2023-11-14T22-13-26.000.log", "audit-2023-11-14T22-13-28.000.log", "audit.log"]);
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "12345\n");
        log.append(b"6789\n", at(500)).expect("it is written");
        assert_eq!(names(), ["audit-2023-11-14T22-21-40.000.log", "audit.log"], "what is too old goes, too");
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_was_there_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "old\n").expect("a file");
        let rotation = Rotation { max_bytes: 0, max_age: Duration::ZERO, max_files: 0 };
        LogFile::new(&path, rotation).append(b"new\n", at(0)).expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "old\nnew\n");
        let blocked = LogFile::new(&path.join("below"), rotation).append(b"x\n", at(0));
        assert!(blocked.is_err(), "a file is no folder");
    }
}
