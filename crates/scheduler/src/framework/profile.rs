//! A profile: the plugins of each extension point in their order, and how each point is run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::resource_v1::{DeviceClass, ResourceClaim};
use api_types::storage_v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};
use tokio::time::Instant;

use super::candidate::Candidate;
use super::cycle_state::{CycleState, PluginMask};
use super::diagnosis::Diagnosis;
use super::event::{Action, Registration, Resource};
use super::placements::{PlacementGenerate, PlacementScore};
use super::plugin_metrics::{Asked, PluginMetrics, Started};
use super::points::{
    Bind, CycleCx, Filter, MAX_SCORE, Nomination, Permit, Permitted, Plugin, PostBind, PostFilter, PostFilterCx,
    PostFiltered, PreBind, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, QueueSort, Reserve, Score,
};
use super::remote::{RemoteBind, RemoteFilter, RemotePreempt, RemoteScore};
use super::signature::{Sign, Signature};
use super::status::{Code, Reason, Status, StatusResult};
use crate::known_answers::ShapeAnswers;
use crate::metrics::SchedulerMetrics;
use crate::node_info::NodeView;
use crate::pod_info::PodInfo;

/// A plugin at one point.
pub struct At<T: ?Sized> {
    /// The plugin's place in the profile.
    pub place: usize,
    /// Its name.
    pub name: &'static str,
    /// The factor of its scores; 1 elsewhere.
    pub weight: i64,
    /// Itself.
    pub plugin: Arc<T>,
}

/// What pods of one scheduler name go through.
pub struct Profile {
    /// The scheduler name.
    pub name: String,
    /// Share of nodes to find feasible; none takes the scheduler's.
    pub percentage_of_nodes_to_score: Option<i32>,
    /// In order.
    pub pre_enqueue: Vec<At<dyn PreEnqueue>>,
    /// The order of the queue.
    pub queue_sort: Arc<dyn QueueSort>,
    /// In order.
    pub pre_filter: Vec<At<dyn PreFilter>>,
    /// In order.
    pub filter: Vec<At<dyn Filter>>,
    /// In order.
    pub post_filter: Vec<At<dyn PostFilter>>,
    /// In order.
    pub pre_score: Vec<At<dyn PreScore>>,
    /// In order.
    pub score: Vec<At<dyn Score>>,
    /// In order.
    pub reserve: Vec<At<dyn Reserve>>,
    /// In order.
    pub permit: Vec<At<dyn Permit>>,
    /// In order.
    pub pre_bind: Vec<At<dyn PreBind>>,
    /// In order.
    pub bind: Vec<At<dyn Bind>>,
    /// In order.
    pub post_bind: Vec<At<dyn PostBind>>,
    /// One at most.
    pub placement_generate: Vec<At<dyn PlacementGenerate>>,
    /// In order.
    pub placement_score: Vec<At<dyn PlacementScore>>,
    /// In order.
    pub remote_filter: Vec<At<dyn RemoteFilter>>,
    /// In order.
    pub remote_score: Vec<At<dyn RemoteScore>>,
    /// In order.
    pub remote_bind: Vec<At<dyn RemoteBind>>,
    /// In order.
    pub remote_preempt: Vec<At<dyn RemotePreempt>>,
    /// The events of each plugin that can reject pods.
    pub registrations: Vec<(&'static str, Registration)>,
    /// What makes pods the same to all plugins that decide; nothing where they never are.
    pub signs: Vec<Sign>,
    /// What is measured of the plugins.
    pub measured: PluginMetrics,
}

/// The nodes that the pre-filters left.
#[derive(Debug, Default)]
pub struct Restriction {
    /// Only these, where any plugin said so.
    pub nodes: Option<BTreeSet<String>>,
    /// The plugins that said so.
    pub plugins: Vec<&'static str>,
}

/// What may help pods that a plugin rejected which does not say what helps, as upstream.
fn everything() -> Vec<Registration> {
    let all = [
        Resource::Pod,
        Resource::Node,
        Resource::of::<PersistentVolume>(),
        Resource::of::<PersistentVolumeClaim>(),
        Resource::of::<CSINode>(),
        Resource::of::<CSIDriver>(),
        Resource::of::<CSIStorageCapacity>(),
        Resource::of::<StorageClass>(),
        Resource::of::<ResourceClaim>(),
        Resource::of::<DeviceClass>(),
    ];
    all.map(|resource| Registration::always(resource, Action::ALL)).into()
}

/// The events that may help pods that a plugin rejected.
#[must_use]
pub fn registrations_of(plugin: &Plugin) -> Vec<Registration> {
    let Some(events) = &plugin.events else { return everything() };
    let mut events = events.clone();
    let wants = |action| {
        events.iter().any(|event: &Registration| event.resource == Resource::Node && event.action.covers(action))
    };
    // A node may be added with the taint of nodes that are not ready and lose it later; both count as "added".
    if wants(Action::ADD) && !wants(Action::NODE_TAINT) {
        events.push(Registration::always(Resource::Node, Action::NODE_TAINT));
    }
    events
}

impl Profile {
    /// Runs the plugins of an extension point and notes how long that took.
    pub(crate) fn timed<T>(
        &self,
        metrics: &SchedulerMetrics,
        point: &str,
        run: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        let started = Instant::now();
        let outcome = run();
        metrics.point(point, &self.name, Status::label(&outcome), started.elapsed());
        outcome
    }

    /// Runs the pre-filters.
    ///
    /// # Errors
    /// When one rejects the pod or fails; `diagnosis` then knows who.
    pub fn run_pre_filter(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        diagnosis: &mut Diagnosis,
    ) -> Result<Restriction, Status> {
        let mut restriction = Restriction::default();
        let mut rejected = None;
        let mut skip = PluginMask::default();
        for (place, at) in self.pre_filter.iter().enumerate() {
            let started = Started::now(state.is_sampled);
            let found = at.plugin.pre_filter(cx, state, pod);
            self.measured.pre_filtered(place, started, at.name, &found);
            match found {
                Ok(PreFiltered::All) => {}
                Ok(PreFiltered::Skip) => skip.insert(at.place),
                Ok(PreFiltered::Only(nodes)) => restriction.narrow(at.name, nodes),
                Err(status) if status.code == Code::UnschedulableAndUnresolvable => return Err(status.by(at.name)),
                Err(status) if status.code.is_rejection() => rejected = Some(status.by(at.name)),
                Err(status) => return Err(status.by(at.name).wrap(&format!("running PreFilter plugin {:?}", at.name))),
            }
            if restriction.nodes.as_ref().is_some_and(BTreeSet::is_empty) {
                diagnosis.unschedulable_plugins.extend(&restriction.plugins);
                return Err(restriction.empty());
            }
        }
        state.skip_filter = skip;
        rejected.map_or(Ok(restriction), Err)
    }

    /// Runs the filters on a node; the first that rejects it ends it.
    ///
    /// # Errors
    /// With that filter's status.
    pub fn run_filters(&self, state: &CycleState, pod: &PodInfo, node: NodeView<'_>) -> StatusResult {
        let Asked { filters, outcome } = self.run_filters_from(0, state, pod, node);
        self.count_filters_once(filters, state.skip_filter);
        outcome
    }

    /// How many filters come before the first that is not local.
    #[must_use]
    pub(crate) fn local_filters(&self) -> usize {
        self.filter.iter().take_while(|at| at.plugin.is_local()).count()
    }

    /// What pods share that get the same answers, as long as the cluster stays as it is.
    #[must_use]
    pub fn signature(&self, pod: &PodInfo) -> Option<Signature> {
        Signature::of(&self.signs, pod)
    }

    /// Whether what is found out of nodes for this pod holds for others of its shape, too.
    #[must_use]
    pub(crate) fn is_local_for(&self, pod: &PodInfo) -> bool {
        self.filter.iter().all(|at| at.plugin.is_local_for(pod))
    }

    /// Runs the filters behind the first few; who asks for many nodes counts them all at once.
    pub(crate) fn run_filters_from(
        &self,
        first: usize,
        state: &CycleState,
        pod: &PodInfo,
        node: NodeView<'_>,
    ) -> Asked {
        for (place, at) in self.filter.iter().enumerate().skip(first) {
            if state.skip_filter.contains(at.place) {
                continue;
            }
            let started = Started::now(state.is_sampled);
            let verdict = at.plugin.filter(state, pod, node);
            self.measured.ran(started, "Filter", at.name, Status::label(&verdict));
            if let Err(status) = verdict {
                let status = status.by(at.name);
                let failed = !status.code.is_rejection();
                let status = if failed { status.wrap(&format!("running {:?} filter plugin", at.name)) } else { status };
                return Asked { filters: first..place + 1, outcome: Err(status) };
            }
        }
        Asked { filters: first..self.filter.len(), outcome: Ok(()) }
    }

    /// Runs the filters with the pods that wait for this node, and without: both must hold, as it is not known
    /// whether those pods will come.
    ///
    /// # Errors
    /// With the first rejection.
    pub fn run_filters_with_nominated(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        node: NodeView<'_>,
        nominated: &[Arc<PodInfo>],
    ) -> StatusResult {
        let mut others =
            nominated.iter().filter(|other| other.priority >= pod.priority && other.uid() != pod.uid()).peekable();
        if others.peek().is_some() {
            let (mut state, mut info) = (state.clone(), node.info.clone());
            for other in others {
                info.add_pod(Arc::clone(other));
                self.run_add_pod(&mut state, pod, other, NodeView { info: &info, ..node })?;
            }
            self.run_filters(&state, pod, NodeView { info: &info, ..node })?;
        }
        self.run_filters(state, pod, node)
    }

    /// Tells the pre-filters of a pod that was added as an assumption.
    ///
    /// # Errors
    /// When one fails.
    pub fn run_add_pod(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        added: &PodInfo,
        node: NodeView<'_>,
    ) -> StatusResult {
        let skip = state.skip_filter;
        for at in self.pre_filter.iter().filter(|at| !skip.contains(at.place)) {
            at.plugin
                .add_pod(state, pod, added, node)
                .map_err(|status| status.wrap(&format!("running AddPod on PreFilter plugin {:?}", at.name)))?;
        }
        Ok(())
    }

    /// Tells the pre-filters of a pod that was removed as an assumption.
    ///
    /// # Errors
    /// When one fails.
    pub fn run_remove_pod(
        &self,
        state: &mut CycleState,
        pod: &PodInfo,
        removed: &PodInfo,
        node: NodeView<'_>,
    ) -> StatusResult {
        let skip = state.skip_filter;
        for at in self.pre_filter.iter().filter(|at| !skip.contains(at.place)) {
            at.plugin
                .remove_pod(state, pod, removed, node)
                .map_err(|status| status.wrap(&format!("running RemovePod on PreFilter plugin {:?}", at.name)))?;
        }
        Ok(())
    }

    /// Runs the post-filters: the first that helps wins, what the others say is collected.
    pub async fn run_post_filters(&self, cx: PostFilterCx<'_>, state: &CycleState, pod: &PodInfo) -> PostFiltered {
        let mut reasons: Vec<Reason> = Vec::new();
        let mut nomination = Nomination::Keep;
        for at in &self.post_filter {
            let started = Started::now(state.is_sampled);
            let found = at.plugin.post_filter(cx, state, pod).await;
            let label = found.status.as_ref().map_or("Success", |status| status.code.name());
            self.measured.ran(started, "PostFilter", at.name, label);
            let Some(status) = found.status else { return found };
            let status = status.by(at.name);
            if status.code != Code::Unschedulable {
                return PostFiltered { status: Some(status), ..found };
            }
            reasons.extend(status.reasons().iter().cloned());
            if found.nomination != Nomination::Keep {
                nomination = found.nomination;
            }
        }
        let status = Status::with_reasons(Code::Unschedulable, reasons);
        PostFiltered { nomination, candidates: Vec::new(), status: Some(status) }
    }

    /// A candidate as it is now; nothing when it is none any more.
    #[must_use]
    pub fn run_second_look(
        &self,
        cx: PostFilterCx<'_>,
        state: &CycleState,
        pod: &PodInfo,
        candidate: &Candidate,
    ) -> Option<Candidate> {
        self.post_filter.iter().find_map(|at| at.plugin.second_look(cx, state, pod, candidate))
    }

    /// Prepares and scores in one go.
    #[cfg(test)]
    pub(crate) fn run_scores(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
        known: &mut ShapeAnswers,
    ) -> Result<Vec<i64>, Status> {
        self.run_pre_score(cx, state, pod, nodes)?;
        self.run_score(state, pod, nodes, known)
    }

    /// Prepares for scoring the nodes.
    ///
    /// # Errors
    /// When a plugin fails.
    pub(crate) fn run_pre_score(
        &self,
        cx: CycleCx<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
    ) -> StatusResult {
        let mut skip = PluginMask::default();
        for (place, at) in self.pre_score.iter().enumerate() {
            let started = Started::now(state.is_sampled);
            let scored = at.plugin.pre_score(cx, state, pod, nodes);
            self.measured.pre_scored(place, started, at.name, &scored);
            if scored.map_err(|status| status.wrap(&format!("running PreScore plugin {:?}", at.name)))?
                == PreScored::Skip
            {
                skip.insert(at.place);
            }
        }
        state.skip_score = skip;
        Ok(())
    }

    /// Scores the nodes: one total for each. Scores that are known are not asked for again.
    ///
    /// # Errors
    /// When a plugin fails.
    pub(crate) fn run_score(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        nodes: &[NodeView<'_>],
        known: &mut ShapeAnswers,
    ) -> Result<Vec<i64>, Status> {
        let skip = state.skip_score;
        let mut totals = vec![0; nodes.len()];
        let mut scores = Vec::with_capacity(nodes.len());
        for (place, at) in self.score.iter().enumerate().filter(|(_, at)| !skip.contains(at.place)) {
            scores.clear();
            let mut known = if at.plugin.is_local() { known.scores_of(at.place) } else { None };
            let mut asked = 0;
            for node in nodes {
                let mut compute = || {
                    asked += 1;
                    let started = Started::now(state.is_sampled);
                    let score = at.plugin.score(state, pod, *node);
                    self.measured.ran(started, "Score", at.name, Status::label(&score));
                    score
                };
                let score = if let Some(known) = &mut known { known.get(*node, compute) } else { compute() };
                scores.push(score.map_err(|status| score_failure(at.name, &status))?);
            }
            self.measured.scored(place, asked);
            let started = Started::now(state.is_sampled);
            at.plugin.normalize(state, pod, nodes, &mut scores);
            self.measured.ran(started, "ScoreExtensionNormalize", at.name, "Success");
            for (total, score) in totals.iter_mut().zip(&scores) {
                if !(0..=MAX_SCORE).contains(score) {
                    return Err(out_of_range(at.name, *score));
                }
                *total += score * at.weight;
            }
        }
        Ok(totals)
    }

    /// Tells the plugins of the choice.
    ///
    /// # Errors
    /// With the first rejection or failure.
    pub fn run_reserve(&self, state: &mut CycleState, pod: &PodInfo, node: &str) -> StatusResult {
        for at in &self.reserve {
            let started = Started::now(state.is_sampled);
            let reserved = at.plugin.reserve(state, pod, node);
            self.measured.ran(started, "Reserve", at.name, Status::label(&reserved));
            reserved.map_err(|status| {
                let status = status.by(at.name);
                let failed = !status.code.is_rejection();
                if failed { status.wrap(&format!("running Reserve plugin {:?}", at.name)) } else { status }
            })?;
        }
        Ok(())
    }

    /// Asks whether the pod may be bound; the plugins that let it wait, and for how long.
    ///
    /// # Errors
    /// With the first rejection or failure.
    pub fn run_permit(
        &self,
        state: &CycleState,
        pod: &PodInfo,
        node: &str,
    ) -> Result<Vec<(&'static str, Duration)>, Status> {
        let mut waits = Vec::new();
        for at in &self.permit {
            let started = Started::now(state.is_sampled);
            let permitted = at.plugin.permit(state, pod, node);
            let label = if matches!(permitted, Ok(Permitted::Wait(_))) { "Wait" } else { Status::label(&permitted) };
            self.measured.ran(started, "Permit", at.name, label);
            match permitted {
                Ok(Permitted::Now) => {}
                Ok(Permitted::Wait(timeout)) => waits.push((at.name, timeout)),
                Err(status) if status.code.is_rejection() => return Err(status.by(at.name)),
                Err(status) => return Err(status.by(at.name).wrap(&format!("running Permit plugin {:?}", at.name))),
            }
        }
        Ok(waits)
    }

    /// Takes the choice back, in reverse order.
    pub fn run_unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) {
        let began = Instant::now();
        for at in self.reserve.iter().rev() {
            let started = Started::now(state.is_sampled);
            at.plugin.unreserve(state, pod, node);
            self.measured.ran(started, "Unreserve", at.name, "Success");
        }
        self.measured.point("Unreserve", &self.name, began);
    }
}

impl Restriction {
    fn narrow(&mut self, plugin: &'static str, nodes: BTreeSet<String>) {
        self.plugins.push(plugin);
        self.nodes = Some(match self.nodes.take() {
            Some(known) => known.intersection(&nodes).cloned().collect(),
            None => nodes,
        });
    }

    fn empty(&self) -> Status {
        match self.plugins.as_slice() {
            [plugin] => Status::unresolvable(format!("node(s) didn't satisfy plugin {plugin}")),
            _ => Status::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", self.names())),
        }
    }

    fn names(&self) -> String {
        let mut plugins = self.plugins.clone();
        plugins.sort_unstable();
        plugins.join(" ")
    }

    /// The status of the nodes outside.
    #[must_use]
    pub fn absent_status(&self) -> Option<Status> {
        self.nodes.as_ref()?;
        Some(Status::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}]", self.names())))
    }
}

fn score_failure(plugin: &'static str, status: &Status) -> Status {
    Status::error(format!("running Score plugins: plugin {plugin:?} failed with: {status}"))
}

fn out_of_range(plugin: &'static str, score: i64) -> Status {
    Status::error(format!(
        "plugin {plugin:?} returns an invalid score {score}, it should in the range of [0, {MAX_SCORE}] after normalizing"
    ))
}
