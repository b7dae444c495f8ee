//! `NodeAffinity`: node selectors and node affinity, the pod's own and what the configuration adds.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_machinery::json;
use api_types::core_v1::{Node, NodeAffinity as Affinity, NodeSelectorTerm, Pod, PreferredSchedulingTerm};
use component_helpers::node_affinity::{accepts, selector_matches, term_matches};

use crate::framework::{
    Action, BuildCx, CycleCx, CycleState, EventObject, Filter, Hint, Plugin, PluginError, PreFilter, PreFiltered,
    PreScore, PreScored, Registration, Resource, Score, Status, StatusResult, normalize_by_maximum,
};
use crate::node_info::NodeView;
use crate::plugin_args::PluginArgs;
use crate::pod_info::PodInfo;

pub(super) const NAME: &str = "NodeAffinity";
const REASON_POD: &str = "node(s) didn't match Pod's node affinity/selector";
const REASON_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const REASON_CONFLICT: &str = "pod affinity terms conflict";

struct NodeAffinity {
    added: Option<Affinity>,
}

pub(super) fn build(_: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let added = match args {
        PluginArgs::NodeAffinity(args) => args.added_affinity.clone(),
        _ => None,
    };
    let plugin = Arc::new(NodeAffinity { added });
    let hint = Arc::clone(&plugin);
    let events =
        vec![Registration::hinted(Resource::Node, Action::ADD.and(Action::NODE_LABEL), move |pod: &Pod, object| {
            let EventObject::Node { old, new: Some(new) } = object else { return Hint::Queue };
            let fits = |node: &Node| hint.enforced(node) && accepts(pod, node);
            Hint::queue_if(fits(new) && old.as_ref().is_none_or(|old| !fits(old)))
        })];
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone());
    Ok(points.pre_score(plugin.clone()).score(plugin).wakes_on(events).signed_by(|pod| Some(signature(&pod.pod))))
}

fn own(pod: &Pod) -> Option<&Affinity> {
    pod.spec.affinity.as_ref()?.node_affinity.as_ref()
}

/// The node names that all terms together leave, if every term names some.
fn named_nodes(terms: &[NodeSelectorTerm]) -> Option<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for term in terms {
        let mut names: Option<BTreeSet<String>> = None;
        for field in term.match_fields.iter().filter(|field| field.key == "metadata.name" && field.operator == "In") {
            let values: BTreeSet<String> = field.values.iter().cloned().collect();
            names = Some(names.map_or_else(|| values.clone(), |known| known.intersection(&values).cloned().collect()));
        }
        all.extend(names?);
    }
    Some(all)
}

impl NodeAffinity {
    fn enforced(&self, node: &Node) -> bool {
        let required =
            self.added.as_ref().and_then(|added| added.required_during_scheduling_ignored_during_execution.as_ref());
        required.is_none_or(|selector| selector_matches(selector, &node.metadata.labels, &node.metadata.name))
    }

    fn preferred<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a PreferredSchedulingTerm> {
        let affinities = own(pod).into_iter().chain(&self.added);
        affinities
            .flat_map(|affinity| &affinity.preferred_during_scheduling_ignored_during_execution)
            .filter(|term| term.weight != 0)
    }
}

/// What the pod asks of a node.
fn signature(pod: &Pod) -> String {
    let affinity = pod.spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    format!("{:?}{:?}", pod.spec.node_selector, affinity.map(|affinity| json::encode(affinity)))
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, _: CycleCx<'_>, _: &mut CycleState, pod: &PodInfo) -> Result<PreFiltered, Status> {
        let required = own(&pod.pod).and_then(|own| own.required_during_scheduling_ignored_during_execution.as_ref());
        let enforced = self
            .added
            .as_ref()
            .is_some_and(|added| added.required_during_scheduling_ignored_during_execution.is_some());
        if required.is_none() && pod.pod.spec.node_selector.is_empty() && !enforced {
            return Ok(PreFiltered::Skip);
        }
        let terms = required.map(|selector| selector.node_selector_terms.as_slice()).unwrap_or_default();
        match named_nodes(terms) {
            Some(names) if !terms.is_empty() && names.is_empty() => Err(Status::unresolvable(REASON_CONFLICT)),
            Some(names) if !terms.is_empty() => Ok(PreFiltered::Only(names)),
            _ => Ok(PreFiltered::All),
        }
    }
}

impl Filter for NodeAffinity {
    fn filter(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        if !self.enforced(node.node) {
            return Err(Status::unresolvable(REASON_ENFORCED));
        }
        if accepts(&pod.pod, node.node) { Ok(()) } else { Err(Status::unresolvable(REASON_POD)) }
    }

    fn is_local(&self) -> bool {
        true
    }
}

impl PreScore for NodeAffinity {
    fn pre_score(
        &self,
        _: CycleCx<'_>,
        _: &mut CycleState,
        pod: &PodInfo,
        _: &[NodeView<'_>],
    ) -> Result<PreScored, Status> {
        Ok(if self.preferred(&pod.pod).next().is_some() { PreScored::Ready } else { PreScored::Skip })
    }
}

impl Score for NodeAffinity {
    fn score(&self, _: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<i64, Status> {
        let labels = &node.node.metadata.labels;
        let matching = self.preferred(&pod.pod).filter(|term| term_matches(&term.preference, labels, &node.name));
        Ok(matching.map(|term| i64::from(term.weight)).sum())
    }

    fn normalize(&self, _: &CycleState, _: &PodInfo, _: &[NodeView<'_>], scores: &mut [i64]) {
        normalize_by_maximum(scores);
    }

    fn is_local(&self) -> bool {
        true
    }
}
