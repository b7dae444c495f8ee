//! What pods ask for as a whole, which counts or does not.

use api_machinery::object::Object;
use api_types::core_v1::{Pod, ResourceList, ResourceQuotaSpec};
use component_helpers::pod_requests::without_pod_level;
use component_helpers::quota::{Circumstances, Evaluator};

/// Whether what pods ask for as a whole counts (gate `PodLevelResources`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodLevel {
    /// It stands for what the containers ask for.
    Counts,
    /// Only what the containers ask for does, also for who is chosen.
    Ignored,
}

impl PodLevel {
    /// What a quota counts of an object; nothing where it does not choose it.
    pub(super) fn usage(
        self,
        evaluator: &Evaluator,
        spec: &ResourceQuotaSpec,
        object: &dyn Object,
        at: Circumstances<'_>,
    ) -> Option<ResourceList> {
        let plain = match self {
            Self::Counts => None,
            Self::Ignored => object.downcast_ref::<Pod>().and_then(without_pod_level),
        };
        let object = plain.as_ref().map_or(object, |pod| pod);
        evaluator.chooses(spec, object).then(|| evaluator.usage(object, at))
    }
}
