//! The file that events are appended to, a line each (`--audit-log-*`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::older_files::{OlderFiles, Rotation};

/// The path that stands for the standard output.
const STDOUT: &str = "-";

/// Where lines go.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    max_bytes: u64,
    older: OlderFiles,
    /// Nothing before the first line and after a failure.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    /// A pipe waits for whoever reads it.
    is_on_disk: bool,
}

impl LogFile {
    /// A file that is opened with the first line.
    #[must_use]
    pub fn new(path: &Path, rotation: Rotation) -> Self {
        let older = OlderFiles::of(path, rotation);
        Self { path: path.to_owned(), max_bytes: rotation.max_bytes, older, open: None }
    }

    /// The files that it leaves behind.
    pub(crate) fn older(&self) -> OlderFiles {
        self.older.clone()
    }

    /// Appends lines, each with its end. Gives whether a file was set aside, so that there may be some to tidy up.
    ///
    /// # Errors
    /// When they could not all be written; the file is opened anew then.
    pub(crate) fn append(&mut self, lines: &[u8], now: SystemTime) -> io::Result<bool> {
        if self.path == Path::new(STDOUT) {
            let mut out = io::stdout().lock();
            out.write_all(lines)?;
            out.flush()?;
            return Ok(false);
        }
        let sets_aside = self.length()?.is_some_and(|length| self.is_full(length, lines));
        if sets_aside {
            self.open = None;
            std::fs::rename(&self.path, self.older.name_at(now))?;
        }
        self.write(lines).map(|()| sets_aside)
    }

    /// Appends lines where nothing but the write is to be done, and that is to a file on a disk; otherwise does nothing.
    pub(crate) fn append_in_place(&mut self, lines: &[u8]) -> Option<io::Result<()>> {
        let open = self.open.as_ref()?;
        (open.is_on_disk && !self.is_full(open.length, lines)).then(|| self.write(lines))
    }

    /// Whether the file cannot take the lines, too.
    const fn is_full(&self, length: u64, lines: &[u8]) -> bool {
        length > 0 && self.max_bytes > 0 && length.saturating_add(lines.len() as u64) > self.max_bytes
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            None => self.open.insert(open(&self.path)?),
        };
        let written = open.file.write_all(lines);
        open.length += lines.len() as u64;
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
        Ok(self.open.as_ref().map(|open| open.length))
    }
}

/// Opens for appending.
fn open(path: &Path) -> io::Result<Open> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let known = file.metadata()?;
    Ok(Open { file, length: known.len(), is_on_disk: known.is_file() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
    }

    #[test]
    fn files_are_set_aside_and_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deeper").join("audit.log");
        let rotation =
            Rotation { max_bytes: 10, max_age: Duration::from_secs(100), max_files: 2, ..Rotation::default() };
        let mut log = LogFile::new(&path, rotation);
        let names = || {
            let entries = std::fs::read_dir(path.parent().expect("a folder")).expect("it is there");
            let mut names: Vec<_> =
                entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let mut append = |line: &[u8], second| {
            let sets_aside = log.append(line, at(second)).expect("it is written");
            if sets_aside {
                log.older().tidy(at(second)).expect("it is tidy");
            }
            sets_aside
        };
        for (second, expected) in [(0, false), (1, true), (2, true), (3, true), (4, true), (6, true), (8, true)] {
            assert_eq!(append(b"12345\n", second), expected, "{second}");
        }
        // Each file has room for one line; the newest and two older ones stay.
        assert_eq!(names(), ["audit-2023-11-14T22-13-26.000.log", "audit-2023-11-14T22-13-28.000.log", "audit.log"]);
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "12345\n");
        append(b"6789\n", 500);
        assert_eq!(names(), ["audit-2023-11-14T22-21-40.000.log", "audit.log"], "what is too old goes, too");
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn in_place_there_is_only_the_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        let mut log = LogFile::new(&path, Rotation { max_bytes: 10, ..Rotation::default() });
        assert!(log.append_in_place(b"1234\n").is_none(), "it is not open yet");
        log.append(b"1234\n", at(0)).expect("it is written");
        log.append_in_place(b"5678\n").expect("it has room").expect("it is written");
        assert!(log.append_in_place(b"9\n").is_none(), "it would have to be set aside");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "1234\n5678\n");
        let mut device = LogFile::new(Path::new("/dev/null"), Rotation::default());
        device.append(b"1234\n", at(0)).expect("it takes everything");
        assert!(device.append_in_place(b"1234\n").is_none(), "nobody knows how long it takes");
    }

    #[test]
    fn a_file_that_was_there_goes_on() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        std::fs::write(&path, "old\n").expect("a file");
        let rotation = Rotation::default();
        LogFile::new(&path, rotation).append(b"new\n", at(0)).expect("it is written");
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "old\nnew\n");
        let blocked = LogFile::new(&path.join("below"), rotation).append(b"x\n", at(0));
        assert!(blocked.is_err(), "a file is no folder");
    }
}
