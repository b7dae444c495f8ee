//! The links between nodes and objects, fed by what the server sees of pods and volumes.

use std::sync::Arc;

use api_machinery::object::Object;
use api_types::core_v1::{PersistentVolume, Pod};
use api_types::storage_v1::VolumeAttachment;
use authz::node::Graph;
use base::SharedClock;
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Desc, Histograms, Metrics, Stability, exponential};
use registry::Registry;

use crate::follow::{Follower, follow};

const SECONDS: &[f64] = &exponential::<12>(0.0001, 2.0);
const ACTIONS: Desc = Desc::new(
    "node_authorizer_graph_actions_duration_seconds",
    "How long changes of the links between nodes and objects took.",
    Stability::Alpha,
)
.labels(&["operation"])
.buckets(SECONDS);

/// How long changes of the links take.
pub(super) fn durations(metrics: &Metrics) -> Histograms {
    metrics.histograms(&ACTIONS)
}

/// Keeps the links up to date for as long as the tasks live.
pub(super) fn keep(graph: &Arc<Graph>, registry: &Registry, lifecycle: &Lifecycle, durations: Histograms) {
    let (graph, clock, tasks) = (Arc::clone(graph), Arc::clone(lifecycle.clock()), lifecycle.tasks());
    let links = Links { graph, clock, durations };
    follow(registry, ("", "v1", "pods"), Arc::new(Pods(links.clone())), tasks);
    follow(registry, ("", "v1", "persistentvolumes"), Arc::new(Volumes(links.clone())), tasks);
    follow(registry, ("storage.k8s.io", "v1", "volumeattachments"), Arc::new(Attachments(links)), tasks);
}

/// The links, changes of which are timed.
#[derive(Clone)]
struct Links {
    graph: Arc<Graph>,
    clock: SharedClock,
    durations: Histograms,
}

impl Links {
    fn change(&self, operation: &str, change: impl FnOnce(&Graph)) {
        let begun = self.clock.monotonic();
        change(&self.graph);
        self.durations.with(&[operation]).observe((self.clock.monotonic() - begun).as_secs_f64());
    }
}

struct Pods(Links);

impl Follower for Pods {
    fn set(&self, key: &Arc<str>, object: &dyn Object) {
        if let Some(pod) = object.downcast_ref::<Pod>() {
            self.0.change("AddPod", |graph| graph.set_pod(key, pod));
        }
    }
    fn gone(&self, namespace: &str, name: &str) {
        self.0.change("DeletePod", |graph| graph.delete_pod(namespace, name));
    }
}

struct Volumes(Links);

impl Follower for Volumes {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        if let Some(volume) = object.downcast_ref::<PersistentVolume>() {
            self.0.change("AddPV", |graph| graph.set_volume(volume));
        }
    }
    fn gone(&self, _: &str, name: &str) {
        self.0.change("DeletePV", |graph| graph.delete_volume(name));
    }
}

struct Attachments(Links);

impl Follower for Attachments {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        if let Some(attachment) = object.downcast_ref::<VolumeAttachment>() {
            self.0.change("AddVolumeAttachment", |graph| graph.set_attachment(attachment));
        }
    }
    fn gone(&self, _: &str, name: &str) {
        self.0.change("DeleteVolumeAttachment", |graph| graph.delete_attachment(name));
    }
}
