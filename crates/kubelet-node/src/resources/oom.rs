//! Whom the kernel kills first when memory runs out.

use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod};
use component_helpers::{pod_requests, pod_state, qos};

/// Guaranteed pods and those the node needs.
const PROTECTED: i64 = -997;
const FIRST: i64 = 1000;
/// Burstable containers stay strictly between the two.
const LOWEST_BURSTABLE: i64 = 3;
/// From here on a pod is critical.
pub(super) const CRITICAL_PRIORITY: i32 = 2_000_000_000;

/// The score adjustment of a container on a node with this much memory.
pub(super) fn score_adj(pod: &Pod, container: &Container, memory_capacity: i64) -> i64 {
    let node_critical = pod.spec.priority.is_some_and(|priority| priority >= CRITICAL_PRIORITY)
        && pod.spec.priority_class_name == "system-node-critical";
    if node_critical {
        return PROTECTED;
    }
    match qos::class_of(pod) {
        pod_qos_class::GUARANTEED => PROTECTED,
        pod_qos_class::BEST_EFFORT => FIRST,
        _ => burstable(pod, container, memory_capacity),
    }
}

fn burstable(pod: &Pod, container: &Container, capacity: i64) -> i64 {
    let own = memory(container) + share_of_pod(pod);
    let mut score = adjusted(own, capacity);
    if pod_state::is_sidecar(container) {
        // A sidecar is not killed before the containers it serves.
        let smallest = pod.spec.containers.iter().map(memory).min().unwrap_or_default();
        score = score.min(adjusted(smallest + share_of_pod(pod), capacity));
    }
    match score {
        FIRST => FIRST - 1,
        score => score.max(LOWEST_BURSTABLE),
    }
}

fn adjusted(request: i64, capacity: i64) -> i64 {
    if capacity <= 0 {
        return FIRST;
    }
    let used = i128::from(FIRST) * i128::from(request) / i128::from(capacity);
    i64::try_from(i128::from(FIRST) - used).unwrap_or(LOWEST_BURSTABLE)
}

fn memory(container: &Container) -> i64 {
    pod_requests::amount(&container.resources.requests, "memory").value()
}

/// What the pod asks for beyond its containers, spread over them.
fn share_of_pod(pod: &Pod) -> i64 {
    let Some(all) = pod.spec.resources.as_ref().and_then(|resources| resources.requests.get("memory")) else {
        return 0;
    };
    let containers = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let sum: i64 = containers().map(memory).sum();
    let count = i64::try_from(containers().count()).unwrap_or(1).max(1);
    (all.value() - sum).max(0) / count
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;

    use super::*;

    fn container(request: &str, limit: &str) -> Container {
        let mut container = Container::default();
        for (list, text) in [(&mut container.resources.requests, request), (&mut container.resources.limits, limit)] {
            if !text.is_empty() {
                list.insert("memory".into(), Quantity::parse(text).unwrap());
                list.insert("cpu".into(), Quantity::parse("1").unwrap());
            }
        }
        container
    }

    #[test]
    fn classes_differ() {
        let cases = [
            (container("", ""), 1000),
            (container("1Gi", "1Gi"), -997),
            (container("256Mi", ""), 750),
            (container("1Ki", ""), 999),
            (container("2Gi", ""), 3),
        ];
        for (container, expected) in cases {
            let mut pod = Pod::default();
            pod.spec.containers.push(container.clone());
            assert_eq!(score_adj(&pod, &container, 1 << 30), expected);
        }
    }

    #[test]
    fn sidecars_outlive_and_critical_pods_stay() {
        let mut pod = Pod::default();
        let sidecar = Container { restart_policy: Some("Always".into()), ..container("64Mi", "") };
        pod.spec.containers.push(container("512Mi", ""));
        pod.spec.init_containers.push(sidecar.clone());
        assert_eq!(score_adj(&pod, &sidecar, 1 << 30), 500);
        pod.spec.priority = Some(2_000_001_000);
        pod.spec.priority_class_name = "system-node-critical".into();
        assert_eq!(score_adj(&pod, &sidecar, 1 << 30), -997);
    }
}
