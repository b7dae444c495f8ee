//! Which events may help a pod whose claims stood in the way.

use std::sync::Arc;

use api_types::core_v1::Pod;
use api_types::resource_v1::{DeviceClass, ResourceClaim, ResourceSlice};
use api_types::resource_v1alpha3::DeviceTaintRule;

use super::groups::Groups;
use super::tracker::Tracker;
use crate::framework::{Action, EventObject, Hint, Registration, Resource, is_placed};

/// `by_rules` where rules give devices taints, and take them away.
pub(super) fn registrations(claims: &Arc<Tracker>, groups: &Arc<Groups>, by_rules: bool) -> Vec<Registration> {
    let changes = Action::ADD.and(Action::UPDATE);
    let of_node = Action::ADD.and(Action::NODE_LABEL).and(Action::NODE_ALLOCATABLE);
    let (known, of_pod) = (Arc::clone(claims), Arc::clone(claims));
    let (sharing, of_groups) = (Arc::clone(groups), Arc::clone(groups));
    let rules = by_rules.then(|| {
        let changes = Action::UPDATE.and(Action::DELETE);
        Registration::always(Resource::of::<DeviceTaintRule>(), changes)
    });
    let always = [
        Registration::always(Resource::Node, of_node),
        Registration::hinted(Resource::of::<ResourceClaim>(), changes, move |pod: &Pod, object| {
            hint_of_claim(&known, &sharing, pod, object)
        }),
        Registration::hinted(Resource::Pod, Action::POD_GENERATED_CLAIM, move |pod: &Pod, object| {
            let Some(changed) = object.pod() else { return Hint::Queue };
            Hint::queue_if(changed.metadata.uid == pod.metadata.uid && of_pod.of_pod(changed, &of_groups).is_ok())
        }),
        Registration::always(Resource::of::<DeviceClass>(), changes),
        Registration::always(Resource::of::<ResourceSlice>(), changes),
    ];
    always.into_iter().chain(rules).chain(groups.registration()).collect()
}

/// Pods that go, or come to ask for less, give room to those whose claims take what nodes have anyway.
pub(super) fn of_room() -> [Registration; 1] {
    [Registration::hinted(Resource::Pod, Action::DELETE.and(Action::POD_SCALE_DOWN), |waiting: &Pod, object| {
        let helps = |pod: &Pod| is_placed(pod) || pod.metadata.uid == waiting.metadata.uid;
        Hint::queue_if(object.pod().is_some_and(|pod| helps(pod)))
    })]
}

/// Devices became free, or a claim of the pod is there or has changed; but the pod still needs all its claims.
fn hint_of_claim(claims: &Tracker, groups: &Groups, pod: &Pod, object: &EventObject) -> Hint {
    let (old, Some(new)) = object.change::<ResourceClaim>() else { return Hint::Queue };
    let Ok(own) = claims.of_pod(pod, groups) else { return Hint::Skip };
    if old.is_some_and(|old| old.status.allocation.is_some()) && new.status.allocation.is_none() {
        return Hint::Queue;
    }
    if !own.iter().any(|own| own.claim.metadata.uid == new.metadata.uid) {
        return Hint::Skip;
    }
    Hint::queue_if(old.is_none_or(|old| old.status != new.status))
}
