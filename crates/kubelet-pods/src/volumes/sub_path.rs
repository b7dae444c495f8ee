//! A part of a volume as a mount of its own, which may not lead out of the volume whatever its content is.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use sys::fs::{Beneath, create_beneath, open_beneath};
use sys::mounts::{Depth, Mount, MountError, Mounts, Unmount};

use super::empty_dir::make_directory;
use super::file_error::FileError;
use crate::interfaces::SideError;

/// Why a part of a volume cannot be mounted.
#[derive(Debug, thiserror::Error)]
pub enum SubPathError {
    #[error("error SubPath `{0}` must not be an absolute path")]
    Absolute(String),
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    Climbs(String),
    #[error("subpath {part:?} not within volume path {:?}", volume.display().to_string())]
    Outside { part: PathBuf, volume: PathBuf },
    #[error(transparent)]
    Look(std::io::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}", SideError::of(.0))]
    Mount(#[from] MountError),
}

/// Puts what `relative` names below `volume` at `target`, making a missing directory first. Someone who changes the
/// volume meanwhile cannot lead the mount elsewhere: what was checked is held open and mounted.
pub(super) fn bind(
    mounts: &dyn Mounts,
    volume: &Path,
    relative: &str,
    target: &Path,
    read_only: bool,
) -> Result<PathBuf, SubPathError> {
    check(relative)?;
    let held = open(volume, Path::new(relative), read_only)?;
    let source = held.path();
    let meta = fs::metadata(&source).map_err(SubPathError::Look)?;
    if mounts.is_mount_point(target)? {
        let same = fs::metadata(target).is_ok_and(|old| (old.dev(), old.ino()) == (meta.dev(), meta.ino()));
        if same {
            return Ok(target.to_owned());
        }
        mounts.unmount(target, Unmount::Lazy)?;
    }
    if meta.is_dir() {
        make_directory(target, 0o750)?;
    } else {
        if let Some(parent) = target.parent() {
            make_directory(parent, 0o750)?;
        }
        let made = fs::OpenOptions::new().create(true).append(true).open(target);
        made.map_err(FileError::of("open", target))?;
    }
    mounts.mount(&Mount::bind(source, target, Depth::Recursive))?;
    Ok(target.to_owned())
}

/// A path that does not climb.
pub(super) fn check(relative: &str) -> Result<(), SubPathError> {
    let path = Path::new(relative);
    if path.is_absolute() {
        return Err(SubPathError::Absolute(relative.to_owned()));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(SubPathError::Climbs(relative.to_owned()));
    }
    Ok(())
}

fn open(volume: &Path, relative: &Path, read_only: bool) -> Result<Beneath, SubPathError> {
    let outside = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::CrossesDevices => {
            SubPathError::Outside { part: relative.to_owned(), volume: volume.to_owned() }
        }
        _ => SubPathError::Look(error),
    };
    match open_beneath(volume, relative) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !read_only => {
            let mode = fs::metadata(volume).map_or(0o755, |meta| meta.permissions().mode() & 0o7777);
            let made = create_beneath(volume, relative, mode).map_err(outside)?;
            // The umask may have taken bits away.
            let _ = fs::set_permissions(made.path(), fs::Permissions::from_mode(mode));
            Ok(made)
        }
        opened => opened.map_err(outside),
    }
}

/// Takes away all sub path mounts below `root`, and the directories they were on.
pub(super) fn clean(mounts: &dyn Mounts, root: &Path) -> Result<(), SubPathError> {
    if !root.exists() {
        return Ok(());
    }
    mounts.unmount_below(root, Unmount::Lazy)?;
    Ok(sys::fs::remove_tree(root).map_err(FileError::of("remove", root))?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use sys::mounts::FakeMounts;

    use super::*;

    #[test]
    fn parts_stay_within_their_volume() {
        let dir = tempfile::tempdir().unwrap();
        let (volume, mounts) = (dir.path().join("volume"), FakeMounts::new());
        fs::create_dir_all(volume.join("data")).unwrap();
        fs::write(volume.join("file"), "x").unwrap();
        symlink("/etc", volume.join("out")).unwrap();
        symlink("data", volume.join("in")).unwrap();
        let target = |name: &str| dir.path().join("targets").join(name);
        for (index, good) in ["data", "file", "in", "new/deep"].into_iter().enumerate() {
            let target = target(&index.to_string());
            assert_eq!(bind(&mounts, &volume, good, &target, false).unwrap(), target, "{good}");
            assert!(target.exists());
        }
        assert!(volume.join("new/deep").is_dir());
        assert_eq!(mounts.mounted().len(), 4);
        for bad in ["/etc", "../volume", "out", "out/passwd", "a/../.."] {
            assert!(bind(&mounts, &volume, bad, &target("bad"), false).is_err(), "{bad}");
        }
        assert!(bind(&mounts, &volume, "none", &target("ro"), true).is_err(), "nothing is made in a read-only volume");
        clean(&mounts, &dir.path().join("targets")).unwrap();
        assert!(mounts.mounted().is_empty() && !target("0").exists());
    }
}
