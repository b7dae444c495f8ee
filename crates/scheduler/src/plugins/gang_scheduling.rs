//! `GangScheduling`: pods of a gang are bound when enough of them have a node, or not at all (KEP-4671).

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Pod;
use api_types::scheduling_v1alpha2::PodGroup;

use crate::framework::{
    Action, BuildCx, CycleState, EventObject, GANG_SCHEDULING, GroupKey, Hint, Permit, Permitted, Plugin, PluginError,
    PodGroups, PreEnqueue, Registration, Resource, Status, StatusResult, WaitingPods,
};
use crate::listers::Lister;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(crate) const NAME: &str = "GangScheduling";
/// How long a pod waits for the others of its gang.
const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);
const TOO_FEW: &str = "waiting for minCount pods from a gang to appear in scheduling queue";

struct GangScheduling {
    groups: Lister<PodGroup>,
    members: Arc<PodGroups>,
    waiting: Arc<WaitingPods>,
}

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    if !cx.gates.enabled(GANG_SCHEDULING) {
        // Groups are not served, and a watch of them would never begin.
        return Ok(Plugin::new(NAME).wakes_on(Vec::new()));
    }
    let (members, waiting) = (Arc::clone(&cx.groups), Arc::clone(&cx.waiting));
    let plugin = Arc::new(GangScheduling { groups: cx.listers.of(), members, waiting });
    let events = vec![
        Registration::hinted(Resource::Pod, Action::ADD, hint_of_pod),
        Registration::hinted(Resource::of::<PodGroup>(), Action::ADD, hint_of_group),
    ];
    Ok(Plugin::new(NAME).pre_enqueue(plugin.clone()).permit(plugin).wakes_on(events))
}

/// Another pod of the group has come.
fn hint_of_pod(pod: &Pod, object: &EventObject) -> Hint {
    let other = object.pod().and_then(|other| GroupKey::of(other));
    Hint::queue_if(other.is_some() && other == GroupKey::of(pod))
}

/// The group has come.
fn hint_of_group(pod: &Pod, object: &EventObject) -> Hint {
    let Some(group) = object.other::<PodGroup>() else { return Hint::Queue };
    Hint::queue_if(GroupKey::of(pod) == Some(GroupKey::named(group)))
}

/// How many pods of a group must have a node at the same time; none where each is on its own.
pub(crate) fn min_count(group: &PodGroup) -> Option<usize> {
    let gang = group.spec.scheduling_policy.gang.as_ref()?;
    Some(usize::try_from(gang.min_count).unwrap_or(0))
}

impl PreEnqueue for GangScheduling {
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult {
        let Some(key) = GroupKey::of(&pod.pod) else { return Ok(()) };
        let Some(group) = self.groups.find(&key.namespace, &key.name) else {
            let text = format!("waiting for pods's pod group {:?} to appear in scheduling queue", key.name);
            return Err(Status::unresolvable(text));
        };
        let is_short = min_count(&group).is_some_and(|count| self.members.size(&key).all < count);
        if is_short { Err(Status::unresolvable(TOO_FEW)) } else { Ok(()) }
    }
}

impl Permit for GangScheduling {
    fn permit(&self, _: &CycleState, pod: &PodInfo, _: &str) -> Result<Permitted, Status> {
        let Some(key) = GroupKey::of(&pod.pod) else { return Ok(Permitted::Now) };
        let group = self.groups.find(&key.namespace, &key.name);
        let Some(count) = group.as_deref().and_then(min_count) else { return Ok(Permitted::Now) };
        if self.members.size(&key).placed < count {
            return Ok(Permitted::Wait(LONGEST_WAIT));
        }
        let of_group = |other: &Arc<crate::framework::WaitingPod>| GroupKey::of(&other.info.pod).as_ref() == Some(&key);
        self.waiting.all().iter().filter(|other| of_group(other)).for_each(|other| other.allow(NAME));
        Ok(Permitted::Now)
    }
}
