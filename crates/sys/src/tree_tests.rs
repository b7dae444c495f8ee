//! Trees with links, mounts and great depth in them, and trees that change under the walk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;

use super::*;
use crate::mounts::{Depth, LinuxMounts, Mount, Mounts as _, Unmount};
use crate::test_support::is_root;

const WRITE: Bits = Bits { of_files: 0o660, of_directories: 0o2770 };

/// A directory with a file, beside the tree that is walked.
fn outside(dir: &tempfile::TempDir) -> PathBuf {
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "x").unwrap();
    fs::set_permissions(outside.join("precious"), fs::Permissions::from_mode(0o600)).unwrap();
    outside
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn links_are_removed_and_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let outside = outside(&dir);
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "x").unwrap();
    symlink(&outside, root.join("a/link")).unwrap();
    remove_tree(&root).unwrap();
    assert!(!root.exists() && outside.join("precious").exists());
    symlink(&outside, &root).unwrap();
    remove_tree(&root).unwrap();
    assert!(!root.is_symlink() && outside.join("precious").exists());
    remove_tree(&root).unwrap();
    remove_tree(&dir.path().join("none/at/all")).unwrap();
}

#[test]
fn depth_costs_neither_stack_nor_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir(&root).unwrap();
    let mut at = open_root(&root).unwrap();
    for _ in 0..1_500 {
        rustix::fs::mkdirat(&at, c"d", Mode::from_raw_mode(0o700)).unwrap();
        at = open_directory(at.as_fd(), c"d").unwrap();
    }
    let deepest = at;
    let group = fs::metadata(&root).unwrap().gid();
    give_to_group(&root, group, WRITE, &AtomicU64::default()).unwrap();
    assert_eq!(fstat(&deepest).unwrap().st_mode & 0o7777, 0o2770);
    remove_tree(&root).unwrap();
    assert!(!root.exists());
}

#[test]
fn mounts_are_left_alone() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let outside = outside(&dir);
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub/mounted")).unwrap();
    fs::write(root.join("sub/file"), "x").unwrap();
    // A bind mount of the same file system: its device number says nothing.
    LinuxMounts.mount(&Mount::bind(&outside, root.join("sub/mounted"), Depth::One)).unwrap();
    let removed = remove_tree(&root);
    let given = give_to_group(&root, 4242, WRITE, &AtomicU64::default());
    LinuxMounts.unmount_below(&root, Unmount::Lazy).unwrap();
    assert_eq!(removed.unwrap_err().kind(), io::ErrorKind::CrossesDevices);
    given.unwrap();
    assert_eq!((mode(&outside.join("precious")), fs::metadata(&outside).unwrap().gid()), (0o600, 0));
    assert_eq!(fs::metadata(root.join("sub")).unwrap().gid(), 4242);
    LinuxMounts.mount(&Mount::bind(&outside, &root, Depth::One)).unwrap();
    let removed = remove_tree(&root);
    LinuxMounts.unmount(&root, Unmount::Lazy).unwrap();
    assert_eq!(removed.unwrap_err().kind(), io::ErrorKind::CrossesDevices);
    assert!(outside.join("precious").exists());
}

#[test]
fn a_group_gets_what_is_there_and_nothing_that_links_lead_to() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let outside = outside(&dir);
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(root.join("sub/tool"), "x").unwrap();
    fs::set_permissions(root.join("sub/tool"), fs::Permissions::from_mode(0o4700)).unwrap();
    symlink(&outside, root.join("directory")).unwrap();
    symlink(outside.join("precious"), root.join("file")).unwrap();
    assert!(!is_given_to_group(&root, 4242, WRITE).unwrap());
    let given = AtomicU64::default();
    give_to_group(&root, 4242, WRITE, &given).unwrap();
    assert_eq!(given.into_inner(), 5, "the root, a directory, a file and two links");
    assert!(is_given_to_group(&root, 4242, WRITE).unwrap());
    assert_eq!((mode(&root.join("sub/tool")), mode(&root.join("sub")) & 0o2770), (0o4760, 0o2770));
    assert_eq!(fs::symlink_metadata(root.join("file")).unwrap().gid(), 4242);
    for untouched in [outside.clone(), outside.join("precious")] {
        assert_eq!(fs::metadata(untouched).unwrap().gid(), 0);
    }
    assert_eq!(mode(&outside.join("precious")), 0o600);
}

/// Puts a link in place of a directory that the walk has already seen as one.
struct Swap {
    root: PathBuf,
    outside: PathBuf,
    seen: Vec<CString>,
}

impl Visit for Swap {
    fn leaf(&mut self, _: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
        self.seen.push(name.to_owned());
        let _ = fs::remove_dir(self.root.join("victim"));
        let _ = symlink(&self.outside, self.root.join("victim"));
        Ok(())
    }

    fn mount_point(&mut self, _: BorrowedFd<'_>, _: &CStr) -> io::Result<()> {
        Ok(())
    }

    fn leave(&mut self, _: OwnedFd, _: Option<(BorrowedFd<'_>, &CStr)>) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_directory_that_becomes_a_link_is_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let outside = outside(&dir);
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("victim")).unwrap();
    fs::write(root.join("first"), "x").unwrap();
    let mut swap = Swap { root: root.clone(), outside, seen: Vec::new() };
    walk(open_root(&root).unwrap(), &mut swap).unwrap();
    assert_eq!(swap.seen, [c"first".to_owned(), c"victim".to_owned()]);
}
