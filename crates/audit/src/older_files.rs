//! The files that a log leaves behind: their names, and when they are compressed and removed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Between the name and the ending of an older file: when it was set aside.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";
/// The further ending of one that is compressed.
const COMPRESSED: &str = ".gz";
/// The last ending of one that is being compressed; nobody else reads it.
const PARTIAL: &str = ".part";

/// When a file is set aside, and what becomes of older ones. Zero is without limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotation {
    /// Bytes of a file.
    pub max_bytes: u64,
    /// Age of an older file.
    pub max_age: Duration,
    /// Number of older files.
    pub max_files: usize,
    /// Whether older files are compressed.
    pub compresses: bool,
}

/// The older files of a log. Clones tidy up one after the other.
#[derive(Debug, Clone)]
pub(crate) struct OlderFiles {
    path: PathBuf,
    rotation: Rotation,
    turn: Arc<Mutex<()>>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Older {
    set_aside: Timestamp,
    is_compressed: bool,
    path: PathBuf,
}

impl OlderFiles {
    pub(crate) fn of(path: &Path, rotation: Rotation) -> Self {
        Self { path: path.to_owned(), rotation, turn: Arc::default() }
    }

    /// The name of one that is set aside now.
    pub(crate) fn name_at(&self, now: SystemTime) -> PathBuf {
        let (name, ending) = self.name_and_ending();
        let stamp = Timestamp::try_from(now).unwrap_or_default().strftime(STAMP).to_string();
        self.path.with_file_name(format!("{name}-{stamp}{ending}"))
    }

    /// Removes those that are too many or too old, and compresses the others if that is wanted.
    ///
    /// # Errors
    /// When a file or the folder cannot be used.
    pub(crate) fn tidy(&self, now: SystemTime) -> io::Result<()> {
        let _turn = self.turn.lock();
        let Rotation { max_age, max_files, compresses, .. } = self.rotation;
        let is_old = |time: Timestamp| {
            let age = now.duration_since(SystemTime::from(time)).unwrap_or_default();
            !max_age.is_zero() && age > max_age
        };
        for (place, older) in self.all()?.into_iter().enumerate() {
            if (max_files > 0 && place >= max_files) || is_old(older.set_aside) {
                std::fs::remove_file(older.path)?;
            } else if compresses && !older.is_compressed {
                compress(&older.path)?;
            }
        }
        Ok(())
    }

    fn name_and_ending(&self) -> (String, String) {
        let text =
            |part: Option<&std::ffi::OsStr>| part.map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
        let ending = text(self.path.extension());
        (text(self.path.file_stem()), if ending.is_empty() { ending } else { format!(".{ending}") })
    }

    /// All of them, newest first.
    fn all(&self) -> io::Result<Vec<Older>> {
        let (name, ending) = self.name_and_ending();
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut all = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let file = path.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
            let plain = file.strip_suffix(COMPRESSED);
            let stamp =
                plain.unwrap_or(&file).strip_prefix(&format!("{name}-")).and_then(|rest| rest.strip_suffix(&ending));
            let time =
                stamp.and_then(|stamp| Timestamp::strptime("%Y-%m-%dT%H-%M-%S%.f%z", format!("{stamp}+0000")).ok());
            all.extend(time.map(|set_aside| Older { set_aside, is_compressed: plain.is_some(), path }));
        }
        all.sort_unstable_by(|one, other| other.cmp(one));
        Ok(all)
    }
}

/// Puts a compressed file in the place of another. Whoever is interrupted leaves the other.
fn compress(path: &Path) -> io::Result<()> {
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (done, partial) = (with(COMPRESSED), with(&format!("{COMPRESSED}{PARTIAL}")));
    let out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
    let mut encoder = GzEncoder::new(out, Compression::default());
    io::copy(&mut File::open(path)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    std::fs::rename(&partial, &done)?;
    std::fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn older_files_are_compressed_and_count_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let rotation = Rotation { max_files: 2, compresses: true, ..Rotation::default() };
        let older = OlderFiles::of(&folder.path().join("audit.log"), rotation);
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        for second in 0..3 {
            std::fs::write(older.name_at(at(second)), format!("line {second}\n")).expect("a file");
            older.tidy(at(second)).expect("it is tidy");
        }
        let names: Vec<String> =
            older.all().expect("a folder").into_iter().map(|own| own.path.display().to_string()).collect();
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "{names:?}");
        let [newest, _] = names.as_slice() else { panic!("two files: {names:?}") };
        assert!(newest.ends_with("/audit-2023-11-14T22-13-22.000.log.gz"), "{newest}");
        let mut text = String::new();
        let file = File::open(newest).expect("the file");
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is whole");
        assert_eq!(text, "line 2\n");
    }
}
