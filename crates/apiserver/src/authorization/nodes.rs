//! The links between nodes and objects, fed by what the server sees of pods and volumes.

use std::sync::Arc;

use api_machinery::object::Object;
use api_types::certificates_v1beta1::PodCertificateRequest;
use api_types::core_v1::{PersistentVolume, Pod};
use api_types::resource_v1::ResourceSlice;
use api_types::storage_v1::VolumeAttachment;
use authz::node::{Graph, NodeObject};
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
    for named in NAMED {
        follow(registry, named.resource, Arc::new(Objects { links: links.clone(), named }), tasks);
    }
}

/// A kind whose objects name their node.
struct Named {
    resource: (&'static str, &'static str, &'static str),
    kind: NodeObject,
    /// How changes are called where they are timed.
    operations: [&'static str; 2],
    node_of: fn(&dyn Object) -> Option<&str>,
}

static NAMED: &[Named] = &[
    Named {
        resource: ("storage.k8s.io", "v1", "volumeattachments"),
        kind: NodeObject::Attachment,
        operations: ["AddVolumeAttachment", "DeleteVolumeAttachment"],
        node_of: |object| Some(&object.downcast_ref::<VolumeAttachment>()?.spec.node_name),
    },
    Named {
        resource: ("resource.k8s.io", "v1", "resourceslices"),
        kind: NodeObject::Slice,
        operations: ["AddResourceSlice", "DeleteResourceSlice"],
        node_of: |object| object.downcast_ref::<ResourceSlice>()?.spec.node_name.as_deref(),
    },
    Named {
        resource: ("certificates.k8s.io", "v1beta1", "podcertificaterequests"),
        kind: NodeObject::CertificateRequest,
        operations: ["AddPodCertificateRequest", "DeletePodCertificateRequest"],
        node_of: |object| Some(&object.downcast_ref::<PodCertificateRequest>()?.spec.node_name),
    },
];

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

struct Objects {
    links: Links,
    named: &'static Named,
}

impl Follower for Objects {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let Named { kind, operations: [operation, _], node_of, .. } = self.named;
        let (meta, node) = (object.meta(), node_of(object).unwrap_or_default());
        self.links.change(operation, |graph| graph.set_named(*kind, &meta.namespace, &meta.name, node));
    }
    fn gone(&self, namespace: &str, name: &str) {
        let Named { kind, operations: [_, operation], .. } = self.named;
        self.links.change(operation, |graph| graph.delete_named(*kind, namespace, name));
    }
}
