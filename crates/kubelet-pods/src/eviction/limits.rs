//! Pods that use more local storage than they may. Pure.

use api_types::core_v1::{Container, EmptyDirVolumeSource, Pod};
use component_helpers::pod_requests;

use super::usage::{FileSystems, PodUse};

const STORAGE: &str = "ephemeral-storage";

/// A limit that a pod is over: the metric's name for it, and what the pod is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) signal: &'static str,
    pub(super) message: String,
}

/// The first limit that a pod is over.
pub(super) fn check(pod: &Pod, used: &PodUse, layout: FileSystems) -> Option<Over> {
    volumes(pod, used).or_else(|| whole(pod, used)).or_else(|| containers(pod, used, layout))
}

/// Whether a pod may be over one; of all others nobody has to know what they use.
pub(super) fn are_set(pod: &Pod) -> bool {
    let spec = &pod.spec;
    let of_volume = |source: &EmptyDirVolumeSource| source.size_limit.is_some();
    spec.volumes.iter().filter_map(|volume| volume.volume_source.empty_dir.as_ref()).any(of_volume)
        || pod_requests::limits(pod).contains_key(STORAGE)
        || spec.containers.iter().any(|container| container.resources.limits.contains_key(STORAGE))
}

fn volumes(pod: &Pod, used: &PodUse) -> Option<Over> {
    pod.spec.volumes.iter().find_map(|volume| {
        let limit = volume.volume_source.empty_dir.as_ref()?.size_limit.as_ref().filter(|limit| limit.sign() > 0)?;
        let own = used.volumes.iter().find(|own| own.name == volume.name)?;
        let message = format!("Usage of EmptyDir volume {:?} exceeds the limit {:?}. ", volume.name, limit.to_string());
        is_over(own.used.bytes, limit.value()).then_some(Over { signal: "emptydirfs.limit", message })
    })
}

fn whole(pod: &Pod, used: &PodUse) -> Option<Over> {
    let limit = pod_requests::limits(pod).get(STORAGE).filter(|limit| limit.sign() > 0).cloned()?;
    let message = format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ");
    is_over(used.ephemeral().bytes, limit.value()).then_some(Over { signal: "ephemeralpodfs.limit", message })
}

fn containers(pod: &Pod, used: &PodUse, layout: FileSystems) -> Option<Over> {
    let over = |container: &Container| {
        let limit = container.resources.limits.get(STORAGE).filter(|limit| limit.sign() > 0)?;
        let own = used.container(&container.name)?;
        let layer = if layout == FileSystems::One { own.layer.bytes } else { 0 };
        let name = &container.name;
        let message = format!("Container {name} exceeded its local ephemeral storage limit {:?}. ", limit.to_string());
        let used = own.logs.bytes.saturating_add(layer);
        is_over(used, limit.value()).then_some(Over { signal: "ephemeralcontainerfs.limit", message })
    };
    pod.spec.containers.iter().find_map(over)
}

fn is_over(used: u64, limit: i64) -> bool {
    used > u64::try_from(limit).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::{Volume, VolumeSource};

    use super::super::usage::{ContainerUse, Room, VolumeUse};
    use super::*;

    fn pod() -> Pod {
        let mut pod = Pod::default();
        for (name, limit) in [("one", "1Mi"), ("two", "2Mi")] {
            let mut container = Container { name: name.into(), ..Container::default() };
            container.resources.limits.insert(STORAGE.into(), Quantity::parse(limit).unwrap());
            pod.spec.containers.push(container);
        }
        let size_limit = Some(Quantity::parse("512Ki").unwrap());
        let empty_dir = Some(EmptyDirVolumeSource { size_limit, ..EmptyDirVolumeSource::default() });
        let volume_source = VolumeSource { empty_dir, ..VolumeSource::default() };
        pod.spec.volumes.push(Volume { name: "scratch".into(), volume_source });
        pod
    }

    #[test]
    fn a_limit_of_any_kind_is_one() {
        assert!(!are_set(&Pod::default()));
        let (whole, mut volume, mut container) = (pod(), pod(), pod());
        volume.spec.containers.clear();
        container.spec.volumes.clear();
        container.spec.containers.remove(1);
        for pod in [&whole, &volume, &container] {
            assert!(are_set(pod), "{:?}", pod.spec);
        }
        volume.spec.volumes[0].volume_source.empty_dir = Some(EmptyDirVolumeSource::default());
        container.spec.containers[0].resources.limits.clear();
        for pod in [&volume, &container] {
            assert!(!are_set(pod), "{:?}", pod.spec);
        }
    }

    #[test]
    fn the_first_limit_counts() {
        let kib = |amount: u64| Room { bytes: amount << 10, inodes: 1 };
        let used = |volume: u64, logs: u64, layer: u64, other: u64| PodUse {
            containers: vec![ContainerUse { name: "one".into(), memory_bytes: 0, layer: kib(layer), logs: kib(logs) }],
            volumes: vec![VolumeUse { name: "scratch".into(), used: kib(volume), in_memory: false }],
            other: kib(other),
            ..PodUse::default()
        };
        let container = "Container one exceeded its local ephemeral storage limit \"1Mi\". ";
        let cases = [
            (used(512, 512, 512, 1024), FileSystems::One, ""),
            (
                used(513, 0, 0, 0),
                FileSystems::One,
                "Usage of EmptyDir volume \"scratch\" exceeds the limit \"512Ki\". ",
            ),
            (
                used(512, 512, 512, 1537),
                FileSystems::One,
                "Pod ephemeral local storage usage exceeds the total limit of containers 3Mi. ",
            ),
            (used(0, 512, 513, 0), FileSystems::One, container),
            (used(0, 512, 513, 0), FileSystems::Images, ""),
            (used(0, 512, 513, 0), FileSystems::Split, ""),
            (used(0, 1025, 0, 0), FileSystems::Split, container),
            (used(0, 1025, 0, 0), FileSystems::Images, container),
        ];
        for (used, layout, expected) in cases {
            let found = check(&pod(), &used, layout).map(|over| over.message).unwrap_or_default();
            assert_eq!(found, expected);
        }
    }
}
