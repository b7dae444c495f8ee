//! `NodeUnschedulable`: cordoned nodes take only pods that tolerate it.

use std::sync::Arc;

use api_types::core_v1::{Pod, Taint};
use component_helpers::taints::{self, Comparing};

use crate::framework::{
    Action, BuildCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, Registration, Resource, Status,
    StatusResult, by_tolerations,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeUnschedulable";
const REASON: &str = "node(s) were unschedulable";

struct NodeUnschedulable {
    taint: Taint,
}

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let taint =
        Taint { key: "node.kubernetes.io/unschedulable".into(), effect: "NoSchedule".into(), ..Taint::default() };
    let plugin = Arc::new(NodeUnschedulable { taint });
    let tolerates = Arc::clone(&plugin);
    let events = vec![
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_TAINT), |_, object| {
            let EventObject::Node { old, new: Some(node) } = object else { return Hint::Queue };
            let was_open = old.as_ref().is_some_and(|old| !old.spec.unschedulable);
            Hint::queue_if(!node.spec.unschedulable && !was_open)
        }),
        Registration::hinted(Resource::Pod, Action::POD_TOLERATION, move |pod: &Pod, object| {
            let same = object.pod().filter(|other| other.metadata.uid == pod.metadata.uid);
            Hint::queue_if(same.is_some_and(|pod| tolerates.tolerated(pod)))
        }),
    ];
    Ok(Plugin::new(NAME).filter(plugin).wakes_on(events).signed_by(by_tolerations))
}

impl NodeUnschedulable {
    /// The taint has no value, so that there is nothing to compare.
    fn tolerated(&self, pod: &Pod) -> bool {
        taints::any_tolerates(&pod.spec.tolerations, &self.taint, Comparing::Texts)
    }
}

impl Filter for NodeUnschedulable {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if !node.node.spec.unschedulable || self.tolerated(&pod.pod) {
            return Ok(());
        }
        Err(Status::unresolvable(REASON))
    }

    fn is_local(&self) -> bool {
        true
    }
}
