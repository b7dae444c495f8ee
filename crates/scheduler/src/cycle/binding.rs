//! The second half of a cycle: the decision is written while the next pods are being scheduled.

use std::sync::Arc;

use base::CancellationToken;
use component_base::Feature;
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::Scheduler;
use super::failure::Failure;
use crate::framework::{
    At, Bound, ClusterEvent, CycleState, EventObject, Nomination, Parked, PreBind, PreBinding, Profile, SKIP, Started,
    Status,
};
use crate::metrics::AttemptResult;
use crate::pod_info::PodInfo;
use crate::queued_pod::QueuedPod;
use crate::writer::{PodEvent, Severity};

/// Others are told of the node that is chosen while work is done for the pod; and who has no work is not asked for any, nor do
/// plugins work beside each other without that (KEP-5278).
pub(crate) const NODE_EXPECTATION: Feature = Feature::named("NominatedNodeNameForExpectation");

/// The node is chosen: a plugin that has second thoughts now is broken, and the pod is tried again like after an error.
fn pre_flight_failure(plugin: &str, status: &Status) -> Status {
    if !status.code.is_rejection() {
        return status.wrap(&format!("running PreBindPreFlight plugin {plugin:?}"));
    }
    let code = status.code.name();
    Status::error(format!(
        "PreBindPreFlight {plugin} returned {code:?}, which is unsupported. It is supposed to return Success, Skip, or \
         Error status"
    ))
}

/// A decision that is to be written.
pub struct BindingCycle {
    pub(super) scheduler: Arc<Scheduler>,
    pub(super) profile: Arc<Profile>,
    pub(super) pod: QueuedPod,
    pub(super) node: Arc<str>,
    pub(super) state: CycleState,
    /// The wait for `Permit` plugins, where any asked for it.
    pub(super) parked: Option<Parked>,
    pub(super) started: Instant,
}

impl BindingCycle {
    /// Writes it, or takes it back. `turn` is one of the places of those who write; it is given to others while the pod
    /// waits for something else than the API server.
    pub(super) async fn run(self, mut turn: Option<OwnedSemaphorePermit>) {
        let _binding = self.scheduler.metrics.at_work("binding");
        match self.bind(&mut turn).await {
            Ok(()) => self.succeed(),
            Err(status) => self.undo(&status).await,
        }
    }

    /// Gives the room back, before anybody has heard of it.
    pub(super) fn take_back(self) -> (QueuedPod, Arc<Profile>) {
        let Self { scheduler, profile, pod, node, state, parked, .. } = self;
        drop(parked);
        profile.run_unreserve(&state, &pod.info, &node);
        scheduler.forget(&pod.info);
        (pod, profile)
    }

    async fn bind(&self, turn: &mut Option<OwnedSemaphorePermit>) -> Result<(), Status> {
        let info = &self.pod.info;
        let mut working = Vec::new();
        let tells = self.scheduler.tells_expectation;
        for at in &self.profile.pre_bind {
            if !tells {
                working.push(at);
                continue;
            }
            match at.plugin.has_work(&self.state, info, &self.node) {
                Ok(true) => working.push(at),
                Ok(false) => {}
                Err(status) => return Err(pre_flight_failure(at.name, &status)),
            }
        }
        let waits = !working.is_empty() || self.parked.is_some();
        if waits {
            if tells {
                self.write_nomination().await;
            }
            *turn = None;
        }
        self.wait_on_permit().await?;
        // From here on failures are errors: no plugin rejects the pod any more.
        self.scheduler.queue.done(info.uid());
        let preemptible = (!working.is_empty()).then(|| self.scheduler.waiting.begin_work(info.uid()));
        let pre_bind = async {
            match &preemptible {
                None => Ok(()),
                Some(own) => self.run_pre_bind(&working, own.stop()).await,
            }
        };
        let done = self.timed("PreBind", pre_bind).await;
        if waits {
            *turn = Arc::clone(&self.scheduler.writes).acquire_owned().await.ok();
        }
        // That the room is needed is the reason for what was not done any more.
        preemptible.map_or(Ok(()), PreBinding::finish)?;
        done?;
        self.timed("Bind", self.run_bind()).await
    }

    /// Has the plugins do their work, those beside each other that do not mind at the same time. The first failure ends it.
    async fn run_pre_bind(&self, working: &[&At<dyn PreBind>], stop: &CancellationToken) -> Result<(), Status> {
        let mut left = working;
        while !left.is_empty() && !stop.is_cancelled() {
            let may_be_beside =
                |at: &&&At<dyn PreBind>| self.scheduler.tells_expectation && at.plugin.runs_beside_others();
            let beside = left.iter().take_while(may_be_beside).count();
            let (some, rest) = left.split_at(beside.max(1));
            let stop = stop.child_token();
            let failure = Mutex::new(None);
            join_all(some.iter().map(|at| self.run_pre_bind_plugin(at, &stop, &failure))).await;
            if let Some(status) = failure.into_inner() {
                return Err(status);
            }
            left = rest;
        }
        Ok(())
    }

    /// Has one plugin do its work. Where it fails first, the others need not wait for anything any more.
    async fn run_pre_bind_plugin(
        &self,
        at: &At<dyn PreBind>,
        stop: &CancellationToken,
        failure: &Mutex<Option<Status>>,
    ) {
        let started = Started::now(self.state.is_sampled);
        let done = at.plugin.pre_bind(&self.state, &self.pod.info, &self.node, stop).await;
        self.profile.measured.ran(started, "PreBind", at.name, Status::label(&done));
        if let Err(status) = done {
            failure.lock().get_or_insert_with(|| status.wrap(&format!("running PreBind plugin {:?}", at.name)));
            stop.cancel();
        }
    }

    /// Waits until the pod may be bound. A rejection is told as if the node were the only one.
    async fn wait_on_permit(&self) -> Result<(), Status> {
        let Some(parked) = &self.parked else { return Ok(()) };
        let started = self.scheduler.clock.monotonic();
        let verdict = parked.wait().await;
        let waited = self.scheduler.clock.monotonic().saturating_duration_since(started);
        self.scheduler.metrics.permit_waited(Status::label(&verdict), waited);
        verdict.map_err(|status| {
            let rejected = status.code.is_rejection();
            if rejected { status } else { status.wrap("waiting on permit for pod") }
        })
    }

    /// Notes how long the plugins of a point took.
    async fn timed(&self, point: &str, run: impl Future<Output = Result<(), Status>>) -> Result<(), Status> {
        let started = self.scheduler.clock.monotonic();
        let outcome = run.await;
        let took = self.scheduler.clock.monotonic().saturating_duration_since(started);
        self.scheduler.metrics.point(point, &self.profile.name, Status::label(&outcome), took);
        outcome
    }

    async fn run_bind(&self) -> Result<(), Status> {
        let info = &self.pod.info;
        if self.profile.run_remote_bind(info, &self.node).await? == Bound::Done {
            return Ok(());
        }
        for at in &self.profile.bind {
            let started = Started::now(self.state.is_sampled);
            let bound = at.plugin.bind(info, &self.node).await;
            let label = if matches!(bound, Ok(Bound::Skip)) { SKIP } else { Status::label(&bound) };
            self.profile.measured.ran(started, "Bind", at.name, label);
            match bound {
                Ok(Bound::Done) => return Ok(()),
                Ok(Bound::Skip) => {}
                Err(status) => return Err(status.wrap(&format!("running Bind plugin {:?}", at.name))),
            }
        }
        Err(Status::error("no Bind plugin took the pod"))
    }

    /// Others should know where the pod is going while work is done for it.
    async fn write_nomination(&self) {
        let mut status = self.pod.info.pod.status.clone();
        if status.nominated_node_name == *self.node {
            return;
        }
        status.nominated_node_name = self.node.to_string();
        if let Err(error) = self.scheduler.writer.patch_status(&self.pod.info.pod, &status).await {
            tracing::error!(%error, pod = %self.pod.info.full_name(), "Failed to set nominated node name");
        }
    }

    fn succeed(self) {
        let (scheduler, info) = (&self.scheduler, &self.pod.info);
        tracing::info!(v = 2, pod = %info.full_name(), node = %self.node, "Successfully bound pod to node");
        scheduler.events.event(&PodEvent {
            scheduler: &self.profile.name,
            about: &info.pod,
            related: None,
            severity: Severity::Normal,
            reason: "Scheduled",
            action: "Binding",
            note: format!("Successfully assigned {} to {}", info.full_name(), self.node),
        });
        let took = scheduler.clock.monotonic().saturating_duration_since(self.started);
        scheduler.metrics.attempt(AttemptResult::Scheduled, &self.profile.name, took);
        if let Some(first) = self.pod.first_attempt {
            let since = scheduler.clock.monotonic().saturating_duration_since(first);
            scheduler.metrics.bound(self.pod.attempts, since, self.pod.flushed);
        }
        let (measured, began) = (&self.profile.measured, Instant::now());
        for at in &self.profile.post_bind {
            let started = Started::now(self.state.is_sampled);
            at.plugin.post_bind(info, &self.node);
            measured.ran(started, "PostBind", at.name, "Success");
        }
        measured.point("PostBind", &self.profile.name, began);
    }

    /// Gives the room back, tells the pods that wait for room, and puts the pod back into the queue. A pod that was rejected
    /// is put back first, so that its own room does not wake it.
    async fn undo(self, status: &Status) {
        let Self { scheduler, profile, pod, node, state, parked, started } = self;
        drop(parked);
        profile.run_unreserve(&state, &pod.info, &node);
        let mut assumed = (*pod.info.pod).clone();
        assumed.spec.node_name = node.to_string();
        let object = EventObject::Pod { old: Some(Arc::new(assumed)), new: None };
        scheduler.groups.place(&pod.info.pod, false);
        let forgotten = scheduler.cache.forget(pod.info.uid());
        if let Err(error) = &forgotten {
            tracing::error!(%error, pod = %pod.info.full_name(), "Scheduler cache forget pod failed");
        }
        let (rejected, uid) = (status.code.is_rejection(), pod.info.uid().to_owned());
        let tell = |concerns: &dyn Fn(&PodInfo) -> bool| {
            if forgotten.is_ok() {
                scheduler.queue.move_all(&ClusterEvent::ASSIGNED_POD_DELETE, &object, concerns);
            }
        };
        if !rejected {
            tell(&|_| true);
        }
        let write = scheduler.failed(pod, &profile, Failure::of_chosen(status), Nomination::Clear, started);
        if rejected {
            tell(&|other| other.uid() != uid);
        }
        write.run().await;
    }
}
