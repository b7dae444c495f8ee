//! Mounts that are only recorded.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{Mount, MountError, MountInfo, Mounts, Source, Unmount};

/// Keeps a table of mounts and touches nothing.
#[derive(Default)]
pub struct FakeMounts {
    mounts: Mutex<Vec<Mount>>,
    unmounted: Mutex<Vec<PathBuf>>,
    refused: Mutex<Vec<PathBuf>>,
    refuses_swap: AtomicBool,
}

impl FakeMounts {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on mounting and unmounting at `target` fails as if it were in use.
    pub fn refuse(&self, target: impl Into<PathBuf>) {
        self.refused.lock().push(target.into());
    }

    /// From now on the kernel can keep files in memory off the disk.
    pub fn learn_to_refuse_swap(&self) {
        self.refuses_swap.store(true, Ordering::Relaxed);
    }

    /// What is mounted now, in order.
    #[must_use]
    pub fn mounted(&self) -> Vec<Mount> {
        self.mounts.lock().clone()
    }

    /// Every target that was unmounted, in order.
    #[must_use]
    pub fn unmounted(&self) -> Vec<PathBuf> {
        self.unmounted.lock().clone()
    }

    fn refuses(&self, target: &Path) -> bool {
        self.refused.lock().iter().any(|refused| refused == target)
    }
}

impl Mounts for FakeMounts {
    fn mount(&self, mount: &Mount) -> Result<(), MountError> {
        if self.refuses(&mount.target) {
            let source = io::ErrorKind::ResourceBusy.into();
            return Err(MountError::Mount { target: mount.target.clone(), step: "attaching", source });
        }
        self.mounts.lock().push(mount.clone());
        Ok(())
    }

    fn unmount(&self, target: &Path, _how: Unmount) -> Result<(), MountError> {
        if self.refuses(target) {
            return Err(MountError::Unmount { target: target.to_owned(), source: io::ErrorKind::ResourceBusy.into() });
        }
        let mut mounts = self.mounts.lock();
        if let Some(at) = mounts.iter().rposition(|mount| mount.target == target) {
            mounts.remove(at);
            self.unmounted.lock().push(target.to_owned());
        }
        Ok(())
    }

    fn can_refuse_swap(&self) -> bool {
        self.refuses_swap.load(Ordering::Relaxed)
    }

    fn list(&self) -> Result<Vec<MountInfo>, MountError> {
        Ok((1..).zip(self.mounts.lock().iter()).map(|(id, mount)| info(id, mount)).collect())
    }
}

fn info(id: u32, mount: &Mount) -> MountInfo {
    let (kind, source) = match &mount.what {
        Source::Tmpfs { .. } => ("tmpfs".to_owned(), "tmpfs".to_owned()),
        Source::Bind { source, .. } => ("none".to_owned(), source.to_string_lossy().into_owned()),
        Source::Filesystem { kind, source, .. } => (kind.clone(), source.to_string_lossy().into_owned()),
    };
    MountInfo {
        id,
        parent: 0,
        device: format!("0:{id}"),
        root: "/".into(),
        target: mount.target.clone(),
        options: vec![if mount.read_only { "ro" } else { "rw" }.to_owned()],
        propagation: Vec::new(),
        kind,
        source,
        super_options: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_stack_and_come_off_from_the_top() {
        let mounts = FakeMounts::new();
        mounts.mount(&Mount::tmpfs("/a", None, 0o755)).unwrap();
        mounts.mount(&Mount::tmpfs("/a/b", None, 0o755)).unwrap();
        mounts.mount(&Mount::tmpfs("/ab", None, 0o755)).unwrap();
        assert_eq!(mounts.unmount_below(Path::new("/a"), Unmount::Lazy).unwrap(), 2);
        assert_eq!(mounts.unmounted(), [PathBuf::from("/a/b"), PathBuf::from("/a")]);
        assert_eq!(mounts.mounted().len(), 1);
    }

    #[test]
    fn refused_targets_fail() {
        let mounts = FakeMounts::new();
        mounts.refuse("/busy");
        assert!(mounts.mount(&Mount::tmpfs("/busy", None, 0o755)).is_err());
        assert!(mounts.unmount(Path::new("/busy"), Unmount::Lazy).is_err());
    }
}
