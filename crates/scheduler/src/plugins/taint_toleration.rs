//! `TaintToleration`: taints keep pods away, or make nodes less liked.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod, Toleration};
use component_helpers::taints::{self, Comparing};

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

struct TaintToleration {
    comparing: Comparing,
}

/// The pod's tolerations that can match a soft taint.
#[derive(Clone)]
struct SoftTolerations(Vec<Toleration>);

pub(super) fn build(cx: &BuildCx, _: &PluginArgs) -> Result<Plugin, PluginError> {
    let comparing = Comparing::by(&cx.gates);
    let plugin = Arc::new(TaintToleration { comparing });
    let events = vec![
        Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_TAINT), move |pod: &Pod, object| {
            let EventObject::Node { old, new: Some(new) } = object else { return Hint::Queue };
            let fits = |node: &Node| tolerated(pod, node, comparing);
            Hint::queue_if(fits(new) && old.as_ref().is_none_or(|old| !fits(old)))
        }),
        Registration::hinted(Resource::Pod, Action::POD_TOLERATION, |pod: &Pod, object| {
            Hint::queue_if(object.pod().is_some_and(|other| other.metadata.uid == pod.metadata.uid))
        }),
    ];
    let points = Plugin::new(NAME).filter(plugin.clone()).pre_score(plugin.clone()).score(plugin);
    Ok(points.wakes_on(events).signed_by(by_tolerations))
}

fn tolerated(pod: &Pod, node: &Node, comparing: Comparing) -> bool {
    taints::first_untolerated(&node.spec.taints, &pod.spec.tolerations, HARD, comparing).is_none()
}

impl Filter for TaintToleration {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if tolerated(&pod.pod, node.node, self.comparing) { Ok(()) } else { Err(Status::unresolvable(REASON)) }
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
        let count = taints.filter(|taint| !taints::any_tolerates(tolerations, taint, self.comparing)).count();
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

#[cfg(test)]
mod tests {
    use component_base::Gates;
    use component_base::shared_gates::COMPARING_TOLERATIONS;

    use super::*;

    #[test]
    fn numbers_are_compared_where_that_is_on() {
        let mut node = Node::default();
        node.spec.taints.push(api_types::core_v1::Taint {
            key: "sla".into(),
            value: "99".into(),
            effect: "NoSchedule".into(),
            ..Default::default()
        });
        let pod = |least: &str| {
            let own =
                Toleration { key: "sla".into(), operator: "Gt".into(), value: least.into(), ..Default::default() };
            let mut pod = Pod::default();
            pod.spec.tolerations.push(own);
            pod
        };
        for (on, least, expected) in [(true, "90", true), (true, "99", false), (false, "90", false)] {
            let comparing = Comparing::by(&Gates::default().with(COMPARING_TOLERATIONS, on));
            assert_eq!(tolerated(&pod(least), &node, comparing), expected, "{on} {least}");
        }
    }
}
