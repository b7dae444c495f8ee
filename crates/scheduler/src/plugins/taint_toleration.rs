//! `TaintToleration`: taints keep pods away, or make nodes less liked.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod, Toleration};
use component_helpers::taints;

use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, MAX_SCORE, Plugin, PluginError, PreScore,
    PreScored, Registration, Resource, Score, Status, StatusResult, by_tolerations,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "TaintToleration";
const REASON: &str = "node(s) had untolerated taint(s)";
const HARD: &[&str] = &["NoSchedule", "NoExecute"];
const SOFT: &str = "PreferNoSchedule";

struct TaintToleration;

/// The pod's tolerations that can match a soft taint.
#[derive(Clone)]
struct SoftTolerations(Vec<Toleration>);

pub(super) fn build(_: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let plugin = Arc::new(TaintToleration);
    let events = vec![
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_TAINT), |pod: &Pod, object| {
            let EventObject::Node { old, new: Some(new) } = object else { return Hint::Queue };
            Hint::queue_if(tolerated(pod, new) && old.as_ref().is_none_or(|old| !tolerated(pod, old)))
        }),
        Registration::hinted(Resource::Pod, Action::POD_TOLERATION, |pod: &Pod, object| {
            Hint::queue_if(object.pod().is_some_and(|other| other.metadata.uid == pod.metadata.uid))
        }),
    ];
    let points = Plugin::new(NAME).filter(plugin.clone()).pre_score(plugin.clone()).score(plugin);
    Ok(points.wakes_on(events).signed_by(by_tolerations))
}

fn tolerated(pod: &Pod, node: &Node) -> bool {
    taints::first_untolerated(&node.spec.taints, &pod.spec.tolerations, HARD).is_none()
}

impl Filter for TaintToleration {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if tolerated(&pod.pod, node.node) { Ok(()) } else { Err(Status::unresolvable(REASON)) }
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl PreScore for TaintToleration {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        let tolerations = pod.pod.spec.tolerations.iter();
        let soft = tolerations.filter(|toleration| toleration.effect.is_empty() || toleration.effect == SOFT);
        state.put(SoftTolerations(soft.cloned().collect()));
        Ok(PreScored::Ready)
    }
}

impl Score for TaintToleration {
    fn score(&self, state: &CycleState, _: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let tolerations = state.get::<SoftTolerations>().map(|soft| soft.0.as_slice()).unwrap_or_default();
        let taints = node.node.spec.taints.iter().filter(|taint| taint.effect == SOFT);
        let count = taints.filter(|taint| !taints::any_tolerates(tolerations, taint)).count();
        Ok(i64::try_from(count).unwrap_or(i64::MAX))
    }

    fn normalize(&self, _: &CycleState, _: &PodInfo, _: &[NodeView<'_>], scores: &mut [i64]) {
        let highest = scores.iter().copied().max().unwrap_or(0);
        for score in scores {
            *score = if highest == 0 { MAX_SCORE } else { MAX_SCORE - *score * MAX_SCORE / highest };
        }
    }

    fn is_local(&self) -> bool {
        true
    }
}
