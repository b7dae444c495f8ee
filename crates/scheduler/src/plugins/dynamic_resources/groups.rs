//! Groups of pods as claims see them: pods of a group are decided about together (KEP-4671), and may share claims that are set
//! aside for the group (KEP-5729).

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::resource_v1::{AllocationResult, ResourceClaim};
use api_types::scheduling_v1alpha2::PodGroup;
use component_base::shared_gates::{GENERIC_WORKLOAD, GROUP_CLAIMS};
use component_helpers::group_claims::{Whose, is_group};
use component_helpers::resource_claims::is_reserved_for;

use super::claims::Own;
use super::{DynamicResources, PodClaims};
use crate::framework::{Action, BuildCx, EventObject, GroupKey, Hint, PodGroups, Registration, Resource, Status};
use crate::listers::{Lister, NotFound};
use crate::pod_info::PodInfo;

/// What is known of groups.
pub(super) struct Groups {
    members: Arc<PodGroups>,
    /// None where groups share no claims.
    groups: Option<Lister<PodGroup>>,
    /// Whether there are groups at all.
    are_known: bool,
}

impl Groups {
    pub(super) fn of(cx: &BuildCx) -> Arc<Self> {
        let groups = cx.gates.enabled(GROUP_CLAIMS).then(|| cx.listers.of());
        Arc::new(Self { members: Arc::clone(&cx.groups), groups, are_known: cx.gates.enabled(GENERIC_WORKLOAD) })
    }

    pub(super) fn whose(&self) -> Whose {
        if self.groups.is_some() { Whose::OwnOrGroups } else { Whose::Own }
    }

    /// The group of a pod that shares claims with it.
    ///
    /// # Errors
    /// When the group is not there: it is not known which claims it shares.
    pub(super) fn sharing_with(&self, pod: &Pod) -> Result<Option<Arc<PodGroup>>, NotFound> {
        let (Some(groups), Some(name)) = (&self.groups, self.whose().group_of(pod)) else { return Ok(None) };
        groups.get(&pod.metadata.namespace, name).map(Some)
    }

    /// The group whose pods are decided about together with this one.
    pub(super) fn together_with(&self, pod: &Pod) -> Option<GroupKey> {
        if self.are_known { GroupKey::of(pod) } else { None }
    }

    /// Whether no other pod of the group has a node, or is about to get one.
    pub(super) fn is_alone(&self, pod: &Pod) -> bool {
        let Some(key) = GroupKey::of(pod) else { return true };
        self.members.placed(&key).iter().all(|other| other.metadata.uid == pod.metadata.uid)
    }

    /// A pod may have its claims once its group is there.
    pub(super) fn registration(&self) -> Option<Registration> {
        let hint = |pod: &Pod, object: &EventObject| {
            let Some(group) = object.other::<PodGroup>() else { return Hint::Queue };
            Hint::queue_if(!pod.spec.resource_claims.is_empty() && GroupKey::of(pod) == Some(GroupKey::named(group)))
        };
        self.groups.as_ref().map(|_| Registration::hinted(Resource::of::<PodGroup>(), Action::ADD, hint))
    }
}

impl DynamicResources {
    /// Whether a claim has what it was to get for a pod already: another pod of the group was faster.
    pub(super) fn has_what_group_chose(
        &self,
        claim: &ResourceClaim,
        wanted: Option<&AllocationResult>,
        pod: &Pod,
    ) -> bool {
        let (Some(wanted), Some(has)) = (wanted, &claim.status.allocation) else { return false };
        let is_same = wanted.devices == has.devices && wanted.node_selector == has.node_selector;
        is_same && self.groups.together_with(pod).is_some()
    }

    /// Whether a claim may be released that is set aside for whom a pod has it for: a group goes on having it while others of
    /// its pods may use it.
    pub(super) fn may_release(&self, own: &Own, pod: &Pod) -> bool {
        !is_group(&own.consumer) || self.groups.is_alone(pod)
    }

    /// Releases what is set aside for the group of a pod that fits nowhere, while no pod of the group uses it; others may have
    /// better use for it. None where there is nothing to release.
    pub(super) async fn release_of_group(&self, claims: &PodClaims, pod: &PodInfo) -> Option<Status> {
        let is_held = |own: &&Own| is_group(&own.consumer) && is_reserved_for(&own.claim, &own.consumer.uid);
        let mut status = None;
        for own in claims.claims.iter().filter(is_held).filter(|own| self.may_release(own, &pod.pod)) {
            match self.objects.release_device_claim(&own.claim, &own.consumer.uid).await {
                Ok(written) => self.claims.put_written(written),
                Err(error) => return Some(Status::error(error.to_string())),
            }
            status = Some(Status::unresolvable("ResourceClaim unreserved for PodGroup"));
        }
        status
    }
}
