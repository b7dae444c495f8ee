//! Scratch space of pods, on disk or in memory.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{EmptyDirVolumeSource, Pod};
use component_helpers::pod_requests;
use sys::mounts::{Mount, MountError, Mounts, Source, Swap};

use super::error::VolumeError;
use super::file_error::FileError;

/// Everyone in the pod may use it, whatever the umask says.
const MODE: u32 = 0o777;

/// Makes an empty directory, or files in memory of at most `node_memory` bytes.
pub(super) fn set_up(
    mounts: &dyn Mounts,
    pod: &Pod,
    source: &EmptyDirVolumeSource,
    directory: &Path,
    node_memory: Option<i64>,
) -> Result<(), VolumeError> {
    make_directory(directory, MODE)?;
    match source.medium.as_str() {
        "" => Ok(()),
        "Memory" => {
            let size = memory_size(pod, source.size_limit.as_ref(), node_memory);
            Ok(mount_once(mounts, &in_memory(mounts, directory, size), directory)?)
        }
        medium if medium.starts_with("HugePages") => {
            let size = page_size(pod, medium)?;
            let what = Source::Filesystem {
                kind: "hugetlbfs".to_owned(),
                source: "nodev".into(),
                options: format!("pagesize={size}"),
            };
            mount_once(mounts, &Mount::new(directory, what), directory)?;
            Ok(permit(directory, MODE)?)
        }
        other => Err(VolumeError::Medium(other.to_owned())),
    }
}

/// A directory with exactly this mode, and those above it for the kubelet alone.
pub(super) fn make_directory(directory: &Path, mode: u32) -> Result<(), FileError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o750).create(directory);
    made.map_err(FileError::of("mkdir", directory))?;
    permit(directory, mode)
}

fn permit(directory: &Path, mode: u32) -> Result<(), FileError> {
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).map_err(FileError::of("chmod", directory))
}

/// Files in memory, which never reach the disk where the kernel can see to that: they may be secret.
pub(super) fn in_memory(mounts: &dyn Mounts, directory: &Path, size: Option<u64>) -> Mount {
    let swap = if mounts.can_refuse_swap() { Swap::Refused } else { Swap::Allowed };
    Mount::tmpfs(directory, size, 0o1777).swap(swap)
}

/// Mounts unless something is mounted there already, by this process or by one before it.
pub(super) fn mount_once(mounts: &dyn Mounts, mount: &Mount, at: &Path) -> Result<(), MountError> {
    if mounts.is_mount_point(at)? { Ok(()) } else { mounts.mount(mount) }
}

/// The smallest positive one of what the volume, the pod and the node allow.
fn memory_size(pod: &Pod, limit: Option<&Quantity>, node_memory: Option<i64>) -> Option<u64> {
    let all_limited = pod
        .spec
        .init_containers
        .iter()
        .chain(&pod.spec.containers)
        .all(|container| container.resources.limits.contains_key("memory"));
    let of_pod_itself = pod.spec.resources.as_ref().is_some_and(|resources| resources.limits.contains_key("memory"));
    let of_pod =
        (all_limited || of_pod_itself).then(|| pod_requests::amount(&pod_requests::limits(pod), "memory").value());
    let sizes = [limit.map(Quantity::value), of_pod, node_memory];
    sizes.into_iter().flatten().filter(|size| *size > 0).min().and_then(|size| u64::try_from(size).ok())
}

/// The page size of a medium: its own, or the only one that the pod asks for.
fn page_size(pod: &Pod, medium: &str) -> Result<String, VolumeError> {
    let requests = pod_requests::requests(pod);
    let mut sizes: Vec<&str> = requests.keys().filter_map(|name| name.strip_prefix("hugepages-")).collect();
    if let Some(size) = medium.strip_prefix("HugePages-") {
        sizes.retain(|asked| *asked == size);
    }
    match sizes.as_slice() {
        [size] => Ok(size.trim_end_matches('i').to_owned()),
        [] => Err(VolumeError::NoHugePages(medium.to_owned())),
        _ => Err(VolumeError::SeveralPageSizes),
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;
    use sys::mounts::FakeMounts;

    use super::*;

    fn pod(memory_limits: &[Option<&str>]) -> Pod {
        let mut pod = Pod::default();
        for limit in memory_limits {
            let mut container = Container::default();
            if let Some(limit) = limit {
                container.resources.limits.insert("memory".into(), Quantity::parse(limit).unwrap());
            }
            pod.spec.containers.push(container);
        }
        pod
    }

    #[test]
    fn memory_is_bounded_by_the_smallest_limit() {
        let limit = Quantity::parse("100").unwrap();
        let cases = [
            (pod(&[None]), Some(&limit), Some(1000), Some(100)),
            (pod(&[Some("60")]), Some(&limit), Some(1000), Some(60)),
            (pod(&[Some("60"), None]), None, Some(1000), Some(1000)),
            (pod(&[None]), None, None, None),
        ];
        for (pod, limit, node, expected) in cases {
            assert_eq!(memory_size(&pod, limit, node), expected);
        }
    }

    #[test]
    fn the_default_medium_is_no_mount() {
        let (dir, mounts) = (tempfile::tempdir().unwrap(), FakeMounts::new());
        let at = dir.path().join("a/b");
        set_up(&mounts, &pod(&[]), &EmptyDirVolumeSource::default(), &at, None).unwrap();
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o7777, MODE);
        assert!(mounts.mounted().is_empty());
        let memory = EmptyDirVolumeSource { medium: "Memory".into(), ..EmptyDirVolumeSource::default() };
        for _ in 0..2 {
            set_up(&mounts, &pod(&[]), &memory, &at, Some(4096)).unwrap();
        }
        assert_eq!(mounts.mounted().len(), 1, "mounted once");
        let swap = |mount: &Mount| match mount.what {
            Source::Tmpfs { swap, .. } => swap,
            _ => panic!("{mount:?}"),
        };
        assert_eq!(swap(&mounts.mounted()[0]), Swap::Allowed, "the kernel knows no better");
        mounts.learn_to_refuse_swap();
        set_up(&mounts, &pod(&[]), &memory, &dir.path().join("c"), Some(4096)).unwrap();
        assert_eq!(swap(&mounts.mounted()[1]), Swap::Refused);
        let huge = EmptyDirVolumeSource { medium: "HugePages-2Mi".into(), ..EmptyDirVolumeSource::default() };
        let refused = set_up(&mounts, &pod(&[]), &huge, &at, None).unwrap_err();
        assert!(matches!(refused, VolumeError::NoHugePages(_)), "{refused}");
    }
}
