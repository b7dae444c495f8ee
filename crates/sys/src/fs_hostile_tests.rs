//! A tree that somebody changes while it is walked (CVE-2017-1002101, CVE-2021-25741).

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;

/// How often a path is opened while its parts change.
const TRIES: usize = 3_000;

/// Ends the swapping when it goes, be it by a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_directory_that_is_swapped_for_a_link_never_leads_out() {
    let dir = tempfile::tempdir().unwrap();
    let (volume, outside) = (dir.path().join("volume"), dir.path().join("outside"));
    for at in [volume.join("part/inner"), outside.join("inner")] {
        std::fs::create_dir_all(&at).unwrap();
    }
    std::fs::write(volume.join("part/inner/file"), "inside").unwrap();
    std::fs::write(outside.join("inner/file"), "host").unwrap();
    symlink(&outside, volume.join("link")).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let (part, link) = (volume.join("part"), volume.join("link"));
                renameat_with(CWD, &part, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let _ends = Ends(&ended);
        let root = volume.canonicalize().unwrap();
        let mut opened = 0;
        for _ in 0..TRIES {
            for relative in ["part/inner", "part/inner/file", "part"] {
                let Ok(held) = open_beneath(&volume, Path::new(relative)) else { continue };
                opened += 1;
                let found = held.resolved().unwrap();
                assert!(found.starts_with(&root), "{relative} led to {}", found.display());
            }
            if let Ok(held) = create_beneath(&volume, Path::new("part/made"), 0o755) {
                assert!(held.resolved().unwrap().starts_with(&root));
            }
        }
        assert!(opened > 0, "not once was the directory there");
    });
    assert!(!outside.join("made").exists(), "a directory was made on the host");
}
