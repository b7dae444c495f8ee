//! StatefulSets: pods with names that stay, started, updated and removed in order, with storage of their own.
//!
//! `identity` says what a pod of an ordinal is called and has, `plan` what to do next, `claims` who owns storage,
//! `revisions` which templates there are, `status` what to report; `act` does the I/O. See
//! <https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/>.

mod act;
mod claims;
mod history;
mod identity;
mod plan;
mod revisions;
mod status;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::apps_v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use api_types::core_v1::{PersistentVolumeClaim, Pod};
use client::{Expectations, Informer, ObjectKey};
use component_base::Feature;
use component_base::metrics::{Desc, Gauges, Stability};
use component_base::shared_gates::STATEFUL_SET_MAX_UNAVAILABLE;
use component_helpers::selectors::selector_of;
use controller::{
    Build, BuildError, CONTROLLER_UID, Controller, Cx, Descriptor, Next, ReconcileError, controller_uid,
    is_controlled_by, owned_and_orphans,
};

use self::plan::Unavailable;
use super::adoption::Claims;
use super::pod_watch::PodWatch;
use super::written::{OF_STATEFUL_SETS, Written, skips};
use crate::Settings;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "statefulset-controller",
    aliases: &["statefulset"],
    gates: &[],
    identity: "statefulset-controller",
    event_component: "statefulset-controller",
    disabled_by_default: false,
    build,
};

/// The gates that this controller asks.
pub(crate) const GATES: &[Feature] = &[STATEFUL_SET_MAX_UNAVAILABLE, SEMANTIC_REVISIONS];

/// Revisions that mean the same are the same, whatever their bytes.
const SEMANTIC_REVISIONS: Feature = Feature::named("StatefulSetSemanticRevisionComparison");

const PODS: &str = "pods";
const CLAIMS: &str = "persistentvolumeclaims";
const SETS: &str = "statefulsets.apps";

/// How long after as many pods were created as are at a time the next ones are.
const NEXT_BURST: Duration = Duration::from_secs(1);

const SKIPS: Desc = skips("statefulset_controller_stale_sync_skips_total");

const OF_SETS: &[&str] = &["statefulset_namespace", "statefulset_name", "pod_management_policy"];
const MOST_UNAVAILABLE: Desc = Desc::new(
    "statefulset_controller_statefulset_max_unavailable",
    "How many pods of a set may be unavailable while they are updated.",
    Stability::Alpha,
)
.labels(OF_SETS);
const UNAVAILABLE: Desc = Desc::new(
    "statefulset_controller_statefulset_unavailable_replicas",
    "How many pods of a set are unavailable while they are updated.",
    Stability::Alpha,
)
.labels(OF_SETS);

/// What is told of sets that may update several pods at a time.
#[derive(Clone)]
struct Told {
    most: Gauges,
    now: Gauges,
}

impl Told {
    fn of(&self, set: &StatefulSet, unavailable: Unavailable) {
        let labels = [&*set.metadata.namespace, &*set.metadata.name, &*set.spec.pod_management_policy];
        self.most.with(&labels).set(unavailable.most.into());
        self.now.with(&labels).set(unavailable.now.into());
    }

    fn forget(&self, set: &StatefulSet) {
        let labels = [&*set.metadata.namespace, &*set.metadata.name, &*set.spec.pod_management_policy];
        self.most.remove(&labels);
        self.now.remove(&labels);
    }
}

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.stateful_set_syncs;
    let queue = build.queue("statefulset");
    let written = Arc::new(Written::gated(build, OF_STATEFUL_SETS, &SKIPS));
    let told = build
        .gates()
        .enabled(STATEFUL_SET_MAX_UNAVAILABLE)
        .then(|| Told { most: build.metrics().gauges(&MOST_UNAVAILABLE), now: build.metrics().gauges(&UNAVAILABLE) });
    let (forget, of_set) = (Arc::clone(&written), told.clone());
    let sets = build
        .watch::<StatefulSet>()
        .observe(move |change| {
            if change.is_deleted() {
                forget.forget(&change.key());
                of_set.iter().for_each(|told| told.forget(change.object()));
            }
        })
        .enqueue_self(&queue)
        .informer();
    let watch = PodWatch {
        owners: sets.clone(),
        queue: queue.clone(),
        // Names are fixed, so nothing can be made twice and nothing needs to be expected.
        expectations: Arc::new(Expectations::new(Arc::clone(build.clock()))),
        slack: Duration::ZERO,
    };
    let pods = build
        .watch::<Pod>()
        .index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata))
        .observe(move |change| watch.notice(change))
        .informer();
    let controller = StatefulSetController {
        sets,
        pods,
        claims: build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, claims::set_that_waited).informer(),
        revisions: build
            .watch::<ControllerRevision>()
            .index(CONTROLLER_UID, |revision| controller_uid(&revision.metadata))
            .informer(),
        written,
        told,
        semantic_revisions: build.gates().enabled(SEMANTIC_REVISIONS),
    };
    build.run(&queue, workers, Arc::new(controller));
    Ok(())
}

struct StatefulSetController {
    sets: Informer<StatefulSet>,
    pods: Informer<Pod>,
    claims: Informer<PersistentVolumeClaim>,
    revisions: Informer<ControllerRevision>,
    written: Arc<Written>,
    /// None where one pod is updated at a time.
    told: Option<Told>,
    /// Whether a revision counts by what it means.
    semantic_revisions: bool,
}

#[async_trait::async_trait]
impl Controller for StatefulSetController {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let caches = [
            (PODS, self.pods.resource_version()),
            (CLAIMS, self.claims.resource_version()),
            (SETS, self.sets.resource_version()),
        ];
        self.written.check(key, &caches)?;
        let Some(set) = self.sets.get(key) else { return Ok(Next::Done) };
        let history = self.construct_history(cx, &set).await?;
        let pods = self.claim_pods(cx, &set).await?;
        let now = Time::from(cx.clock.wall());
        let slots = plan::Slots::new(&set, &pods);
        let mut cut = false;
        let acted = if set.metadata.deletion_timestamp.is_some() {
            Ok(())
        } else {
            let unavailable = self.told.as_ref().map(|told| {
                let unavailable = Unavailable::of(&set, &slots, now);
                told.of(&set, unavailable);
                unavailable
            });
            let update = &history.update.metadata.name;
            let plan = plan::plan(&set, &slots, update, now, unavailable, |pod| self.is_in_order(&set, pod));
            cut = plan.cut;
            self.act(cx, &set, &history, plan).await
        };
        let status = status::status_of(&set, &slots, &history, now);
        self.report(cx, &set, &status).await?;
        let truncated = self.truncate_history(cx, &set, &history, &pods).await;
        ReconcileError::join([acted.err(), truncated.err()].into_iter().flatten().collect())?;
        let waits = set.spec.min_ready_seconds > 0 && status.ready_replicas != status.available_replicas;
        let seconds = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
        let ready = waits.then(|| Duration::from_secs(seconds));
        Ok(Next::Done.within(ready).within(cut.then_some(NEXT_BURST)))
    }
}

impl StatefulSetController {
    /// The set's pods: those that match and bear its name.
    async fn claim_pods(&self, cx: &Cx, set: &StatefulSet) -> Result<Vec<Arc<Pod>>, ReconcileError> {
        let selector =
            selector_of(set.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let pods = owned_and_orphans(&self.pods, &set.metadata);
        let mut claims = Claims::new(&cx.client, set, &selector, &[]);
        let (named, astray): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| identity::is_named_after(set, pod));
        for pod in astray.iter().filter(|pod| is_controlled_by(&pod.metadata, &set.metadata)) {
            claims.let_go(&**pod).await?;
        }
        let pods = claims.run(named).await?;
        for version in claims.adopted() {
            self.written.note(&set.metadata, PODS, version);
        }
        Ok(pods)
    }

    async fn report(&self, cx: &Cx, set: &StatefulSet, status: &StatefulSetStatus) -> Result<(), ReconcileError> {
        if !status::is_news(&set.status, status) {
            return Ok(());
        }
        let mut next = set.clone();
        next.status = status.clone();
        let sets = cx.client.namespaced::<StatefulSet>(&set.metadata.namespace);
        let stored = sets.update_status(&next).await?;
        self.written.note(&set.metadata, SETS, &stored.metadata.resource_version);
        Ok(())
    }
}
