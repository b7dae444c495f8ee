//! The group of a pod's volumes (`fsGroup`).

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

/// What the group may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    ReadWrite,
}

/// When ownership is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Not if the root of the volume is as wanted (`fsGroupChangePolicy: OnRootMismatch`).
    RootMismatch,
}

/// Gives everything below `root` and `root` itself to a group. The root comes last, so that it marks completion.
pub(crate) fn give_to_group(root: &Path, group: u32, access: Access, when: When) -> io::Result<()> {
    if when == When::RootMismatch && is_given(root, group, access)? {
        return Ok(());
    }
    give(root, group, access)
}

fn bits(access: Access, is_dir: bool) -> u32 {
    let own = match access {
        Access::ReadOnly => 0o440,
        Access::ReadWrite => 0o660,
    };
    if is_dir { own | 0o2110 } else { own }
}

fn is_given(root: &Path, group: u32, access: Access) -> io::Result<bool> {
    let meta = fs::symlink_metadata(root)?;
    let wanted = bits(access, meta.is_dir());
    Ok(meta.gid() == group && meta.permissions().mode() & wanted == wanted)
}

fn give(path: &Path, group: u32, access: Access) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            match give(&entry?.path(), group, access) {
                // Someone else works here too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                given => given?,
            }
        }
    }
    lchown(path, None, Some(group))?;
    if !meta.is_symlink() {
        let mode = meta.permissions().mode() | bits(access, meta.is_dir());
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn everything_below_gets_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let own = fs::metadata(dir.path()).unwrap().gid();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/file"), "x").unwrap();
        symlink("/nowhere", dir.path().join("link")).unwrap();
        fs::set_permissions(dir.path().join("sub/file"), fs::Permissions::from_mode(0o600)).unwrap();
        give_to_group(dir.path(), own, Access::ReadWrite, When::Always).unwrap();
        let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("sub/file"), 0o660);
        assert_eq!(mode("sub") & 0o2770, 0o2770);

        fs::set_permissions(dir.path().join("sub/file"), fs::Permissions::from_mode(0o600)).unwrap();
        give_to_group(dir.path(), own, Access::ReadWrite, When::RootMismatch).unwrap();
        assert_eq!(mode("sub/file"), 0o600, "the root is as wanted");
        give_to_group(dir.path(), own, Access::ReadOnly, When::Always).unwrap();
        assert_eq!(mode("sub/file"), 0o640);
    }
}
