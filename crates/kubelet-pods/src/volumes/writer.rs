//! Files that change all at once: the content lies in a directory of its own, and one symbolic link leads there.
//!
//! A container sees either all old or all new files. Names at the top are links through `..data`, so they need not
//! change when the content does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, symlink,
};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use api_machinery::time::Time;
use base::Rng;

use super::file_error::FileError;

/// The link to the current content, and its name while it is made.
const DATA: &str = "..data";
const DATA_NEW: &str = "..data_tmp";
/// Bounds of one element and of a whole path.
const MAX_ELEMENT: usize = 255;
const MAX_PATH: usize = 4096;

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub bytes: Vec<u8>,
    /// Permission bits, exact whatever the umask.
    pub mode: u32,
    /// The owner, where it is not this process.
    pub owner: Option<u32>,
}

/// Files by relative path.
pub(super) type Payload = BTreeMap<String, Content>;

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("invalid path: {0}")]
    Path(String),
    #[error(transparent)]
    File(#[from] FileError),
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The files were as wanted.
    Unchanged,
    /// New content is in place.
    Changed,
}

/// Brings `payload` into `target`. `prepare` gets the new directory before it is switched to, to set its owner.
pub(super) fn write(
    target: &Path,
    payload: &Payload,
    now: SystemTime,
    rng: &Rng,
    prepare: &dyn Fn(&Path) -> io::Result<()>,
) -> Result<Written, WriteError> {
    payload.keys().try_for_each(|path| check_path(path))?;
    let (data, old) = (target.join(DATA), current(target));
    if let Some(old) = &old
        && unchanged(&target.join(old), payload)
    {
        link_names(target, payload)?;
        return Ok(Written::Unchanged);
    }
    let name = fresh_name(now, rng);
    let new = target.join(&name);
    let filled = fill(&new, payload).and_then(|()| prepare(&new).map_err(of("preparing", &new)));
    if let Err(error) = filled {
        let _ = sys::fs::remove_tree(&new);
        return Err(error);
    }
    let link = target.join(DATA_NEW);
    let _ = fs::remove_file(&link);
    symlink(&name, &link).map_err(of("linking", &link))?;
    fs::rename(&link, &data).map_err(of("switching", &data))?;
    link_names(target, payload)?;
    unlink_vanished(target, payload);
    if let Some(old) = old {
        let _ = sys::fs::remove_tree(&target.join(old));
    }
    Ok(Written::Changed)
}

/// What the link leads to: a name in the same directory, as it was made.
fn current(target: &Path) -> Option<PathBuf> {
    let to = fs::read_link(target.join(DATA)).ok()?;
    let mut parts = to.components();
    let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    is_name.then_some(to)
}

fn of<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> WriteError + 'a {
    move |source| WriteError::File(FileError::of(action, path)(source))
}

/// `..2006_01_02_15_04_05.1234567890`
fn fresh_name(now: SystemTime, rng: &Rng) -> String {
    let stamp = Time::from(now).to_string();
    let stamp: String = stamp.chars().take(19).map(|c| if c.is_ascii_digit() { c } else { '_' }).collect();
    format!("..{stamp}.{}", rng.below(u64::from(u32::MAX)))
}

fn check_path(text: &str) -> Result<(), WriteError> {
    let bad = |why: String| Err(WriteError::Path(why));
    let path = Path::new(text);
    if text.is_empty() {
        return bad("must not be empty".to_owned());
    }
    if path.is_absolute() {
        return bad(format!("must be relative path: {text}"));
    }
    if text.len() > MAX_PATH {
        return bad(format!("must be less than or equal to {MAX_PATH} characters"));
    }
    for part in path.components() {
        match part {
            Component::Normal(name) if name.len() > MAX_ELEMENT => {
                return bad(format!("filenames must be less than or equal to {MAX_ELEMENT} characters"));
            }
            Component::Normal(_) | Component::CurDir => {}
            _ => return bad(format!("must not contain '..': {text}")),
        }
    }
    if text.starts_with("..") {
        return bad(format!("must not start with '..': {text}"));
    }
    Ok(())
}

/// Whether a directory holds exactly these files with this content.
fn unchanged(directory: &Path, payload: &Payload) -> bool {
    let same =
        |(path, content): (&String, &Content)| fs::read(directory.join(path)).is_ok_and(|bytes| bytes == content.bytes);
    let mut found = BTreeSet::new();
    let wanted: BTreeSet<PathBuf> = payload.keys().map(|path| Path::new(path).components().collect()).collect();
    payload.iter().all(same) && collect(directory, Path::new(""), &mut found).is_ok() && found == wanted
}

fn collect(root: &Path, below: &Path, found: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(())
}

fn fill(directory: &Path, payload: &Payload) -> Result<(), WriteError> {
    fs::DirBuilder::new().mode(0o755).create(directory).map_err(of("creating", directory))?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(of("creating", directory))?;
    for (path, content) in payload {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(of("creating", parent))?;
        }
        write_file(&path, content).map_err(of("writing", &path))?;
    }
    Ok(())
}

fn write_file(path: &Path, content: &Content) -> io::Result<()> {
    use io::Write as _;
    // Nobody else can read it before it has its owner.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(&content.bytes)?;
    file.set_permissions(fs::Permissions::from_mode(content.mode & 0o7777))?;
    if let Some(owner) = content.owner
        && file.metadata()?.uid() != owner
    {
        chown(path, Some(owner), None)?;
    }
    Ok(())
}

fn top_names(payload: &Payload) -> BTreeSet<String> {
    let first = |path: &String| {
        Path::new(path).components().find_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
    };
    payload.keys().filter_map(first).collect()
}

fn link_names(target: &Path, payload: &Payload) -> Result<(), WriteError> {
    for name in top_names(payload) {
        let link = target.join(&name);
        match symlink(Path::new(DATA).join(&name), &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(of("linking", &link)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Takes away links to names that are gone; only links of our own, a mount point of another volume stays.
fn unlink_vanished(target: &Path, payload: &Payload) {
    let wanted = top_names(payload);
    let Ok(entries) = fs::read_dir(target) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = fs::read_link(entry.path()).is_ok_and(|link| link.starts_with(DATA));
        if ours && !wanted.contains(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn payload(files: &[(&str, &str)]) -> Payload {
        let content = |text: &str| Content { bytes: text.as_bytes().to_vec(), mode: 0o640, owner: None };
        files.iter().map(|(path, text)| ((*path).to_owned(), content(text))).collect()
    }

    fn put(target: &Path, files: &[(&str, &str)]) -> Result<Written, WriteError> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        write(target, &payload(files), now, &Rng::seeded(files.len() as u64), &|_| Ok(()))
    }

    fn shown(target: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(target)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| !name.starts_with("..2"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn content_is_switched_as_a_whole() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path();
        assert_eq!(put(target, &[("a", "1"), ("deep/b", "2")]).unwrap(), Written::Changed);
        assert_eq!(shown(target), ["..data", "a", "deep"]);
        assert_eq!(fs::read_to_string(target.join("deep/b")).unwrap(), "2");
        assert_eq!(fs::metadata(target.join("a")).unwrap().permissions().mode() & 0o7777, 0o640);
        let before = fs::read_link(target.join("..data")).unwrap();
        assert!(before.to_string_lossy().starts_with("..2023_11_14_22_13_20."));
        assert_eq!(put(target, &[("a", "1"), ("deep/b", "2")]).unwrap(), Written::Unchanged);
        assert_eq!(fs::read_link(target.join("..data")).unwrap(), before);

        assert_eq!(put(target, &[("a", "3")]).unwrap(), Written::Changed);
        assert_eq!(shown(target), ["..data", "a"]);
        assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "3");
        assert!(!target.join(before).exists(), "the old content is gone");
        assert_eq!(put(target, &[]).unwrap(), Written::Changed);
        assert_eq!(shown(target), ["..data"]);
    }

    #[test]
    fn a_failed_change_leaves_the_old_content() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), &[("a", "1")]).unwrap();
        let refuse = |_: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let changed = payload(&[("a", "2"), ("b", "2")]);
        assert!(write(dir.path(), &changed, SystemTime::UNIX_EPOCH, &Rng::seeded(9), &refuse).is_err());
        assert_eq!(fs::read_to_string(dir.path().join("a")).unwrap(), "1");
        assert_eq!(shown(dir.path()), ["..data", "a"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn bad_paths_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(256);
        for bad in ["", "/etc/passwd", "../up", "a/../../b", "..data", "..hidden/x", long.as_str()] {
            assert!(matches!(put(dir.path(), &[(bad, "x")]), Err(WriteError::Path(_))), "{bad}");
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[cfg(test)]
#[path = "writer_hostile_tests.rs"]
mod hostile_tests;
