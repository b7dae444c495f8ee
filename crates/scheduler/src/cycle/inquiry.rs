//! A decision that waits for the word of remote plugins, such as HTTP extenders. The loop waits with it, as the next decision
//! counts on this one; the pass is locked only while the pure plugins are asked.

use std::sync::Arc;

use super::algorithm::{Decision, Feasible, Look, NoFit, Search};
use super::{Case, ScheduleResult, Scheduler};
use crate::cache::Snapshot;
use crate::framework::{CycleCx, CycleState, Diagnosis, Status};
use crate::node_info::NodeView;

/// A pod, and the nodes that remote plugins are to be asked about.
pub(crate) struct Inquiry {
    scheduler: Arc<Scheduler>,
    case: Case,
    found: Found,
}

/// The nodes that the pure plugins left, by their places in the snapshot.
pub(super) struct Found {
    nodes: Vec<usize>,
    state: CycleState,
    diagnosis: Box<Diagnosis>,
    is_nominated: bool,
}

impl From<Feasible<'_>> for Found {
    fn from(feasible: Feasible<'_>) -> Self {
        let Feasible { nodes, state, diagnosis, is_nominated } = feasible;
        Self { nodes: nodes.iter().map(|node| node.index).collect(), state, diagnosis, is_nominated }
    }
}

impl Found {
    fn views<'a>(&self, snapshot: &'a Snapshot) -> Vec<NodeView<'a>> {
        self.nodes.iter().filter_map(|index| snapshot.view(*index)).collect()
    }
}

impl Inquiry {
    pub(super) fn new(scheduler: Arc<Scheduler>, case: Case, found: Found) -> Self {
        Self { scheduler, case, found }
    }

    /// Asks, and decides.
    pub(super) async fn run(self) -> ScheduleResult {
        let Self { scheduler, case, found } = self;
        let decided = decide(&scheduler, &case, found).await;
        // What a search for pods to evict finds is looked at with no decision in between.
        let _pass = scheduler.pass.lock();
        scheduler.conclude(case, decided)
    }
}

async fn decide(scheduler: &Scheduler, case: &Case, mut found: Found) -> Result<Decision, NoFit> {
    let (profile, info, snapshot) = (&case.profile, &case.pod.info, &*case.snapshot);
    let mut nodes = {
        let views = found.views(snapshot);
        profile.run_remote_filters(&found.state, info, views, &mut found.diagnosis).await
    };
    if found.is_nominated && !nodes.as_ref().is_ok_and(|nodes| !nodes.is_empty()) {
        tracing::debug!(pod = %info.full_name(), error = ?nodes.err(), "Nominated node is not feasible");
        found = scheduler.look(case, Look::Everywhere)?.into();
        let views = found.views(snapshot);
        nodes = profile.run_remote_filters(&found.state, info, views, &mut found.diagnosis).await;
    }
    let nodes = nodes.map_err(NoFit::Failed)?;
    let Found { mut state, diagnosis, .. } = found;
    match nodes.as_slice() {
        [] => return Err(NoFit::Nowhere { state, diagnosis }),
        [only] => return Ok(Decision { node: Arc::clone(&only.info.name), state }),
        _ => {}
    }
    let mut totals = scheduler.score(case, &mut state, &nodes).map_err(NoFit::Failed)?;
    profile.run_remote_scores(&state, info, &nodes, &mut totals).await;
    let node = scheduler.search_of(case).best(&nodes, &totals).map_err(NoFit::Failed)?;
    Ok(Decision { node, state })
}

impl Scheduler {
    /// Asks the pure plugins which nodes can run the pod.
    fn look<'a>(&'a self, case: &'a Case, look: Look) -> Result<Feasible<'a>, NoFit> {
        let mut pass = self.pass.lock();
        let mut known = pass.known_for(case);
        let found = self.search_of(case).feasible(&case.pod.info, look, &mut pass.start, &mut known, &mut |_| None);
        pass.known.put(known, &self.rng);
        found
    }

    /// Asks the pure plugins how well the nodes suit the pod.
    fn score(&self, case: &Case, state: &mut CycleState, nodes: &[NodeView<'_>]) -> Result<Vec<i64>, Status> {
        let mut pass = self.pass.lock();
        let mut known = pass.known_for(case);
        let totals = self.search_of(case).score(state, &case.pod.info, nodes, &mut known);
        pass.known.put(known, &self.rng);
        totals
    }

    pub(super) fn search_of<'a>(&'a self, case: &'a Case) -> Search<'a> {
        let (profile, percentage) = (&*case.profile, case.profile.percentage_of_nodes_to_score);
        Search {
            profile,
            cx: CycleCx { snapshot: &case.snapshot },
            nominated: &case.nominated,
            percentage: percentage.unwrap_or(self.percentage),
            parallelism: self.parallelism,
            rng: &self.rng,
            metrics: &self.metrics,
        }
    }
}
