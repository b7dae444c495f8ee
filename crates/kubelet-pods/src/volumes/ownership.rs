//! The group of a pod's volumes (`fsGroup`).

use std::io;
use std::path::Path;

use sys::tree::{self, Bits};

/// What the group may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    ReadOnly,
    ReadWrite,
}

/// When ownership is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Not if the root of the volume is as wanted (`fsGroupChangePolicy: OnRootMismatch`).
    RootMismatch,
}

/// Gives everything below `root` and `root` itself to a group. The root comes last, so that it marks completion.
/// Containers that have the volume cannot lead this elsewhere.
pub(super) fn give_to_group(root: &Path, group: u32, access: Access, when: When) -> io::Result<()> {
    if when == When::RootMismatch && tree::is_given_to_group(root, group, bits(access))? {
        return Ok(());
    }
    tree::give_to_group(root, group, bits(access))
}

fn bits(access: Access) -> Bits {
    let of_files = match access {
        Access::ReadOnly => 0o440,
        Access::ReadWrite => 0o660,
    };
    Bits { of_files, of_directories: of_files | 0o2110 }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

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
