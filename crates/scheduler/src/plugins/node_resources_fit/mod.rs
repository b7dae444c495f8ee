//! `NodeResourcesFit`: a node must have room for what the pod asks for; how full it gets is a score. Resources that a node
//! offers by devices only are `DynamicResources`' to find (KEP-5004).

mod device_scores;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};
use api_types::resource_v1::DeviceClass;
use api_types::scheduler_config_v1::NodeResourcesFitArgs;
use component_helpers::pod_requests;
use component_helpers::resource_names::can_be_devices;

use super::resource_scores::{Strategy, Weighed};
use crate::extended_resources::{EXTENDED_RESOURCE, ExtendedResources};
use crate::framework::{
    Action, BuildCx, Code, CycleCx, CycleState, EventObject, Filter, Hint, PlacementScore, Plugin, PluginError,
    PreFilter, PreFiltered, PreScore, PreScored, Proposal, Reason, Registration, Resource, Score, Status, StatusResult,
    by_resources, is_placed,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::{PodInfo, taken};
use crate::resources::{Resources, is_extended};
use device_scores::{DeviceScores, PodDevices};

pub(super) const NAME: &str = "NodeResourcesFit";

struct NodeResourcesFit {
    ignored: Vec<String>,
    ignored_groups: Vec<String>,
    strategy: Strategy,
    /// For the placements of groups, whatever the strategy for nodes is.
    filling: Strategy,
    extended: ExtendedResources,
    /// Where the strategy names resources that devices may stand for.
    devices: Option<DeviceScores>,
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let default = NodeResourcesFitArgs::default();
    let args = if let PluginArgs::NodeResourcesFit(args) = args { args } else { &default };
    let strategy = args.scoring_strategy.as_ref().ok_or(PluginError::NoScoringStrategy)?;
    let strategy = Strategy::of(strategy)?;
    let scores_devices = cx.gates.enabled(EXTENDED_RESOURCE) && strategy.names().any(can_be_devices);
    let plugin = Arc::new(NodeResourcesFit {
        ignored: args.ignored_resources.clone(),
        ignored_groups: args.ignored_resource_groups.clone(),
        filling: strategy.filling(),
        strategy,
        extended: ExtendedResources::of(cx),
        devices: scores_devices.then(|| DeviceScores::of(cx)),
    });
    let empty_node = Arc::clone(&plugin);
    let mut events = vec![
        Registration::hinted(Resource::Pod, Action::DELETE, |_, object| {
            Hint::queue_if(object.pod().is_some_and(|deleted| is_placed(deleted)))
        }),
        Registration::hinted(Resource::Pod, Action::POD_SCALE_DOWN, scaled_down),
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_ALLOCATABLE), move |pod: &Pod, object| {
            let EventObject::Node { old, new: Some(new) } = object else { return Hint::Queue };
            Hint::queue_if(empty_node.gains(pod, old.as_deref(), new))
        }),
    ];
    if cx.gates.enabled(EXTENDED_RESOURCE) {
        let changes = Action::ADD.and(Action::UPDATE);
        events.push(Registration::hinted(Resource::of::<DeviceClass>(), changes, offered));
    }
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone()).pre_score(plugin.clone());
    Ok(points.score(plugin.clone()).placement_score(plugin).wakes_on(events).signed_by(by_resources))
}

/// A class stands for something that the pod asks for, as it did not before.
fn offered(pod: &Pod, object: &EventObject) -> Hint {
    let (old, Some(new)) = object.change::<DeviceClass>() else { return Hint::Queue };
    let before: Vec<String> = old.into_iter().flat_map(ExtendedResources::names_of).collect();
    let wanted = pod_requests::requests(pod);
    let is_news = |name: &String| !before.contains(name) && wanted.get(name).is_some_and(|amount| amount.sign() > 0);
    Hint::queue_if(ExtendedResources::names_of(new).any(|name| is_news(&name)))
}

/// The pod itself asks for less, or a placed one gave back something that this pod asks for.
fn scaled_down(pod: &Pod, object: &EventObject) -> Hint {
    let EventObject::Pod { old: Some(old), new: Some(new) } = object else { return Hint::Queue };
    if new.metadata.uid == pod.metadata.uid {
        return Hint::Queue;
    }
    if new.spec.node_name.is_empty() {
        return Hint::Skip;
    }
    let (wanted, before, after) = (pod_requests::requests(pod), taken(old), taken(new));
    let shrank = |name: &str| {
        pod_requests::amount(&after, name).milli_value() < pod_requests::amount(&before, name).milli_value()
    };
    Hint::queue_if(wanted.iter().any(|(name, amount)| amount.sign() > 0 && shrank(name)))
}

/// How one amount compares with what is free and with what there is at all.
pub(super) fn short(wanted: i64, allocatable: i64, requested: i64) -> Option<Code> {
    if wanted == 0 || wanted <= allocatable - requested {
        return None;
    }
    Some(if wanted > allocatable { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable })
}

impl NodeResourcesFit {
    fn is_ignored(&self, name: &str) -> bool {
        is_extended(name)
            && (self.ignored.iter().any(|ignored| ignored == name)
                || name
                    .split_once('/')
                    .is_some_and(|(group, _)| self.ignored_groups.iter().any(|other| other == group)))
    }

    /// Calls `found` for each resource that is short.
    fn shortages(
        &self,
        wanted: &Resources,
        allocatable: &Resources,
        requested: &Resources,
        pods: usize,
        mut found: impl FnMut(Reason, Code),
    ) {
        if i64::try_from(pods).unwrap_or(i64::MAX).saturating_add(1) > allocatable.pods {
            found("Too many pods".into(), Code::Unschedulable);
        }
        if wanted.asks_nothing() {
            return;
        }
        let columns = [
            ("Insufficient cpu", wanted.milli_cpu, allocatable.milli_cpu, requested.milli_cpu),
            ("Insufficient memory", wanted.memory, allocatable.memory, requested.memory),
            (
                "Insufficient ephemeral-storage",
                wanted.ephemeral_storage,
                allocatable.ephemeral_storage,
                requested.ephemeral_storage,
            ),
        ];
        for (reason, wanted, allocatable, requested) in columns {
            if let Some(code) = short(wanted, allocatable, requested) {
                found(reason.into(), code);
            }
        }
        for (name, amount) in wanted.scalars.iter().filter(|(name, _)| !self.is_ignored(name)) {
            let there = allocatable.scalar(name);
            if let Some(code) = short(*amount, there, requested.scalar(name))
                && !self.extended.is_delegated(name, there)
            {
                found(format!("Insufficient {name}").into(), code);
            }
        }
    }

    /// Whether a node change gave room that the pod could use.
    fn gains(&self, pod: &Pod, old: Option<&Node>, new: &Node) -> bool {
        let wanted = Resources { pods: 0, ..Resources::of(&pod_requests::requests(pod)) };
        let after = Resources::of(&new.status.allocatable);
        let mut fits = true;
        self.shortages(&wanted, &after, &Resources::default(), 0, |_, _| fits = false);
        let Some(old) = old.filter(|_| fits) else { return fits };
        let before = Resources::of(&old.status.allocatable);
        after.pods > before.pods
            || (wanted.milli_cpu > 0 && after.milli_cpu > before.milli_cpu)
            || (wanted.memory > 0 && after.memory > before.memory)
            || (wanted.ephemeral_storage > 0 && after.ephemeral_storage > before.ephemeral_storage)
            || wanted.scalars.iter().any(|(name, amount)| {
                let there = after.scalar(name);
                *amount > 0 && (there > before.scalar(name) || self.extended.is_delegated(name, there))
            })
    }
}

impl PreFilter for NodeResourcesFit {
    /// The request was computed when the pod arrived; there is nothing left to do, and nothing to skip.
    fn pre_filter(&self, _: CycleCx<'_>, _: &mut CycleState, _: &PodInfo) -> Result<PreFiltered, Status> {
        Ok(PreFiltered::All)
    }
}

impl Filter for NodeResourcesFit {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let mut reasons = Vec::new();
        let mut worst = Code::Unschedulable;
        self.shortages(&pod.request, &node.allocatable, &node.requested, node.pods.len(), |reason, code| {
            reasons.push(reason);
            if code == Code::UnschedulableAndUnresolvable {
                worst = code;
            }
        });
        if reasons.is_empty() { Ok(()) } else { Err(Status::with_reasons(worst, reasons)) }
    }

    fn is_local(&self) -> bool {
        true
    }

    /// Whether a node offers something by devices depends on the classes that there are.
    fn is_local_for(&self, pod: &PodInfo) -> bool {
        !pod.request.scalars.iter().any(|(name, _)| self.extended.class_of(name).is_some())
    }
}

impl PreScore for NodeResourcesFit {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        if let Some(devices) = &self.devices {
            state.put(devices.for_pod(pod, &self.extended));
        }
        Ok(PreScored::Ready)
    }
}

impl Score for NodeResourcesFit {
    fn score(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let devices = state.get::<PodDevices>();
        Ok(self.strategy.score(|name| {
            let (allocatable, used) = amounts(node, name);
            let asked = match name {
                "cpu" => pod.score_request.milli_cpu,
                "memory" => pod.score_request.memory,
                name => pod.request.named(name),
            };
            let scalar = !matches!(name, "cpu" | "memory" | "ephemeral-storage");
            if allocatable == 0 && asked > 0 && scalar {
                let (all, taken) = devices.and_then(|devices| devices.of(name, node))?;
                return (all > 0).then_some(Weighed { allocatable: all, requested: taken + asked });
            }
            let counts = allocatable > 0 && !(scalar && asked == 0);
            counts.then_some(Weighed { allocatable, requested: used + asked })
        }))
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl PlacementScore for NodeResourcesFit {
    /// The fuller the nodes of the placement are together, the better: large domains stay free for large groups.
    fn score(&self, proposal: &Proposal) -> i64 {
        self.filling.score(|name| {
            let is_asked = || proposal.pods.iter().any(|pod| pod.request.named(name) > 0);
            if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !is_asked() {
                return None;
            }
            let sum = proposal.cluster.views().fold((0_i64, 0_i64), |(allocatable, used), node| {
                let (own, taken) = amounts(node, name);
                (allocatable.saturating_add(own), used.saturating_add(taken))
            });
            (sum.0 > 0).then_some(Weighed { allocatable: sum.0, requested: sum.1 })
        })
    }
}

/// How much a node has of a resource, and how much of it counts as taken.
fn amounts(node: NodeView<'_>, name: &str) -> (i64, i64) {
    match name {
        "cpu" => (node.allocatable.milli_cpu, node.non_zero.milli_cpu),
        "memory" => (node.allocatable.memory, node.non_zero.memory),
        name => (node.allocatable.named(name), node.requested.named(name)),
    }
}
