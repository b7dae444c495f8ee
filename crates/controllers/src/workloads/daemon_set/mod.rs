//! DaemonSets: one pod on every node that is meant.
//!
//! `eligibility` says which nodes are meant, `placement` which pods are where, `manage` what to create and delete,
//! `rolling` how pods of an older template are replaced, `history` keeps the revisions, `status` reports. See
//! <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/>.

mod back_off;
mod eligibility;
mod history;
mod manage;
mod node_updates;
mod placement;
mod pod_content;
mod revisions;
mod rolling;
mod status;
mod sync_pods;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::apps_v1::constants::daemon_set_update_strategy_type::ROLLING_UPDATE;
use api_types::apps_v1::{ControllerRevision, DaemonSet, DaemonSetStatus};
use api_types::core_v1::{Node, Pod};
use client::{Change, EventType, Expectations, Informer, ObjectKey};
use component_base::metrics::Desc;
use component_helpers::selectors::selector_of;
use component_helpers::taints::Comparing;
use controller::{
    Build, BuildError, CONTROLLER_UID, Controller, Cx, Descriptor, NODE_NAME, Next, ReconcileError, controller_uid,
    owned_and_orphans,
};

use super::adoption::Claims;
use super::owners::{concerned, selects_all};
use super::pod_watch::PodWatch;
use super::written::{OF_DAEMON_SETS, Written, skips};
use crate::Settings;
use back_off::BackOff;
use manage::Plan;
use node_updates::NodeUpdates;
use placement::Placement;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "daemonset-controller",
    aliases: &["daemonset"],
    gates: &[],
    identity: "daemon-set-controller",
    event_component: "daemonset-controller",
    disabled_by_default: false,
    build,
};

const PODS: &str = "pods";
const SETS: &str = "daemonsets.apps";
/// Owners look at a pod that became ready a little after `minReadySeconds`, as its time is in whole seconds.
const SLACK: Duration = Duration::from_secs(1);

const SKIPS: Desc = skips("daemonset_controller_stale_sync_skips_total");

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let workers = build.settings::<Settings>()?.daemon_set_syncs;
    let queue = build.queue("daemonset");
    let node_queue = build.queue("daemonset-node-updates");
    let expectations = Arc::new(Expectations::new(Arc::clone(build.clock())));
    let written = Arc::new(Written::gated(build, OF_DAEMON_SETS, &SKIPS));
    let (forget, forget_written) = (Arc::clone(&expectations), Arc::clone(&written));
    let sets = build
        .watch::<DaemonSet>()
        .observe(move |change| {
            if change.is_deleted() {
                forget.forget(&change.key());
                forget_written.forget(&change.key());
            }
        })
        .enqueue_self(&queue)
        .informer();
    let owners = sets.clone();
    let revisions = build.watch::<ControllerRevision>().index(CONTROLLER_UID, |own| controller_uid(&own.metadata));
    let revisions = revisions.enqueue_keys(&queue, move |change| {
        // A revision that one of the sets owns was made by this controller, which knows of it.
        let made =
            matches!(change, Change::Added { object, .. } if controller::controller_of(&object.metadata).is_some());
        if made { Vec::new() } else { concerned(&owners, change) }
    });
    let watch =
        PodWatch { owners: sets.clone(), queue: queue.clone(), expectations: Arc::clone(&expectations), slack: SLACK };
    let pods = build
        .watch::<Pod>()
        .index(CONTROLLER_UID, |pod| controller_uid(&pod.metadata))
        .index(NODE_NAME, |pod| vec![pod.spec.node_name.clone()])
        .observe(move |change| watch.notice(change))
        .informer();
    let nodes = build.watch::<Node>().enqueue_keys(&node_queue, node_updates::concerned).informer();
    let comparing = Comparing::by(build.gates());
    let updates =
        NodeUpdates { sets: sets.clone(), pods: pods.clone(), nodes: nodes.clone(), comparing, queue: queue.clone() };
    let controller = DaemonSetController {
        sets,
        revisions: revisions.informer(),
        pods,
        nodes,
        comparing,
        expectations,
        written,
        back_off: BackOff::default(),
    };
    build.run(&queue, workers, Arc::new(controller));
    build.run(&node_queue, workers, Arc::new(updates));
    Ok(())
}

struct DaemonSetController {
    sets: Informer<DaemonSet>,
    revisions: Informer<ControllerRevision>,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    comparing: Comparing,
    expectations: Arc<Expectations>,
    written: Arc<Written>,
    back_off: BackOff,
}

#[async_trait::async_trait]
impl Controller for DaemonSetController {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        let caches = [(PODS, self.pods.resource_version()), (SETS, self.sets.resource_version())];
        self.written.check(key, &caches)?;
        self.expectations.caught_up(key, &self.pods.resource_version());
        let Some(set) = self.sets.get(key) else {
            self.expectations.forget(key);
            return Ok(Next::Done);
        };
        if selects_all(set.spec.selector.as_ref()) {
            let message = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.events.event(&*set, EventType::Warning, "SelectingAll", message);
            return Ok(Next::Done);
        }
        if set.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Done);
        }
        let history = self.construct_history(cx, &set).await?;
        let hash = history.hash();
        if let Some(wait) = self.expectations.wait(key) {
            let observed = set.status.observed_generation;
            return Ok(self.report(cx, &set, &hash, observed).await?.within(Some(wait)));
        }
        let managed = self.bring_in_order(cx, key, &set, &history).await;
        let reported = self.report(cx, &set, &hash, set.metadata.generation).await;
        let look_again = managed?;
        Ok(reported?.within(look_again))
    }
}

impl DaemonSetController {
    /// Creates, deletes and updates pods and drops old revisions. Answers when a failed pod is due.
    async fn bring_in_order(
        &self,
        cx: &Cx,
        key: &ObjectKey,
        set: &DaemonSet,
        history: &history::History,
    ) -> Result<Option<Duration>, ReconcileError> {
        let hash = history.hash();
        let now = Time::from(cx.clock.wall());
        let placement = self.place(cx, set).await?;
        let held = |node: &str| self.back_off.left(&back_off_key(set, node), cx.clock.monotonic());
        let plan = manage::plan(set, &placement, &hash, held, now);
        self.tell_of_dead_pods(cx, set, &plan);
        let look_again = plan.look_again;
        self.sync_pods(cx, set, &hash, &plan.create, &plan.delete).await?;
        if self.expectations.satisfied(key) && set.spec.update_strategy.type_ == ROLLING_UPDATE {
            // Pods may have changed since; the rollout counts on what is there now.
            let placement = self.place(cx, set).await?;
            let step = rolling::plan(set, &placement, &hash, now);
            self.sync_pods(cx, set, &hash, &step.create, &step.delete).await?;
        }
        self.clean_up_history(cx, set, history).await?;
        Ok(look_again)
    }

    /// Which pods and nodes there are, with the pods claimed.
    async fn place(&self, cx: &Cx, set: &DaemonSet) -> Result<Placement, ReconcileError> {
        let selector =
            selector_of(set.spec.selector.as_ref()).map_err(|error| ReconcileError::permanent(error.to_string()))?;
        let mut claims = Claims::new(&cx.client, set, &selector, &[]);
        let pods = claims.run(owned_and_orphans(&self.pods, &set.metadata)).await?;
        for version in claims.adopted() {
            self.written.note(&set.metadata, PODS, version);
        }
        Ok(Placement::new(set, &self.nodes.list(), pods, self.comparing))
    }

    fn tell_of_dead_pods(&self, cx: &Cx, set: &DaemonSet, plan: &Plan) {
        for (node, pod) in &plan.failed {
            self.back_off.advance(&back_off_key(set, node), cx.clock.monotonic());
            let name = component_helpers::pod_state::full_name(pod);
            let message = format!("Found failed daemon pod {name} on node {node}, will try to kill it");
            cx.events.event(set, EventType::Warning, "FailedDaemonPod", message);
        }
        for (node, pod) in &plan.succeeded {
            let name = component_helpers::pod_state::full_name(pod);
            let message = format!("Found succeeded daemon pod {name} on node {node}, will try to delete it");
            cx.events.event(set, EventType::Normal, "SucceededDaemonPod", message);
        }
    }

    /// Writes the status where it differs; looks at the live object once when that fails.
    async fn report(
        &self,
        cx: &Cx,
        set: &DaemonSet,
        hash: &str,
        observed_generation: i64,
    ) -> Result<Next, ReconcileError> {
        let placement = self.place(cx, set).await?;
        let status = status::status_of(set, &placement, hash, observed_generation, cx.clock.wall().into());
        if status != set.status {
            let stored = self.store(cx, set, &status).await;
            stored.map_err(|error| {
                ReconcileError::failed(format!("error storing status for daemon set {}: {error}", set.metadata.name))
            })?;
        }
        let seconds = u64::try_from(set.spec.min_ready_seconds).unwrap_or(0);
        let waits = seconds > 0 && status.number_ready != status.number_available;
        Ok(if waits { Next::After(Duration::from_secs(seconds)) } else { Next::Done })
    }

    async fn store(&self, cx: &Cx, set: &DaemonSet, status: &DaemonSetStatus) -> Result<(), client::ClientError> {
        let sets = cx.client.namespaced::<DaemonSet>(&set.metadata.namespace);
        let mut next = set.clone();
        next.status = status.clone();
        let mut outcome = sets.update_status(&next).await;
        if outcome.is_err() {
            next = sets.get(&set.metadata.name).await?;
            next.status = status.clone();
            outcome = sets.update_status(&next).await;
        }
        self.written.note(&set.metadata, SETS, &outcome?.metadata.resource_version);
        Ok(())
    }
}

/// The key under which the failures of a set's pods on a node are counted; a new generation starts over.
fn back_off_key(set: &DaemonSet, node: &str) -> String {
    format!("{}/{}/{node}", set.metadata.uid, set.status.observed_generation)
}
