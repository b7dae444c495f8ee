//! Brings volumes to the nodes whose pods need them, and takes them away once no pod does and the kubelet has let go.
//!
//! Drivers do the work: this controller makes and deletes a VolumeAttachment for each volume on a node (`target`), waits
//! for the driver's attacher, and lists in the node's status what the kubelet may mount. A node is looked at when
//! something of it changes; what to do then is decided purely (`plan`) from what its pods want and what is known to be
//! attached (`state`), which a new process finds out from nodes' statuses and VolumeAttachments.
//!
//! Deliberately not here: volumes of other plugins than CSI, which need no attaching by this process.

mod act;
mod metrics;
mod notices;
mod plan;
mod state;
mod target;
#[cfg(test)]
mod tests;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::{CSIDriver, VolumeAttachment};
use client::{Change, Informer, ObjectKey};
use controller::{Build, BuildError, Controller, Cx, Descriptor, NODE_NAME, Next, Queue, ReconcileError};
use parking_lot::Mutex;

use super::newest::Newest;
use super::{PODS_BY_CLAIM, keys_of_claims};
use crate::Settings;
use metrics::AttachMetrics;
use state::State;
use target::Lookup;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "persistentvolume-attach-detach-controller",
    aliases: &["attachdetach"],
    gates: &[],
    identity: "attachdetach-controller",
    event_component: "attachdetach-controller",
    disabled_by_default: false,
    build,
};

const WORKERS: usize = 10;
/// How often every node is looked at, whatever changed.
const POPULATE_PERIOD: Duration = Duration::from_secs(60);
/// How long what attachers say is gathered, so that a node's status is written once for many volumes.
const GATHER: Duration = Duration::from_millis(50);

fn build(build: &mut Build<'_>) -> Result<(), BuildError> {
    let settings = build.settings::<Settings>()?.attach_detach.clone();
    let queue = build.queue("attachdetach_nodes");
    let state = Arc::new(Mutex::new(State::default()));
    let by_node = |pod: &Pod| Some(pod.spec.node_name.clone()).filter(|node| !node.is_empty()).into_iter().collect();
    let pods = build.watch::<Pod>().index(NODE_NAME, by_node).index(PODS_BY_CLAIM, keys_of_claims);
    let pods = pods.enqueue_keys(&queue, wake::nodes_of_pod).informer();
    let users = pods.clone();
    let of_claim = move |change: &Change<PersistentVolumeClaim>| wake::nodes_of_claim(change, &users);
    let users = pods.clone();
    let of_volume = move |change: &Change<PersistentVolume>| wake::nodes_of_volume(change, &users);
    let lookup = Arc::new(Lookup {
        claims: build.watch::<PersistentVolumeClaim>().enqueue_keys(&queue, of_claim).informer(),
        volumes: build.watch::<PersistentVolume>().enqueue_keys(&queue, of_volume).informer(),
        drivers: build.watch::<CSIDriver>().informer(),
    });
    let seen = Arc::clone(&state);
    let nodes = build.watch::<Node>().observe(move |change| seen.lock().saw(change.object()));
    let nodes = nodes.enqueue_keys(&queue, wake::node_itself).informer();
    let of_attachment =
        |change: &Change<VolumeAttachment>| [(ObjectKey::cluster(&change.object().spec.node_name), GATHER)];
    let attachments = build.watch::<VolumeAttachment>().enqueue_after(&queue, of_attachment).informer();
    let metrics = AttachMetrics::new(build.metrics());
    metrics::collect(build.metrics(), &pods, &lookup, &state);
    let period = settings.verify_period;
    let own = AttachDetach {
        nodes: Newest::new(nodes),
        pods,
        attachments,
        lookup,
        forces_on_timeout: settings.forces_on_timeout,
        state,
        queue: queue.clone(),
        metrics,
    };
    let own = Arc::new(own);
    build.run(&queue, WORKERS, Arc::new(PerNode(Arc::clone(&own))));
    build.every("attachdetach_populate", POPULATE_PERIOD, Arc::new(Populate(Arc::clone(&own))));
    if let Some(period) = period {
        build.every("attachdetach_verify", period, Arc::new(Verify(own)));
    }
    Ok(())
}

/// What the parts share.
struct AttachDetach {
    nodes: Newest<Node>,
    pods: Informer<Pod>,
    attachments: Informer<VolumeAttachment>,
    lookup: Arc<Lookup>,
    /// Whether a volume is taken by force from a node that had its time.
    forces_on_timeout: bool,
    state: Arc<Mutex<State>>,
    queue: Queue,
    metrics: AttachMetrics,
}

struct PerNode(Arc<AttachDetach>);
struct Populate(Arc<AttachDetach>);
struct Verify(Arc<AttachDetach>);

#[async_trait::async_trait]
impl Controller for PerNode {
    async fn reconcile(&self, cx: &Cx, key: &ObjectKey) -> Result<Next, ReconcileError> {
        self.0.sync_node(cx, key).await
    }
}

/// Looks at every node: drivers may have come, and what they need have changed.
#[async_trait::async_trait]
impl Controller for Populate {
    async fn reconcile(&self, _: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        for key in self.0.nodes.informer().keys() {
            self.0.queue.add(key);
        }
        for (node, _) in self.0.state.lock().all() {
            self.0.queue.add(ObjectKey::cluster(node));
        }
        Ok(Next::Done)
    }
}

/// Looks whether what is thought attached still is; what is not is attached again where it is wanted.
#[async_trait::async_trait]
impl Controller for Verify {
    async fn reconcile(&self, _: &Cx, _: &ObjectKey) -> Result<Next, ReconcileError> {
        let own = &self.0;
        let mut state = own.state.lock();
        own.fill(&mut state);
        let lost: Vec<(String, String)> = state
            .all()
            .filter(|(node, entry)| entry.is_settled() && !own.is_attached(node, entry))
            .map(|(node, entry)| (node.clone(), entry.target.name()))
            .collect();
        for (node, volume) in lost {
            tracing::warn!(node, volume, "A volume is not attached any more");
            state.remove(&node, &volume);
            own.queue.add(ObjectKey::cluster(&node));
            own.wake(&state, &volume);
        }
        Ok(Next::Done)
    }
}
