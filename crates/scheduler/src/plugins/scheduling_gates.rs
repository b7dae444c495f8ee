//! `SchedulingGates`: a pod with gates is not tried (KEP-3521).

use std::sync::Arc;

use crate::framework::{
    Action, BuildCx, EventObject, Hint, Plugin, PluginError, PreEnqueue, Registration, Resource, Status, StatusResult,
};
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "SchedulingGates";

struct SchedulingGates;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let same_pod = |pod: &api_types::core_v1::Pod, object: &EventObject| {
        Hint::queue_if(object.pod().is_some_and(|other| other.metadata.uid == pod.metadata.uid))
    };
    let events = vec![Registration::hinted(Resource::Pod, Action::POD_GATES_ELIMINATED, same_pod)];
    Ok(Plugin::new(NAME).pre_enqueue(Arc::new(SchedulingGates)).wakes_on(events))
}

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, pod: &PodInfo) -> StatusResult {
        let gates = &pod.pod.spec.scheduling_gates;
        if gates.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
        Err(Status::unresolvable(format!("waiting for scheduling gates: [{}]", names.join(" "))))
    }
}
