//! Feeding the Node authorizer: pods and volumes as the server sees them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, Object};
use api_types::core_v1::{PersistentVolume, Pod};
use authz::node::Graph;
use base::{SharedClock, TaskGroup};
use registry::{ChangeKind, Event, Registry, Resource};

use crate::cx::server_request;

/// Pause before a watch that ended is begun anew.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// Namespace and name.
type Place = (String, String);

/// An object that links nodes to others.
trait Linking: Object + Kind {
    fn set(&self, graph: &Graph);
    fn delete(graph: &Graph, place: &Place);
}

impl Linking for Pod {
    fn set(&self, graph: &Graph) {
        graph.set_pod(self);
    }
    fn delete(graph: &Graph, (namespace, name): &Place) {
        graph.delete_pod(namespace, name);
    }
}

impl Linking for PersistentVolume {
    fn set(&self, graph: &Graph) {
        graph.set_volume(self);
    }
    fn delete(graph: &Graph, (_, name): &Place) {
        graph.delete_volume(name);
    }
}

/// Keeps the links up to date for as long as the tasks live.
pub(super) fn follow(graph: &Arc<Graph>, registry: &Registry, clock: &SharedClock, tasks: &TaskGroup) {
    follow_kind::<Pod>(graph, registry, clock, tasks);
    follow_kind::<PersistentVolume>(graph, registry, clock, tasks);
}

fn follow_kind<T: Linking>(graph: &Arc<Graph>, registry: &Registry, clock: &SharedClock, tasks: &TaskGroup) {
    let Some(resource) = registry.resource(T::TYPE.group, T::TYPE.version, T::TYPE.resource) else { return };
    let (graph, clock) = (Arc::clone(graph), Arc::clone(clock));
    tasks.spawn_cancellable("node-links", async move {
        let mut known = BTreeSet::new();
        loop {
            resource.ready().await;
            follow_once::<T>(&graph, &resource, &clock, &mut known).await;
            tokio::time::sleep(RESTART_DELAY).await;
        }
    });
}

/// Follows one watch to its end: first everything there is, then the changes.
async fn follow_once<T: Linking>(
    graph: &Graph,
    resource: &Arc<Resource>,
    clock: &SharedClock,
    known: &mut BTreeSet<Place>,
) {
    let options = ListOptions {
        watch: true,
        allow_watch_bookmarks: true,
        send_initial_events: Some(true),
        resource_version_match: "NotOlderThan".to_owned(),
        resource_version: "0".to_owned(),
        ..ListOptions::default()
    };
    let mut watch = match resource.watch(&server_request(clock, ""), &options, None).await {
        Ok(watch) => watch,
        Err(error) => {
            tracing::warn!(%error, resource = T::TYPE.resource, "Watching for the Node authorizer failed");
            return;
        }
    };
    let mut unseen = known.clone();
    while let Some(event) = watch.next().await {
        match event {
            Event::Change(change) => {
                let Some(object) = change.item.object().downcast_ref::<T>() else { continue };
                let place = (object.meta().namespace.clone(), object.meta().name.clone());
                unseen.remove(&place);
                if change.kind == ChangeKind::Deleted {
                    T::delete(graph, &place);
                    known.remove(&place);
                } else {
                    object.set(graph);
                    known.insert(place);
                }
            }
            Event::Bookmark { initial_events_end: true, .. } => {
                for place in std::mem::take(&mut unseen) {
                    T::delete(graph, &place);
                    known.remove(&place);
                }
            }
            Event::Bookmark { .. } => {}
            Event::Error(_) => return,
        }
    }
}
