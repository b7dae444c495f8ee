//! `NodeDeclaredFeatures`: pods that use a new feature go to nodes that declare it (KEP-5328).

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};
use component_base::shared_gates::DECLARED_FEATURES;

use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered,
    Registration, Resource, Status, StatusResult,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeDeclaredFeatures";
const REASON: &str = "node(s) didn't match Pod's required features";

type Needed = fn(&Pod) -> bool;

/// Features and when a pod needs them.
const FEATURES: &[(&str, Needed)] = &[
    ("RestartAllContainersOnContainerExits", restarts_all_containers),
    ("UserNamespacesHostNetworkSupport", |pod| pod.spec.host_network && pod.spec.host_users == Some(false)),
];

struct NodeDeclaredFeatures;

/// The plugin where nodes declare nothing (gate `NodeDeclaredFeatures` off).
struct Nothing;

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    if !cx.gates.enabled(DECLARED_FEATURES) {
        // A configuration may name it at its points all the same.
        let plugin = Arc::new(Nothing);
        return Ok(Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(Vec::new()));
    }
    let plugin = Arc::new(NodeDeclaredFeatures);
    let events = vec![
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_DECLARED_FEATURE), |_, object| {
            let EventObject::Node { old: Some(old), new: Some(new) } = object else { return Hint::Queue };
            Hint::queue_if(old.status.declared_features != new.status.declared_features)
        }),
        Registration::hinted(Resource::Pod, Action::UPDATE, |pod: &Pod, object| {
            let EventObject::Pod { old: Some(old), new: Some(new) } = object else { return Hint::Skip };
            Hint::queue_if(new.metadata.uid == pod.metadata.uid && !required(old).eq(required(new)))
        }),
    ];
    let plugin = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin).wakes_on(events);
    Ok(plugin.signed_by(|pod| Some(required(&pod.pod).collect::<Vec<_>>().join(","))))
}

fn restarts_all_containers(pod: &Pod) -> bool {
    let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    containers.flat_map(|container| &container.restart_policy_rules).any(|rule| rule.action == "RestartAllContainers")
}

fn required(pod: &Pod) -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(move |(_, needed)| needed(pod)).map(|(name, _)| *name)
}

fn declares(node: &Node, feature: &str) -> bool {
    node.status.declared_features.iter().any(|declared| declared == feature)
}

impl PreFilter for NodeDeclaredFeatures {
    fn pre_filter(&self, _: CycleCx<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(if required(&pod.pod).next().is_none() { PreFiltered::Skip } else { PreFiltered::All })
    }
}

impl Filter for NodeDeclaredFeatures {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let has_all = required(&pod.pod).all(|feature| declares(node.node, feature));
        if has_all { Ok(()) } else { Err(Status::unresolvable(REASON)) }
    }
}

impl PreFilter for Nothing {
    fn pre_filter(&self, _: CycleCx<'_>, _: &mut CycleState, _: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(PreFiltered::Skip)
    }
}

impl Filter for Nothing {
    fn filter(&self, _: &CycleState, _: &PodInfo, _: NodeView<'_>) -> StatusResult {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use component_base::shared_gates::DECLARED_FEATURES;

    use super::*;
    use crate::plugins::tests::{build_cx, verdicts_in};
    use crate::test_objects::{node, pod};

    #[test]
    fn pods_go_where_their_features_are_unless_nodes_declare_none() {
        for (on, declared, expected) in [
            (true, &[][..], REASON),
            (true, &["UserNamespacesHostNetworkSupport"], ""),
            (true, &["RestartAllContainersOnContainerExits"], REASON),
            (false, &[], ""),
        ] {
            let mut incoming = pod("p");
            (incoming.0.spec.host_network, incoming.0.spec.host_users) = (true, Some(false));
            let mut there = node("n");
            there.0.status.declared_features = declared.iter().map(|name| (*name).to_owned()).collect();
            let cx = BuildCx { gates: build_cx().gates.with(DECLARED_FEATURES, on), ..build_cx() };
            assert_eq!(verdicts_in(&cx, &[NAME], incoming, vec![there], vec![]), [expected], "{on} {declared:?}");
        }
    }
}
