//! Typed copies of small kinds that are looked at with every request, kept up to date by a watch of the registry.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, Object};
use base::{SharedClock, TaskGroup};
use parking_lot::RwLock;
use registry::{ChangeKind, Event, Registry, Resource};

use crate::cx::server_request;

/// Pause before a watch that ended is begun anew; it bounds the load of a store that cannot be read.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// Objects by name within a namespace; cluster-scoped ones are in the namespace "".
type Objects<T> = BTreeMap<String, BTreeMap<String, Arc<T>>>;

/// Told of every change, after the mirror has it: the object before and after it.
type Observer<T> = Box<dyn Fn(Option<&Arc<T>>, Option<&Arc<T>>) + Send + Sync>;

/// All objects of one kind.
pub(crate) struct Mirror<T> {
    synced: AtomicBool,
    objects: RwLock<Objects<T>>,
    observers: RwLock<Vec<Observer<T>>>,
}

impl<T> Default for Mirror<T> {
    fn default() -> Self {
        Self { synced: AtomicBool::new(false), objects: RwLock::default(), observers: RwLock::default() }
    }
}

impl<T: Object + Kind> Mirror<T> {
    /// One object.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.objects.read().get(namespace)?.get(name).cloned()
    }

    /// The objects of a namespace.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        self.objects.read().get(namespace).map(|objects| objects.values().cloned().collect()).unwrap_or_default()
    }

    /// Calls `observer` with every change from now on.
    pub(crate) fn observe(&self, observer: impl Fn(Option<&Arc<T>>, Option<&Arc<T>>) + Send + Sync + 'static) {
        self.observers.write().push(Box::new(observer));
    }

    /// Whether it has been filled once.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Follows the registry for as long as the tasks live.
    pub(crate) fn follow(self: &Arc<Self>, registry: &Registry, clock: &SharedClock, tasks: &TaskGroup) {
        let Some(resource) = registry.resource(T::TYPE.group, T::TYPE.version, T::TYPE.resource) else { return };
        let (mirror, clock) = (Arc::clone(self), Arc::clone(clock));
        tasks.spawn_cancellable("mirror", async move {
            loop {
                resource.ready().await;
                mirror.follow_once(&resource, &clock).await;
                tokio::time::sleep(RESTART_DELAY).await;
            }
        });
    }

    /// Follows one watch to its end: first everything there is, then the changes.
    async fn follow_once(&self, resource: &Arc<Resource>, clock: &SharedClock) {
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
                tracing::warn!(%error, resource = T::TYPE.resource, "Watching for the mirror failed");
                return;
            }
        };
        let mut seen = Some(Objects::<T>::new());
        while let Some(event) = watch.next().await {
            match event {
                Event::Change(change) => {
                    let Some(object) = change.item.object().downcast_ref::<T>() else { continue };
                    if let Some(seen) = &mut seen {
                        let names = seen.entry(object.meta().namespace.clone()).or_default();
                        names.insert(object.meta().name.clone(), Arc::new(object.clone()));
                    }
                    self.apply(change.kind, object);
                }
                Event::Bookmark { initial_events_end: true, .. } => {
                    if let Some(seen) = seen.take() {
                        self.forget_missing(&seen);
                        self.synced.store(true, Ordering::Release);
                    }
                }
                Event::Bookmark { .. } => {}
                Event::Error(_) => return,
            }
        }
    }

    fn apply(&self, kind: ChangeKind, object: &T) {
        let meta = object.meta();
        let new = (kind != ChangeKind::Deleted).then(|| Arc::new(object.clone()));
        let old = {
            let mut objects = self.objects.write();
            let names = objects.entry(meta.namespace.clone()).or_default();
            match &new {
                Some(new) => names.insert(meta.name.clone(), Arc::clone(new)),
                None => names.remove(&meta.name),
            }
        };
        self.tell(old.as_ref(), new.as_ref());
    }

    /// Removes what a new watch no longer showed.
    fn forget_missing(&self, seen: &Objects<T>) {
        let mut gone = Vec::new();
        for (namespace, names) in self.objects.write().iter_mut() {
            names.retain(|name, object| {
                let stays = seen.get(namespace).is_some_and(|seen| seen.contains_key(name));
                if !stays {
                    gone.push(Arc::clone(object));
                }
                stays
            });
        }
        gone.iter().for_each(|object| self.tell(Some(object), None));
    }

    fn tell(&self, old: Option<&Arc<T>>, new: Option<&Arc<T>>) {
        for observer in self.observers.read().iter() {
            observer(old, new);
        }
    }
}
