//! What counts of that which pods ask for as a whole, and of what claims give them.

use std::sync::Arc;

use api_types::core_v1::{Pod, ResourceList};
use component_base::shared_gates::{NODE_ALLOCATABLE, POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES};
use component_base::{Feature, Gates};
use component_helpers::pod_requests::without_pod_level;

/// The gates that are asked for it.
pub(crate) const GATES: &[Feature] = &[NODE_ALLOCATABLE, POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES];

/// What counts; all of it by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Counted {
    whole: Whole,
    /// What claims give of that which nodes have anyway does not count (KEP-5517).
    without_claims: bool,
}

/// What counts of that which a pod asks for as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Whole {
    /// What is asked for, what is promised, and what is in force (KEP-5419).
    #[default]
    Resized,
    /// What is asked for alone: it does not change (KEP-2837).
    Asked,
    /// Nothing.
    Nothing,
}

impl Counted {
    pub(super) fn of(gates: &Gates) -> Self {
        let whole = match (gates.enabled(POD_LEVEL_RESOURCES), gates.enabled(POD_LEVEL_RESIZE)) {
            (false, _) => Whole::Nothing,
            (true, false) => Whole::Asked,
            (true, true) => Whole::Resized,
        };
        Self { whole, without_claims: !gates.enabled(NODE_ALLOCATABLE) }
    }

    /// The pod as it counts: the very same, unless it has more.
    pub(super) fn seen(self, pod: Arc<Pod>) -> Arc<Pod> {
        let pod = self.whole.seen(pod);
        if !self.without_claims || pod.status.node_allocatable_resource_claim_statuses.is_empty() {
            return pod;
        }
        let mut plain = Arc::unwrap_or_clone(pod);
        plain.status.node_allocatable_resource_claim_statuses.clear();
        Arc::new(plain)
    }
}

impl Whole {
    fn seen(self, pod: Arc<Pod>) -> Arc<Pod> {
        let pod = match self {
            Self::Resized => return pod,
            Self::Asked => pod,
            Self::Nothing => without_pod_level(&pod).map_or(pod, Arc::new),
        };
        if pod.status.resources.is_none() && pod.status.allocated_resources.is_empty() {
            return pod;
        }
        let mut plain = Arc::unwrap_or_clone(pod);
        (plain.status.resources, plain.status.allocated_resources) = (None, ResourceList::new());
        Arc::new(plain)
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::{Container, ResourceRequirements};

    use super::*;
    use crate::cache::Cache;

    fn cpu(text: &str) -> ResourceRequirements {
        let requests = [("cpu".to_owned(), Quantity::parse(text).unwrap())].into();
        ResourceRequirements { requests, ..ResourceRequirements::default() }
    }

    #[test]
    fn what_counts_follows_the_gates() {
        let mut pod = Pod::default();
        pod.spec.containers = vec![Container { resources: cpu("1"), ..Container::default() }];
        pod.spec.resources = Some(cpu("2"));
        pod.status.resources = Some(cpu("3"));
        let pod = Arc::new(pod);
        for (off, wanted, on_its_node) in [
            (&[][..], 2000, 3000),
            (&[POD_LEVEL_RESIZE], 2000, 2000),
            (&[POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES], 1000, 1000),
        ] {
            let gates = off.iter().fold(Gates::default(), |gates, feature| gates.with(*feature, false));
            let info = Cache::obeying(&gates).pod_info(Arc::clone(&pod));
            let seen = (info.request.milli_cpu, info.node_request.milli_cpu);
            assert_eq!(seen, (wanted, on_its_node), "{off:?}");
            assert_eq!(Arc::ptr_eq(&info.pod, &pod), off.is_empty(), "{off:?}");
        }
    }

    #[test]
    fn what_claims_give_counts_where_the_pod_is() {
        let mut pod = Pod::default();
        pod.spec.containers = vec![Container { resources: cpu("1"), ..Container::default() }];
        let claim = api_types::core_v1::NodeAllocatableResourceClaimStatus {
            resources: cpu("4").requests,
            ..Default::default()
        };
        pod.status.node_allocatable_resource_claim_statuses = vec![claim];
        let pod = Arc::new(pod);
        for (on, on_its_node) in [(false, 1000), (true, 5000)] {
            let info = Cache::obeying(&Gates::default().with(NODE_ALLOCATABLE, on)).pod_info(Arc::clone(&pod));
            let seen = [info.request.milli_cpu, info.node_request.milli_cpu, info.node_non_zero.milli_cpu];
            assert_eq!(seen, [1000, on_its_node, on_its_node], "its own request is what it says itself: {on}");
            assert_eq!(Arc::ptr_eq(&info.pod, &pod), on);
        }
    }
}
