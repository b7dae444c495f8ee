//! What counts of that which pods ask for as a whole.

use std::sync::Arc;

use api_types::core_v1::{Pod, ResourceList};
use component_base::shared_gates::{POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES};
use component_base::{Feature, Gates};
use component_helpers::pod_requests::without_pod_level;

/// The gates that are asked for it.
pub(crate) const GATES: &[Feature] = &[POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES];

/// What counts; all of it by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Counted {
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
        match (gates.enabled(POD_LEVEL_RESOURCES), gates.enabled(POD_LEVEL_RESIZE)) {
            (false, _) => Self::Nothing,
            (true, false) => Self::Asked,
            (true, true) => Self::Resized,
        }
    }

    /// The pod as it counts: the very same, unless it has more.
    pub(super) fn seen(self, pod: Arc<Pod>) -> Arc<Pod> {
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
}
