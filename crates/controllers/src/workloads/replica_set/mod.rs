//! ReplicaSets and ReplicationControllers: as many pods of one template as asked for.
//!
//! `plan` decides how many pods to make and which to delete, `ranking` which go first, `status` what to report. See
//! <https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/>.

mod kind;
mod plan;
mod ranking;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::{MicroTime, Time};
use api_types::apps_v1::{ReplicaSet, ReplicaSetStatus};
use api_types::core_v1::{Pod, ReplicationController};
use client::{ClientError, Expectations, Informer, ObjectKey};
use component_base::metrics::{Desc, Histograms, Stability, exponential};
use component_base::shared_gates::{POD_DELETION_COST, TERMINATING_REPLICAS};
use component_base::{Feature, Gates};
use component_helpers::pod_state;
use component_helpers::selectors::selector_of;
use controller::{
    Build, CONTROLLER_UID, Controller, Cx, Descriptor, Next, ReconcileError, controller_of, controller_ref,
    controller_uid, in_batches, is_controlled_by, owned_and_orphans,
};
use futures_util::future::join_all;

use super::adoption::Claims;
use super::owners::{key, selector_or_nothing};
use super::pod_control::{PodControl, pod_from_template};
use super::pod_watch::PodWatch;
use super::written::Written;
use crate::Settings;
use kind::Replicated;
use plan::Scaling;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "replicaset-controller",
    aliases: &["replicaset"],
    gates: &[],
    identity: "replicaset-controller",
    event_component: "replicaset-controller",
    disabled_by_default: false,
    build: |build| {
        let workers = build.settings::<Settings>()?.replica_set_syncs;
        start::<ReplicaSet>(build, "replicaset", workers);
        Ok(())
    },
};

/// The same for the kind that was there before replica sets.
pub(crate) const REPLICATION_CONTROLLER: Descriptor = Descriptor {
    name: "replicationcontroller-controller",
    aliases: &["replicationcontroller"],
    gates: &[],
    identity: "replication-controller",
    event_component: "replication-controller",
    disabled_by_default: false,
    build: |build| {
        let workers = build.settings::<Settings>()?.replication_controller_syncs;
        start::<ReplicationController>(build, "replicationmanager", workers);
        Ok(())
    },
};

const PODS: &str = "pods";

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[POD_DELETION_COST, TERMINATING_REPLICAS];

/// What features are on.
#[derive(Debug, Clone, Copy)]
struct Features {
    /// Users say which pods are dear to them.
    deletion_cost: bool,
    /// The status tells how many pods are on their way out.
    terminating: bool,
}

impl Features {
    fn by(gates: &Gates) -> Self {
        Self { deletion_cost: gates.enabled(POD_DELETION_COST), terminating: gates.enabled(TERMINATING_REPLICAS) }
    }
}

const AGES: Desc = Desc::new(
    "replicaset_controller_sorting_deletion_age_ratio",
    "How many times as old pods that were chosen to go are as the youngest ready one.",
    Stability::Alpha,
)
.buckets(&exponential::<6>(0.25, 2.0));

fn start<O: Replicated>(build: &mut Build<'_>, queue: &str, workers: usize) {
    let queue = build.queue(queue);
    let expectations = Arc::new(Expectations::new(Arc::clone(build.clock())));
    let guard = O::GUARD.map(|(gate, skips)| Written::gated(build, gate, skips));
    let written = Arc::new(guard.unwrap_or_default());
    let (forget, forget_written) = (Arc::clone(&expectations), Arc::clone(&written));
    let sets = build
        .watch::<O>()
        .index(CONTROLLER_UID, |set| controller_uid(set.meta()))
        .observe(move |change| {
            if change.is_deleted() {
                forget.forget(&change.key());
                forget_written.forget(&change.key());
            }
        })
        .enqueue_self(&queue)
        .informer();
    let watch = PodWatch {
        owners: sets.clone(),
        queue: queue.clone(),
        expectations: Arc::clone(&expectations),
        slack: Duration::ZERO,
    };
    let pods = build
        .watch::<Pod>()
        .index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata))
        .observe(move |change| watch.notice(change))
        .informer();
    let ages = build.metrics().shared_histograms(&AGES);
    let features = Features::by(build.gates());
    let controller = Replicator { sets, pods, features, expectations, written, ages };
    build.run(&queue, workers, Arc::new(controller));
}

struct Replicator<O> {
    sets: Informer<O>,
    pods: Informer<Pod>,
    features: Features,
    expectations: Arc<Expectations>,
    written: Arc<Written>,
    ages: Histograms,
}

#[async_trait::async_trait]
impl<O: Replicated> Controller for Replicator<O> {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let caches = [(PODS, self.pods.resource_version()), (O::RESOURCE, self.sets.resource_version())];
        self.written.check(key, &caches)?;
        self.expectations.caught_up(key, &self.pods.resource_version());
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            return Ok(Next::Done);
        };
        let wait = self.expectations.wait(key);
        let pods = self.claim(cx, &set).await?;
        let scaling = if wait.is_none() && set.meta().deletion_timestamp.is_none() {
            let now = MicroTime::from(cx.clock.wall());
            let related = || self.related(&set);
            plan::scaling(&*set, &pods.active, related, self.features, now)
        } else {
            Scaling::Enough
        };
        self.observe_ages(&pods.active, &scaling, cx.clock.wall().into());
        let scaled = self.scale(cx, &set, scaling).await;
        let now = Time::from(cx.clock.wall());
        let failure = scaled.as_ref().err().map(ToString::to_string);
        let status = status::status_of(&*set, &pods, failure, self.features, now);
        self.report(cx, &set, &status).await?;
        scaled?;
        Ok(Next::Done.within(wait).within(status::look_again(&*set, &pods.active, &status, now)))
    }
}

/// The pods of a replica set.
struct Pods {
    /// Those that count.
    active: Vec<Arc<Pod>>,
    /// How many are on their way out.
    terminating: i32,
}

impl<O: Replicated> Replicator<O> {
    /// The set's pods and orphans, claimed. Those that have ended or are going are neither adopted nor released.
    async fn claim(&self, cx: &Cx, set: &O) -> Result<Pods, ReconcileError> {
        let selector = match selector_of(set.selector().as_deref()) {
            Ok(selector) => selector,
            Err(error) => return Err(ReconcileError::permanent(error.to_string())),
        };
        let pods = owned_and_orphans(&self.pods, set.meta());
        let going = |pod: &&Arc<Pod>| {
            pod.metadata.deletion_timestamp.is_some()
                && !pod_state::is_terminal(pod)
                && is_controlled_by(&pod.metadata, set.meta())
                && selector.matches(&pod.metadata.labels)
        };
        let terminating = i32::try_from(pods.iter().filter(going).count()).unwrap_or(i32::MAX);
        let candidates = pods.into_iter().filter(|pod| pod_state::is_active(pod)).collect();
        let mut claims = Claims::new(&cx.client, set, &selector, &[]);
        let active = claims.run(candidates).await?;
        for version in claims.adopted() {
            self.written.note(set.meta(), PODS, version);
        }
        Ok(Pods { active, terminating })
    }

    #[expect(clippy::cast_precision_loss, reason = "a ratio is a small number")]
    fn observe_ages(&self, active: &[Arc<Pod>], scaling: &Scaling, now: Time) {
        let Scaling::Delete(chosen) = scaling else { return };
        for ratio in plan::age_ratios(active, chosen, now) {
            self.ages.with(&[]).observe(ratio as f64);
        }
    }

    /// The active pods of all replica sets that the same owner has, such as all revisions of a deployment.
    fn related(&self, set: &O) -> Vec<Arc<Pod>> {
        let Some(owner) = controller_of(set.meta()) else { return Vec::new() };
        let siblings = self.sets.by_index(CONTROLLER_UID, &owner.uid);
        let selectors: Vec<_> = siblings.iter().map(|sibling| selector_or_nothing(&**sibling)).collect();
        let selected = |pod: &Arc<Pod>| selectors.iter().any(|selector| selector.matches(&pod.metadata.labels));
        let pods = self.pods.in_namespace(&set.meta().namespace).into_iter();
        pods.filter(|pod| pod_state::is_active(pod) && selected(pod)).collect()
    }

    async fn scale(&self, cx: &Cx, set: &O, scaling: Scaling) -> Result<(), ReconcileError> {
        match scaling {
            Scaling::Enough => Ok(()),
            Scaling::Create(count) => self.create(cx, set, count).await,
            Scaling::Delete(pods) => self.delete(cx, set, &pods).await,
        }
    }

    async fn create(&self, cx: &Cx, set: &O, count: usize) -> Result<(), ReconcileError> {
        let owner = key(set);
        let control = PodControl::new(cx, set);
        let reference = controller_ref::<O>(set.meta());
        let Some(template) = set.template() else {
            return Err(ReconcileError::permanent("unable to create pods, no template".to_owned()));
        };
        let pod = pod_from_template(template, set.meta(), reference);
        self.expectations.expect_creations(&owner, count);
        let (control, pod, owner) = (&control, &pod, &owner);
        let outcome = in_batches(count, |_| async move {
            match control.create(pod).await {
                Ok(made) => {
                    self.written.note(set.meta(), PODS, &made.metadata.resource_version);
                    self.expectations.creation_answered(owner, &made.metadata.resource_version);
                }
                // Nothing can be made in there any more, and nothing needs to be; nor is anything to be waited for, which would
                // last as long as an expectation where the namespace takes longer to go.
                Err(error) if error.is_namespace_terminating() => self.expectations.creation_failed(owner),
                Err(error) => {
                    self.expectations.creation_failed(owner);
                    return Err(error);
                }
            }
            Ok(())
        })
        .await;
        for _ in 0..outcome.skipped {
            self.expectations.creation_failed(owner);
        }
        outcome.errors.into_iter().next().map_or(Ok(()), |error| Err(error.into()))
    }

    async fn delete(&self, cx: &Cx, set: &O, pods: &[Arc<Pod>]) -> Result<(), ReconcileError> {
        let owner = key(set);
        let control = PodControl::new(cx, set);
        self.expectations.expect_deletions(&owner, pods.iter().map(|pod| key(&**pod)));
        let outcomes = join_all(pods.iter().map(|pod| control.delete(pod))).await;
        let mut first = None;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            if !matches!(outcome, Ok(true)) {
                self.expectations.deletion_observed(&owner, &key(&**pod));
            }
            first = first.or(outcome.err());
        }
        first.map_or(Ok(()), |error| Err(ReconcileError::failed(format!("unable to delete pods: {error}"))))
    }

    /// Writes the status where it differs; looks at the live object once when that fails.
    async fn report(&self, cx: &Cx, set: &O, status: &ReplicaSetStatus) -> Result<(), ClientError> {
        let status = &O::kept(status);
        if *status == set.status() {
            return Ok(());
        }
        let sets = cx.client.namespaced::<O>(&set.meta().namespace);
        let mut next = set.clone();
        next.set_status(status);
        let mut outcome = sets.update_status(&next).await;
        if outcome.is_err() {
            next = sets.get(&set.meta().name).await?;
            next.set_status(status);
            outcome = sets.update_status(&next).await;
        }
        self.written.note(set.meta(), O::RESOURCE, &outcome?.meta().resource_version);
        Ok(())
    }
}
