//! Finding the node for a pod: filter until enough nodes fit, then score those.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use base::Rng;
use tokio::time::Instant;

use super::batching::{Batch, Counted, LastNode};
use crate::framework::{Asked, Code, CycleCx, CycleState, Diagnosis, FilterTally, Profile, Restriction, Status};
use crate::known_answers::ShapeAnswers;
use crate::metrics::SchedulerMetrics;
use crate::node_info::NodeView;
use crate::parallel::Parallelism;
use crate::plugins;
use crate::pod_info::{NominatedPods, PodInfo};

/// With fewer nodes all are looked at, and no fewer feasible ones are ever looked for.
const MINIMUM_FEASIBLE: usize = 100;
/// The smallest share that the number of nodes leads to.
const MINIMUM_PERCENTAGE: usize = 5;

/// What a search has to go by.
pub(super) struct Search<'a> {
    pub(super) profile: &'a Profile,
    pub(super) cx: CycleCx<'a>,
    pub(super) nominated: &'a NominatedPods,
    pub(super) percentage: i32,
    pub(super) parallelism: Parallelism,
    pub(super) rng: &'a Rng,
    pub(super) metrics: &'a SchedulerMetrics,
}

/// The node for a pod, and what plugins remember of it.
pub(super) struct Decision {
    pub(super) node: Arc<str>,
    pub(super) state: CycleState,
}

/// Why there is none.
pub(super) enum NoFit {
    /// Every node was rejected.
    Nowhere { state: CycleState, diagnosis: Box<Diagnosis> },
    /// Something went wrong.
    Failed(Status),
}

impl NoFit {
    /// Whether pods that go could make room for the pod.
    pub(super) fn can_be_helped(&self) -> bool {
        let Self::Nowhere { diagnosis, .. } = self else { return false };
        (0..diagnosis.nodes).any(|index| diagnosis.code_of(index) == Code::Unschedulable)
    }
}

/// How many feasible nodes are enough.
pub(super) fn wanted_feasible(nodes: usize, percentage: i32) -> usize {
    if nodes < MINIMUM_FEASIBLE {
        return nodes;
    }
    let share = match usize::try_from(percentage) {
        Ok(share) if share > 0 => share,
        _ => 50_usize.saturating_sub(nodes / 125).max(MINIMUM_PERCENTAGE),
    };
    (nodes * share / 100).max(MINIMUM_FEASIBLE)
}

/// The nodes that can run a pod, as far as the pure plugins know.
pub(super) struct Feasible<'a> {
    pub(super) nodes: Vec<NodeView<'a>>,
    pub(super) state: CycleState,
    /// Why the others cannot.
    pub(super) diagnosis: Box<Diagnosis>,
    /// Whether only the node was looked at that was made free for the pod.
    pub(super) is_nominated: bool,
}

/// Where to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// At the node that was made free for the pod, or is the best by a hint; at all where it does not fit there.
    NominatedFirst,
    /// At all nodes.
    Everywhere,
}

impl<'a> Search<'a> {
    /// Finds the node; `start` is where the look at the nodes begins, and moves on. What is found out about nodes for pods
    /// of this shape is added to `known`.
    pub(super) fn find(
        &self,
        pod: &PodInfo,
        start: &mut usize,
        known: &mut ShapeAnswers,
        batch: &mut Batch,
        now: Instant,
    ) -> Result<Decision, NoFit> {
        let signature = self.profile.signature(pod);
        let counted = Counted { metrics: self.metrics, profile: &self.profile.name };
        let mut hinted = None;
        let mut hint = |state: &CycleState| {
            let asked = Instant::now();
            hinted = batch.hint(signature.as_ref(), now, |node| self.last_node(state, pod, node), &counted);
            self.metrics.hint_looked_for(&self.profile.name, hinted.is_some(), asked.elapsed());
            hinted.clone()
        };
        let found = self.feasible(pod, Look::NominatedFirst, start, known, &mut hint);
        let decided = found.and_then(|found| self.choose(pod, found, known, signature.is_some()));
        match decided {
            Ok((decision, others)) => {
                let chosen = Instant::now();
                batch.chose(signature, &decision.node, hinted.as_deref(), others, now, &counted);
                self.metrics.results_stored(&self.profile.name, chosen.elapsed());
                Ok(decision)
            }
            Err(no_fit) => {
                batch.failed();
                Err(no_fit)
            }
        }
    }

    /// The best of the nodes that can run the pod; where they are to be ranked, the others, too, the best first.
    pub(super) fn choose(
        &self,
        pod: &PodInfo,
        found: Feasible<'a>,
        known: &mut ShapeAnswers,
        is_ranked: bool,
    ) -> Result<(Decision, VecDeque<Arc<str>>), NoFit> {
        let Feasible { nodes, mut state, diagnosis, .. } = found;
        let mut others = VecDeque::new();
        let node = match nodes.as_slice() {
            [] => return Err(NoFit::Nowhere { state, diagnosis }),
            [only] => Arc::clone(&only.info.name),
            nodes => {
                let totals = self.score(&mut state, pod, nodes, known).map_err(NoFit::Failed)?;
                let best = self.best(nodes, &totals).map_err(NoFit::Failed)?;
                if is_ranked {
                    let mut ranked: Vec<_> =
                        nodes.iter().zip(totals).filter(|(node, _)| node.info.name != best).collect();
                    ranked.sort_by_key(|(_, total)| Reverse(*total));
                    others.extend(ranked.into_iter().map(|(node, _)| Arc::clone(&node.info.name)));
                }
                best
            }
        };
        Ok((Decision { node, state }, others))
    }

    /// What has become of the node that a pod like this one took.
    fn last_node(&self, state: &CycleState, pod: &PodInfo, name: &str) -> LastNode {
        let Some(node) = self.cx.snapshot.by_name(name) else { return LastNode::Missing };
        let is_full = self.run_filters(state, pod, node).is_err_and(|status| status.code.is_rejection());
        if is_full { LastNode::Full } else { LastNode::HasRoom }
    }

    /// Finds enough nodes that can run the pod; see [`Search::find`]. `hint` may know one that is looked at alone.
    pub(super) fn feasible(
        &self,
        pod: &PodInfo,
        look: Look,
        start: &mut usize,
        known: &mut ShapeAnswers,
        hint: &mut dyn FnMut(&CycleState) -> Option<Arc<str>>,
    ) -> Result<Feasible<'a>, NoFit> {
        if self.cx.snapshot.is_empty() {
            // Upstream gives no rejecting plugin here, so that the pod is tried again soon.
            return Err(NoFit::Failed(Status::unschedulable("no nodes available to schedule pods")));
        }
        let mut state = CycleState::default();
        state.is_sampled = self.profile.measured.begins_sample();
        let mut diagnosis = Box::new(Diagnosis { nodes: self.cx.snapshot.len(), ..Diagnosis::default() });
        let pre_filter = || self.profile.run_pre_filter(self.cx, &mut state, pod, &mut diagnosis);
        let restriction = match self.profile.timed(self.metrics, "PreFilter", pre_filter) {
            Ok(restriction) => restriction,
            Err(status) if !status.code.is_rejection() => return Err(NoFit::Failed(status)),
            Err(status) => {
                diagnosis.blame(&status);
                diagnosis.pre_filter_message = status.message();
                diagnosis.absent = Some(status);
                return Err(NoFit::Nowhere { state, diagnosis });
            }
        };
        let hint = hint(&state);
        if look == Look::NominatedFirst
            && let Some(node) = self.first_node(&state, pod, hint.as_deref())
        {
            return Ok(Feasible { nodes: vec![node], state, diagnosis, is_nominated: true });
        }
        let filter = || self.filter(&state, pod, &restriction, &mut diagnosis, start, known);
        let nodes = self.profile.timed(self.metrics, "Filter", filter).map_err(NoFit::Failed)?;
        Ok(Feasible { nodes, state, diagnosis, is_nominated: false })
    }

    /// The node that was made free for the pod, else the one that is the best by a hint, if it fits there now.
    fn first_node(&self, state: &CycleState, pod: &PodInfo, hint: Option<&str>) -> Option<NodeView<'a>> {
        let nominated = pod.pod.status.nominated_node_name.as_str();
        let nominated = if nominated.is_empty() { hint? } else { nominated };
        let node = self.cx.snapshot.by_name(nominated)?;
        match self.run_filters(state, pod, node) {
            Ok(()) => Some(node),
            Err(status) => {
                tracing::debug!(pod = %pod.full_name(), node = nominated, reason = %status, "Nominated node is not feasible");
                None
            }
        }
    }

    fn nominated_to(&self, node: NodeView<'_>) -> &'a [Arc<PodInfo>] {
        self.nominated.get(&*node.info.name).map(Vec::as_slice).unwrap_or_default()
    }

    fn run_filters(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> Result<(), Status> {
        self.profile.run_filters_with_nominated(state, pod, node, self.nominated_to(node))
    }

    /// Looks at nodes from `start` on until enough fit.
    fn filter(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        restriction: &Restriction,
        diagnosis: &mut Diagnosis,
        start: &mut usize,
        known: &mut ShapeAnswers,
    ) -> Result<Vec<NodeView<'a>>, Status> {
        let snapshot = self.cx.snapshot;
        let all: Option<Vec<usize>> =
            restriction.nodes.as_ref().map(|names| names.iter().filter_map(|name| snapshot.index_of(name)).collect());
        let count = all.as_ref().map_or(snapshot.len(), Vec::len);
        diagnosis.absent = restriction.absent_status();
        if restriction.nodes.is_some() {
            diagnosis.unschedulable_plugins.extend(&restriction.plugins);
        }
        let chooses = self.profile.chooses_among_nodes();
        let wanted = if !chooses { 1 } else { wanted_feasible(count, self.percentage) };
        let local = self.profile.local_filters();
        let feasible = Vec::with_capacity(wanted);
        let tally = FilterTally::default();
        let mut pass = Pass { search: self, state, pod, diagnosis, known, local, feasible, failure: None, tally };
        let passes_over_full = self.profile.filter.iter().any(|at| at.name == plugins::FIT);
        let mut full = Vec::new();
        let mut places = (0..count).map(|step| (*start + step) % count);
        let mut some = Vec::new();
        // As many at a time as may still be right: none of them is looked at for nothing.
        while pass.failure.is_none() && pass.feasible.len() < wanted {
            some.clear();
            for place in places.by_ref() {
                let Some(index) = all.as_ref().map_or(Some(place), |all| all.get(place).copied()) else { continue };
                if passes_over_full && !snapshot.has_room(index, &pod.request) {
                    full.push(index);
                    continue;
                }
                some.push(index);
                if some.len() >= wanted - pass.feasible.len() {
                    break;
                }
            }
            if some.is_empty() {
                break;
            }
            pass.look_at(&some);
        }
        *start = (*start + pass.feasible.len() + pass.diagnosis.statuses.len() + full.len()) % snapshot.len().max(1);
        // Why full nodes are not right, and by whose word, only matters when no other node is.
        if pass.feasible.is_empty() && pass.failure.is_none() {
            pass.look_at(&full);
        }
        self.profile.count_filters(&pass.tally, state.skip_filter);
        pass.failure.map_or(Ok(pass.feasible), Err)
    }

    /// The total of each node's scores by the pure plugins.
    pub(super) fn score(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'a>],
        known: &mut ShapeAnswers,
    ) -> Result<Vec<i64>, Status> {
        let profile = self.profile;
        profile.timed(self.metrics, "PreScore", || profile.run_pre_score(self.cx, state, pod, nodes))?;
        profile.timed(self.metrics, "Score", || profile.run_score(state, pod, nodes, known))
    }

    /// The node with the highest score; any of those that share it.
    pub(super) fn best(&self, nodes: &[NodeView<'a>], totals: &[i64]) -> Result<Arc<str>, Status> {
        let highest = totals.iter().max();
        let equals = || nodes.iter().zip(totals).filter(|(_, total)| Some(*total) == highest);
        let count = u64::try_from(equals().count()).unwrap_or(u64::MAX);
        let place = if count > 1 { self.rng.below(count) } else { 0 };
        let chosen = equals().nth(usize::try_from(place).unwrap_or(0)).map(|(node, _)| Arc::clone(&node.info.name));
        chosen.ok_or_else(|| Status::error("empty priorityList"))
    }
}

/// One look at the nodes.
struct Pass<'a, 'b> {
    search: &'b Search<'a>,
    state: &'b CycleState,
    pod: &'b PodInfo,
    diagnosis: &'b mut Diagnosis,
    known: &'b mut ShapeAnswers,
    /// How many filters are local.
    local: usize,
    feasible: Vec<NodeView<'a>>,
    failure: Option<Status>,
    /// How often the filters were asked.
    tally: FilterTally,
}

/// New threads are not worth it for fewer nodes each.
const NODES_FOR_THREAD: usize = 128;

impl<'a> Pass<'a, '_> {
    /// Looks at nodes, in this order, until something goes wrong.
    fn look_at(&mut self, nodes: &[usize]) {
        let snapshot = self.search.cx.snapshot;
        let views = nodes.iter().filter_map(|index| snapshot.view(*index));
        let fresh = if self.search.parallelism.count() > 1 {
            views.clone().filter(|node| !self.known.fits(*node)).count()
        } else {
            0
        };
        let threads = self.search.parallelism.for_work(fresh, NODES_FOR_THREAD);
        if threads.count() == 1 {
            for node in views {
                let verdict = self.verdict(node);
                self.note(node, verdict);
                if self.failure.is_some() {
                    break;
                }
            }
            return;
        }
        let views: Vec<_> = views.collect();
        let verdicts = threads.map(&views, |node| self.verdict(*node));
        for (node, verdict) in views.into_iter().zip(verdicts) {
            self.note(node, verdict);
        }
    }

    fn note(&mut self, node: NodeView<'a>, Asked { filters, outcome: verdict }: Asked) {
        self.tally.add(&filters);
        if self.failure.is_some() {
            return;
        }
        match verdict {
            Ok(()) => {
                if self.search.nominated_to(node).is_empty() {
                    self.known.note_fit(node);
                }
                self.feasible.push(node);
            }
            Err(status) if status.code == Code::Error => self.failure = Some(status),
            Err(status) => {
                self.diagnosis.blame(&status);
                self.diagnosis.statuses.insert(node.index, status);
            }
        }
    }

    /// The filters' word. Where pods wait for the node, what is known of the node alone does not help.
    fn verdict(&self, node: NodeView<'_>) -> Asked {
        if !self.search.nominated_to(node).is_empty() {
            // Counted where the filters are run with those pods and without.
            return Asked { filters: 0..0, outcome: self.search.run_filters(self.state, self.pod, node) };
        }
        let first = if self.known.fits(node) { self.local } else { 0 };
        self.search.profile.run_filters_from(first, self.state, self.pod, node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_nodes_adapts() {
        for (nodes, percentage, expected) in [
            (50, 0, 50),
            (100, 0, 100),
            (500, 0, 230),
            (1000, 0, 420),
            (2000, 0, 680),
            (5000, 0, 500),
            (6000, 0, 300),
            (1000, 70, 700),
            (1000, 5, 100),
            (1000, 100, 1000),
        ] {
            assert_eq!(wanted_feasible(nodes, percentage), expected, "{nodes} {percentage}");
        }
    }
}
