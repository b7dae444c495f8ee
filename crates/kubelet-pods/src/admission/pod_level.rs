//! Pods that say what all of their containers may have together (gate `PodLevelResources`, KEP-2837).

use kubelet_node::topology::has_pod_level_resources;

use super::{Attempt, Reason, Refusal};

/// Where nobody knows that, such a pod does not run: its containers might have more than it says.
pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    if attempt.situation.pod_level_resources || !has_pod_level_resources(attempt.pod) {
        return Ok(());
    }
    Err(Refusal::new(Reason::PodLevelResourcesNotSupported, "PodLevelResources feature gate is disabled"))
}
