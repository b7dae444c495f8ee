//! `NodeName`: a pod that names its node goes nowhere else.

use std::sync::Arc;

use crate::framework::{
    Action, BuildCx, CycleState, Filter, Plugin, PluginError, Registration, Resource, Status, StatusResult,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeName";
const REASON: &str = "node(s) didn't match the requested node name";

struct NodeName;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let events = vec![Registration::always(Resource::Node, Action::ADD)];
    Ok(Plugin::new(NAME)
        .filter(Arc::new(NodeName))
        .wakes_on(events)
        .signed_by(|pod| Some(pod.pod.spec.node_name.clone())))
}

impl Filter for NodeName {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let wanted = pod.pod.spec.node_name.as_str();
        if wanted.is_empty() || *wanted == *node.name { Ok(()) } else { Err(Status::unresolvable(REASON)) }
    }

    fn is_local(&self) -> bool {
        true
    }
}
