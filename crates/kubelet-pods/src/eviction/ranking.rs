//! Who goes first when something runs short, worst first. Pure.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use component_helpers::pod_requests;

use super::usage::{FileSystems, FsStatsTypes, PodUse};
use crate::pod;
use crate::resources::thresholds::Signal;

/// Sorts pods so that the first one should go first.
pub(super) fn rank(pods: &mut [Arc<Pod>], uses: &HashMap<String, PodUse>, signal: Signal, layout: FileSystems) {
    let none = PodUse::default();
    let used = |pod: &Pod| uses.get(&pod.metadata.uid).unwrap_or(&none);
    let priority = |one: &Pod, other: &Pod| pod::priority(one).cmp(&pod::priority(other));
    match signal.resource() {
        "memory" => pods.sort_by(|one, other| {
            let key = |pod: &Pod| Excess::new(used(pod).memory_bytes, request(pod, "memory"));
            by_excess(&key(one), &key(other), || priority(one, other))
        }),
        "pids" => pods
            .sort_by(|one, other| priority(one, other).then_with(|| used(other).processes.cmp(&used(one).processes))),
        "inodes" => {
            let types = FsStatsTypes::of(signal, layout);
            pods.sort_by(|one, other| {
                // Compared with a request in bytes, as upstream does: in effect, pods without one go first.
                let key = |pod: &Pod| {
                    let inodes = used(pod).on(types).inodes;
                    Excess { unknown: false, exceeds: inodes > 0, by: signed(inodes) - request(pod, STORAGE) }
                };
                by_excess(&key(one), &key(other), || priority(one, other))
            });
        }
        _ => {
            let types = FsStatsTypes::of(signal, layout);
            pods.sort_by(|one, other| {
                let known = |pod: &Pod| uses.get(&pod.metadata.uid).map(|used| used.on(types).bytes);
                let key = |pod: &Pod| Excess::new(known(pod), request(pod, STORAGE));
                by_excess(&key(one), &key(other), || priority(one, other))
            });
        }
    }
}

const STORAGE: &str = "ephemeral-storage";

/// How a pod's use compares with its request.
struct Excess {
    /// Nothing is known of it, which is worst.
    unknown: bool,
    exceeds: bool,
    by: i64,
}

impl Excess {
    fn new(used: Option<u64>, request: i64) -> Self {
        let by = signed(used.unwrap_or_default()).saturating_sub(request);
        Self { unknown: used.is_none(), exceeds: by > 0, by }
    }
}

fn by_excess(one: &Excess, other: &Excess, priority: impl Fn() -> Ordering) -> Ordering {
    let first = other.unknown.cmp(&one.unknown).then(other.exceeds.cmp(&one.exceeds));
    first.then_with(priority).then(other.by.cmp(&one.by))
}

fn request(pod: &Pod, name: &str) -> i64 {
    pod_requests::amount(&pod_requests::requests(pod), name).value()
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::Container;

    use super::super::usage::{ContainerUse, Room};
    use super::*;

    /// A pod with requests of memory and storage, and what it uses: memory, processes, layer bytes, layer inodes.
    fn pod(name: &str, priority: i32, requests: (i64, i64), used: Option<[u64; 4]>) -> (Arc<Pod>, Option<PodUse>) {
        let mut pod = Pod::default();
        pod.metadata.uid = name.into();
        pod.spec.priority = Some(priority);
        let mut container = Container::default();
        for (resource, amount) in [("memory", requests.0), (STORAGE, requests.1)] {
            let amount = Quantity::parse(&amount.to_string()).unwrap();
            container.resources.requests.insert(resource.into(), amount);
        }
        pod.spec.containers.push(container);
        let used = used.map(|[memory, processes, bytes, inodes]| PodUse {
            memory_bytes: Some(memory),
            processes,
            containers: vec![ContainerUse { layer: Room { bytes, inodes }, ..ContainerUse::default() }],
            ..PodUse::default()
        });
        (Arc::new(pod), used)
    }

    #[test]
    fn the_worst_goes_first() {
        let all = [
            pod("modest", 0, (100, 100), Some([50, 9, 50, 0])),
            pod("greedy", 0, (100, 100), Some([150, 5, 150, 1])),
            pod("greedier", 0, (100, 100), Some([190, 1, 190, 2])),
            pod("vital", 5, (100, 0), Some([900, 99, 900, 7])),
            pod("dark", 9, (100, 100), None),
        ];
        let uses: HashMap<String, PodUse> =
            all.iter().filter_map(|(pod, used)| Some((pod.metadata.uid.clone(), used.clone()?))).collect();
        let cases = [
            (Signal::MemoryAvailable, FileSystems::One, "dark greedier greedy vital modest"),
            (Signal::AllocatableMemoryAvailable, FileSystems::One, "dark greedier greedy vital modest"),
            (Signal::PidAvailable, FileSystems::One, "modest greedy greedier vital dark"),
            (Signal::NodefsAvailable, FileSystems::One, "dark greedier greedy vital modest"),
            (Signal::NodefsInodesFree, FileSystems::One, "greedier greedy vital modest dark"),
            (Signal::ImagefsAvailable, FileSystems::Images, "dark greedier greedy vital modest"),
            // Layers do not count there; what is left is priority.
            (Signal::NodefsAvailable, FileSystems::Images, "dark modest greedy greedier vital"),
        ];
        for (signal, layout, expected) in cases {
            let mut pods: Vec<Arc<Pod>> = all.iter().map(|(pod, _)| Arc::clone(pod)).collect();
            rank(&mut pods, &uses, signal, layout);
            let names: Vec<&str> = pods.iter().map(|pod| pod.metadata.uid.as_str()).collect();
            assert_eq!(names.join(" "), expected, "{signal:?} {layout:?}");
        }
    }
}
