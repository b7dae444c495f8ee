//! The limits of a pod's own control group.

use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod};
use component_helpers::{pod_requests, qos};
use node_api::cri::v1;
use sys::cgroups::{Limit, Limits};

use super::{MemoryReservation, cpu};

/// What of the node's configuration limits depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodLimits {
    /// `cpuCFSQuota`.
    pub cpu_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds.
    pub cpu_period_us: i64,
    /// `podPidsLimit`, where there is one.
    pub pids: Option<u64>,
    pub reservation: MemoryReservation,
}

/// Amounts that a pod's group gets; quota and memory only where nothing in the pod is unlimited.
struct Amounts {
    request_milli: i64,
    request_bytes: i64,
    limit_milli: Option<i64>,
    memory: Option<i64>,
}

impl PodLimits {
    /// What to set on the pod's group.
    pub fn of(&self, pod: &Pod) -> Limits {
        let amounts = amounts(pod);
        let mut limits = Limits {
            cpu_shares: u64::try_from(cpu::shares(amounts.request_milli)).ok(),
            pids: self.pids.map(Limit::To),
            ..Limits::default()
        };
        let class = qos::class_of(pod);
        if class == pod_qos_class::BEST_EFFORT {
            return limits;
        }
        if self.reservation != MemoryReservation::None {
            let kept = self.reservation.of(class, amounts.request_bytes);
            limits.memory_min_bytes = Some(kept.min_bytes);
            limits.memory_low_bytes = Some(kept.low_bytes);
        }
        if let Some(quota) = self.quota(&amounts) {
            limits.cpu_period_us = u64::try_from(self.cpu_period_us).ok();
            limits.cpu_quota_us = u64::try_from(quota).ok().map(Limit::To);
        }
        limits.memory_bytes = amounts.memory.and_then(|bytes| u64::try_from(bytes).ok()).map(Limit::To);
        limits
    }

    fn quota(&self, amounts: &Amounts) -> Option<i64> {
        let limit = amounts.limit_milli.filter(|_| self.cpu_quota)?;
        Some(cpu::quota_us(limit, self.cpu_period_us)).filter(|quota| *quota > 0)
    }

    /// The same for the runtime, without what the pod needs on top.
    pub fn for_runtime(&self, pod: &Pod) -> v1::LinuxContainerResources {
        let mut bare = pod.clone();
        bare.spec.overhead.clear();
        let amounts = amounts(&bare);
        v1::LinuxContainerResources {
            cpu_shares: cpu::shares(amounts.request_milli),
            cpu_period: self.cpu_period_us,
            cpu_quota: self.quota(&amounts).unwrap_or_default(),
            memory_limit_in_bytes: amounts.memory.unwrap_or_default(),
            ..v1::LinuxContainerResources::default()
        }
    }

    /// What the pod needs on top.
    pub fn overhead(&self, pod: &Pod) -> Option<v1::LinuxContainerResources> {
        if pod.spec.overhead.is_empty() {
            return None;
        }
        let milli = pod_requests::amount(&pod.spec.overhead, "cpu").milli_value();
        Some(v1::LinuxContainerResources {
            cpu_shares: cpu::shares(milli),
            cpu_period: self.cpu_period_us,
            cpu_quota: if self.cpu_quota { cpu::quota_us(milli, self.cpu_period_us) } else { 0 },
            memory_limit_in_bytes: pod_requests::amount(&pod.spec.overhead, "memory").value(),
            ..v1::LinuxContainerResources::default()
        })
    }
}

/// Whether nothing in a pod may have as much of a resource as there is.
#[must_use]
pub fn is_bounded(pod: &Pod, resource: &str) -> bool {
    let of_pod = pod.spec.resources.as_ref().is_some_and(|all| all.limits.contains_key(resource));
    let has = |container: &Container| container.resources.limits.get(resource).is_some_and(|limit| limit.sign() > 0);
    of_pod || pod.spec.containers.iter().chain(&pod.spec.init_containers).all(has)
}

fn amounts(pod: &Pod) -> Amounts {
    let (requests, limits) = (pod_requests::requests(pod), pod_requests::limits(pod));
    Amounts {
        request_milli: pod_requests::amount(&requests, "cpu").milli_value(),
        request_bytes: pod_requests::amount(&requests, "memory").value(),
        limit_milli: is_bounded(pod, "cpu").then(|| pod_requests::amount(&limits, "cpu").milli_value()),
        memory: is_bounded(pod, "memory").then(|| pod_requests::amount(&limits, "memory").value()),
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;

    use super::*;

    fn container(requests: &[(&str, &str)], maxima: &[(&str, &str)]) -> Container {
        let list = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
        };
        let mut container = Container::default();
        container.resources.requests = list(requests);
        container.resources.limits = list(maxima);
        container
    }

    #[test]
    fn a_limit_counts_only_when_all_have_one() {
        let reservation = MemoryReservation::None;
        let limits = PodLimits { cpu_quota: true, cpu_period_us: 100_000, pids: Some(100), reservation };
        let full = container(&[("cpu", "1"), ("memory", "1Mi")], &[("cpu", "1"), ("memory", "1Mi")]);
        let half = container(&[("cpu", "100m")], &[("memory", "2Mi")]);
        let cases = [
            (vec![full.clone()], (Some(1024), Some(Limit::To(100_000)), Some(Limit::To(1 << 20)))),
            (vec![full, half.clone()], (Some(1126), None, Some(Limit::To(3 << 20)))),
            (vec![half], (Some(102), None, Some(Limit::To(2 << 20)))),
            (vec![Container::default()], (Some(2), None, None)),
        ];
        for (containers, expected) in cases {
            let mut pod = Pod::default();
            pod.spec.containers = containers;
            let made = limits.of(&pod);
            assert_eq!((made.cpu_shares, made.cpu_quota_us, made.memory_bytes), expected);
            assert_eq!(made.pids, Some(Limit::To(100)));
        }
    }

    #[test]
    fn memory_is_kept_for_pods_where_it_is_to_be() {
        let of = |reservation| PodLimits { cpu_quota: true, cpu_period_us: 100_000, pids: None, reservation };
        let full = container(&[("cpu", "1"), ("memory", "1Mi")], &[("cpu", "1"), ("memory", "1Mi")]);
        let half = container(&[("memory", "1Mi")], &[]);
        let cases = [
            (MemoryReservation::Tiered, vec![full.clone()], (Some(1 << 20), Some(0))),
            (MemoryReservation::Tiered, vec![full.clone(), half], (Some(0), Some(2 << 20))),
            (MemoryReservation::Tiered, vec![Container::default()], (None, None)),
            (MemoryReservation::None, vec![full], (None, None)),
        ];
        for (reservation, containers, expected) in cases {
            let mut pod = Pod::default();
            pod.spec.containers = containers;
            let made = of(reservation).of(&pod);
            assert_eq!((made.memory_min_bytes, made.memory_low_bytes), expected);
        }
    }
}
