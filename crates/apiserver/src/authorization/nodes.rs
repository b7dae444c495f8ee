//! The links between nodes and objects, fed by what the server sees of pods and volumes.

use std::sync::Arc;

use api_machinery::object::Object;
use api_types::core_v1::{PersistentVolume, Pod};
use api_types::storage_v1::VolumeAttachment;
use authz::node::Graph;
use base::TaskGroup;
use registry::Registry;

use crate::follow::{Follower, follow};

/// Keeps the links up to date for as long as the tasks live.
pub(super) fn keep(graph: &Arc<Graph>, registry: &Registry, tasks: &TaskGroup) {
    follow(registry, ("", "v1", "pods"), Arc::new(Pods(Arc::clone(graph))), tasks);
    follow(registry, ("", "v1", "persistentvolumes"), Arc::new(Volumes(Arc::clone(graph))), tasks);
    let attachments = Arc::new(Attachments(Arc::clone(graph)));
    follow(registry, ("storage.k8s.io", "v1", "volumeattachments"), attachments, tasks);
}

struct Pods(Arc<Graph>);

impl Follower for Pods {
    fn set(&self, object: &dyn Object) {
        if let Some(pod) = object.downcast_ref::<Pod>() {
            self.0.set_pod(pod);
        }
    }
    fn gone(&self, namespace: &str, name: &str) {
        self.0.delete_pod(namespace, name);
    }
}

struct Volumes(Arc<Graph>);

impl Follower for Volumes {
    fn set(&self, object: &dyn Object) {
        if let Some(volume) = object.downcast_ref::<PersistentVolume>() {
            self.0.set_volume(volume);
        }
    }
    fn gone(&self, _: &str, name: &str) {
        self.0.delete_volume(name);
    }
}

struct Attachments(Arc<Graph>);

impl Follower for Attachments {
    fn set(&self, object: &dyn Object) {
        if let Some(attachment) = object.downcast_ref::<VolumeAttachment>() {
            self.0.set_attachment(attachment);
        }
    }
    fn gone(&self, _: &str, name: &str) {
        self.0.delete_attachment(name);
    }
}
