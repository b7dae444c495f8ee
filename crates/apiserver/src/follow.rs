//! Following a resource of the registry by a watch that is begun anew whenever it ends.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Object;
use base::TaskGroup;
use registry::{ChangeKind, Event, Registry, Resource};

/// Pause before a watch that ended is begun anew; it bounds the load of a store that cannot be read.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// The objects that were told of, by their keys: `{namespace}/{name}`, or the name alone.
type Known = HashSet<Arc<str>>;

/// Somebody who follows a resource.
pub(crate) trait Follower: Send + Sync + 'static {
    /// An object as it is now, by its key, which is the same one each time; called again for objects that it knows.
    fn set(&self, key: &Arc<str>, object: &dyn Object);
    /// An object that is gone.
    fn gone(&self, namespace: &str, name: &str);
    /// The last state of an object that goes, where the watch saw it go; `gone` follows.
    fn removed(&self, _object: &dyn Object) {}
    /// Everything that there is has been told.
    fn complete(&self) {}
}

/// Tells `follower` of a core resource for as long as the tasks live.
pub(crate) fn follow(
    registry: &Registry,
    (group, version, resource): (&str, &str, &str),
    follower: Arc<dyn Follower>,
    tasks: &TaskGroup,
) {
    let Some(resource) = registry.resource(group, version, resource) else { return };
    tasks.spawn_cancellable("follow", async move {
        let mut known = Known::new();
        loop {
            resource.ready().await;
            follow_once(&resource, &*follower, &mut known).await;
            tokio::time::sleep(RESTART_DELAY).await;
        }
    });
}

/// Follows one watch to its end: first everything there is, then the changes. What a former watch had shown and this
/// one does not was deleted in between.
async fn follow_once(resource: &Arc<Resource>, follower: &dyn Follower, known: &mut Known) {
    let mut watch = match resource.follow().await {
        Ok(watch) => watch,
        Err(error) => {
            tracing::warn!(%error, resource = %resource.group_resource(), "Following a resource failed");
            return;
        }
    };
    let mut unseen = Some(known.clone());
    while let Some(event) = watch.next().await {
        match event {
            // Told once and not kept: what is at rest stays at rest.
            Event::Change(change) => change.item.look(|object| {
                let key = change.item.key();
                if change.kind == ChangeKind::Deleted {
                    known.remove(key);
                    follower.removed(object);
                    tell_gone(follower, key);
                } else {
                    if let Some(unseen) = &mut unseen {
                        unseen.remove(key);
                    }
                    let key = known.get(key).map_or_else(|| Arc::clone(key), Arc::clone);
                    follower.set(&key, object);
                    known.insert(key);
                }
            }),
            Event::Bookmark { initial_events_end: true, .. } => {
                for key in unseen.take().unwrap_or_default() {
                    known.remove(&key);
                    tell_gone(follower, &key);
                }
                follower.complete();
            }
            Event::Bookmark { .. } => {}
            Event::Error(error) => {
                tracing::warn!(%error, resource = %resource.group_resource(), "Following a resource failed");
                return;
            }
        }
    }
}

fn tell_gone(follower: &dyn Follower, key: &str) {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    follower.gone(namespace, name);
}
