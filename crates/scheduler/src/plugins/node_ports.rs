//! `NodePorts`: two pods on one node cannot have the same host port.

use std::sync::Arc;

use api_types::core_v1::Pod;

use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered, Registration,
    Resource, Status, StatusResult, is_placed,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::{PodInfo, host_ports};

pub(super) const NAME: &str = "NodePorts";
const REASON: &str = "node(s) didn't have free ports for the requested pod ports";

struct NodePorts;

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(NodePorts);
    let events = vec![
        Registration::hinted(Resource::Pod, Action::DELETE, |pod: &Pod, object| {
            let Some(deleted) = object.pod().filter(|deleted| is_placed(deleted)) else { return Hint::Skip };
            let freed = host_ports(deleted);
            Hint::queue_if(host_ports(pod).iter().any(|port| freed.iter().any(|other| port.conflicts_with(other))))
        }),
        Registration::always(Resource::Node, Action::ADD),
    ];
    let plugin = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(events);
    Ok(plugin.signed_by(|pod| Some(format!("{:?}", pod.ports))))
}

impl PreFilter for NodePorts {
    fn pre_filter(&self, _: CycleCx<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(if pod.ports.is_empty() { PreFiltered::Skip } else { PreFiltered::All })
    }
}

impl Filter for NodePorts {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let taken = pod.ports.iter().any(|port| node.ports.iter().any(|used| port.conflicts_with(used)));
        if taken { Err(Status::unschedulable(REASON)) } else { Ok(()) }
    }

    fn is_local(&self) -> bool {
        true
    }
}
