//! How much of the machine's swap a container may use. Pure.
//!
//! See KEP-2400 and <https://kubernetes.io/docs/concepts/cluster-administration/swap-memory-management/>.

use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Container, Pod};
use component_helpers::{pod_requests, qos};

use super::oom::CRITICAL_PRIORITY;

/// `memorySwap.swapBehavior`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SwapBehavior {
    /// Nobody uses swap.
    #[default]
    NoSwap,
    /// Burstable containers have a share of so many bytes of swap.
    Limited { swap_bytes: i64 },
}

/// Whether a container has a share of the machine's swap where that is limited: what the machine needs or is guaranteed
/// has none, and who asks for no memory has no share to go by.
#[must_use]
pub fn may_swap(pod: &Pod, container: &Container) -> bool {
    let of = |list| pod_requests::amount(list, "memory");
    let (request, limit) = (of(&container.resources.requests), of(&container.resources.limits));
    let critical = pod.spec.priority.is_some_and(|priority| priority >= CRITICAL_PRIORITY);
    qos::class_of(pod) == pod_qos_class::BURSTABLE && !critical && request != limit
}

impl SwapBehavior {
    /// The bytes of swap that a container may use on a node with so much memory.
    pub(super) fn limit(self, pod: &Pod, container: &Container, memory_bytes: i64) -> i64 {
        let Self::Limited { swap_bytes } = self else { return 0 };
        if memory_bytes <= 0 || !may_swap(pod, container) {
            return 0;
        }
        let request = pod_requests::amount(&container.resources.requests, "memory").value();
        let share = i128::from(request) * i128::from(swap_bytes) / i128::from(memory_bytes);
        i64::try_from(share).unwrap_or(swap_bytes)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;

    use super::*;

    #[test]
    fn burstable_containers_have_their_share() {
        let limited = SwapBehavior::Limited { swap_bytes: 1 << 30 };
        let none = Some("");
        let cases = [
            ("a quarter of the memory", "1Gi", Some("2Gi"), None, limited, 1 << 28),
            ("without a limit", "1Gi", none, None, limited, 1 << 28),
            ("an odd part is rounded down", "1", none, None, limited, 0),
            ("what may use just what it asks for", "1Gi", Some("1Gi"), None, limited, 0),
            ("what asks for nothing", "", none, None, limited, 0),
            ("what the system needs", "1Gi", none, Some(CRITICAL_PRIORITY), limited, 0),
            ("nobody", "1Gi", none, None, SwapBehavior::NoSwap, 0),
        ];
        for (what, request, limit, priority, behavior, expected) in cases {
            let list = |text: &str| -> api_types::core_v1::ResourceList {
                let amount = (!text.is_empty()).then(|| ("memory".to_owned(), Quantity::parse(text).unwrap()));
                amount.into_iter().collect()
            };
            let mut container = Container::default();
            container.resources.requests = list(request);
            container.resources.limits = list(limit.unwrap_or_default());
            let mut pod = Pod::default();
            pod.spec.priority = priority;
            // Another one that keeps the pod from being guaranteed.
            let mut other = Container::default();
            other.resources.requests = list("1Mi");
            pod.spec.containers = vec![container.clone(), other];
            assert_eq!(behavior.limit(&pod, &container, 4 << 30), expected, "{what}");
        }
    }
}
