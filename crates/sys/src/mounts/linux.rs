//! Mounts by the kernel's own calls, in the caller's mount namespace.

use std::ffi::CString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{
    FsOpenFlags, MountFlags, MountPropagationFlags, UnmountFlags, fsconfig_set_flag, fsopen, mount, mount_bind,
    mount_bind_recursive, mount_change, mount_remount, unmount,
};

use super::{
    Depth, Mount, MountError, MountInfo, Mounts, Propagation, Restrictions, Source, Swap, Unmount, parse_mountinfo,
};

/// Mounts on this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinuxMounts;

impl Mounts for LinuxMounts {
    fn mount(&self, request: &Mount) -> Result<(), MountError> {
        let failed = |step| move |source| MountError::Mount { target: request.target.clone(), step, source };
        attach(request).map_err(failed("attaching"))?;
        if let Err((step, source)) = finish(request) {
            let _ = unmount(&request.target, UnmountFlags::DETACH);
            return Err(failed(step)(source));
        }
        Ok(())
    }

    fn unmount(&self, target: &Path, how: Unmount) -> Result<(), MountError> {
        let flags = match how {
            Unmount::IfUnused => UnmountFlags::NOFOLLOW,
            Unmount::Lazy => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
        };
        match unmount(target, flags) {
            // EINVAL: nothing is mounted there.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
            Err(error) => Err(MountError::Unmount { target: target.to_owned(), source: error.into() }),
        }
    }

    fn can_refuse_swap(&self) -> bool {
        static ANSWER: OnceLock<bool> = OnceLock::new();
        *ANSWER.get_or_init(|| {
            // The kernel judges an option when it is told of it; nothing is mounted.
            let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC);
            context.and_then(|context| fsconfig_set_flag(context.as_fd(), "noswap")).is_ok()
        })
    }

    /// The kernel knows it of the place alone: a list of all mounts is long where there are many pods, and is asked for
    /// each of them.
    fn is_mount_point(&self, target: &Path) -> Result<bool, MountError> {
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        let told = statx(CWD, &target, AtFlags::NO_AUTOMOUNT, StatxFlags::empty());
        match told {
            Ok(told) if told.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
                Ok(told.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
            }
            Err(Errno::NOENT) => Ok(false),
            // An old kernel, or a server behind the mount that does not answer.
            _ => Ok(self.list()?.iter().any(|mount| mount.target == target)),
        }
    }

    fn list(&self) -> Result<Vec<MountInfo>, MountError> {
        let bytes = std::fs::read("/proc/self/mountinfo").map_err(MountError::List)?;
        Ok(parse_mountinfo(&String::from_utf8_lossy(&bytes)))
    }
}

fn attach(request: &Mount) -> io::Result<()> {
    let target = &request.target;
    match &request.what {
        Source::Bind { source, depth: Depth::One } => mount_bind(source, target)?,
        Source::Bind { source, depth: Depth::Recursive } => mount_bind_recursive(source, target)?,
        Source::Tmpfs { size_bytes, mode, swap } => {
            let size = size_bytes.map(|size| format!(",size={size}")).unwrap_or_default();
            let swap = if *swap == Swap::Refused { ",noswap" } else { "" };
            let data = CString::new(format!("mode={mode:o}{size}{swap}"))?;
            mount("tmpfs", target, "tmpfs", flags(request), data.as_c_str())?;
        }
        Source::Filesystem { kind, source, options } => {
            let data = CString::new(options.as_str())?;
            mount(source, target, kind.as_str(), flags(request), data.as_c_str())?;
        }
    }
    Ok(())
}

/// A bind mount ignores every flag when it is made, so that its restrictions take a second step.
fn finish(request: &Mount) -> Result<(), (&'static str, io::Error)> {
    let is_bind = matches!(request.what, Source::Bind { .. });
    if is_bind && (request.read_only || request.restrictions != Restrictions::default()) {
        let flags = MountFlags::BIND | flags(request) | kept_flags(&request.target);
        mount_remount(&request.target, flags, c"").map_err(|error| ("restricting", error.into()))?;
    }
    let propagation = match request.propagation {
        Propagation::Inherit => return Ok(()),
        Propagation::Private => MountPropagationFlags::PRIVATE,
        Propagation::Slave => MountPropagationFlags::DOWNSTREAM,
        Propagation::Shared => MountPropagationFlags::SHARED,
    };
    let changed = mount_change(&request.target, propagation | MountPropagationFlags::REC);
    changed.map_err(|error| ("setting propagation", error.into()))
}

fn flags(request: &Mount) -> MountFlags {
    let Restrictions { no_exec, no_suid, no_dev } = request.restrictions;
    let wanted = [
        (request.read_only, MountFlags::RDONLY),
        (no_exec, MountFlags::NOEXEC),
        (no_suid, MountFlags::NOSUID),
        (no_dev, MountFlags::NODEV),
    ];
    wanted.iter().filter(|(set, _)| *set).fold(MountFlags::empty(), |all, (_, flag)| all | *flag)
}

/// Restrictions that the place below already has: leaving one out of a remount would lift it, which the kernel refuses
/// in a user namespace.
fn kept_flags(target: &Path) -> MountFlags {
    use rustix::fs::StatVfsMountFlags as Have;
    let Ok(have) = rustix::fs::statvfs(target) else { return MountFlags::empty() };
    let pairs = [
        (Have::RDONLY, MountFlags::RDONLY),
        (Have::NOEXEC, MountFlags::NOEXEC),
        (Have::NOSUID, MountFlags::NOSUID),
        (Have::NODEV, MountFlags::NODEV),
        (Have::NOATIME, MountFlags::NOATIME),
        (Have::RELATIME, MountFlags::RELATIME),
    ];
    pairs.iter().filter(|(flag, _)| have.f_flag.contains(*flag)).fold(MountFlags::empty(), |all, (_, flag)| all | *flag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::is_root;

    #[test]
    fn tmpfs_and_read_only_bind() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (memory, copy) = (dir.path().join("memory"), dir.path().join("copy"));
        std::fs::create_dir(&memory).unwrap();
        std::fs::create_dir(&copy).unwrap();
        let mounts = LinuxMounts;
        mounts.mount(&Mount::tmpfs(&memory, Some(1 << 20), 0o1777)).unwrap();
        assert!(mounts.is_mount_point(&memory).unwrap());
        std::fs::write(memory.join("file"), "x").unwrap();
        for no_mount_point in [dir.path(), &copy, &memory.join("file"), &memory.join("nothing")] {
            assert!(!mounts.is_mount_point(no_mount_point).unwrap(), "{}", no_mount_point.display());
        }
        assert!(std::fs::write(memory.join("large"), vec![0; 2 << 20]).is_err(), "the size is a limit");
        let restrictions = Restrictions { no_exec: true, ..Restrictions::default() };
        mounts.mount(&Mount::bind(&memory, &copy, Depth::One).read_only().restricted(restrictions)).unwrap();
        assert!(mounts.is_mount_point(&copy).unwrap());
        assert_eq!(std::fs::read_to_string(copy.join("file")).unwrap(), "x");
        assert!(std::fs::write(copy.join("file"), "y").is_err());
        let found = mounts.list().unwrap().into_iter().find(|mount| mount.target.ends_with("copy")).unwrap();
        assert!(found.is_read_only() && found.options.contains(&"noexec".to_owned()));
        assert_eq!(mounts.unmount_below(dir.path(), Unmount::IfUnused).unwrap(), 2);
        assert!(!mounts.is_mount_point(&memory).unwrap());
        mounts.unmount(&memory, Unmount::IfUnused).unwrap();
    }

    #[test]
    fn memory_stays_memory_where_the_kernel_can() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mounted = LinuxMounts.mount(&Mount::tmpfs(dir.path(), None, 0o1777).swap(Swap::Refused));
        let options = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let _ = LinuxMounts.unmount(dir.path(), Unmount::Lazy);
        assert_eq!(mounted.is_ok(), LinuxMounts.can_refuse_swap(), "{mounted:?}");
        let path = dir.path().to_str().unwrap();
        let line = options.lines().find(|line| line.contains(path)).unwrap_or_default();
        assert_eq!(line.contains("noswap"), LinuxMounts.can_refuse_swap(), "{line}");
    }

    #[test]
    fn a_missing_target_is_an_error() {
        let missing = Mount::tmpfs("/nonexistent/target", None, 0o755);
        assert!(matches!(LinuxMounts.mount(&missing), Err(MountError::Mount { step: "attaching", .. })));
    }
}
