//! One informer: its store, its handlers, and the sink that the reflector feeds.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use base::CancellationToken;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::reflector::{Reflector, Sink};
use super::store::ObjectStore;
use super::{InformerOptions, Running, Scope, Transform};
use crate::object_key::ObjectKey;
use crate::resource::{ApiObject, ResourceInfo, downcast};
use crate::verbs::Verbs;

/// Handlers are not resynced more often than this.
const MIN_RESYNC: Duration = Duration::from_secs(1);

/// What happened to an object, as a handler sees it. The store may already hold something newer.
#[derive(Debug, Clone)]
pub enum Change<T> {
    /// The object is new to the handler.
    Added {
        /// The object.
        object: Arc<T>,
        /// Whether it was there before the handler was.
        initial: bool,
    },
    /// The object changed, or is delivered again (see [`Change::is_resync`]).
    Updated {
        /// What the handler saw last.
        old: Arc<T>,
        /// What it is now.
        new: Arc<T>,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        object: Arc<T>,
        /// Whether the deletion itself was missed, so that the last state may be older than the deletion.
        stale: bool,
    },
}

impl<T: ApiObject> Change<T> {
    /// The object in its newest known state.
    #[must_use]
    pub fn object(&self) -> &Arc<T> {
        match self {
            Self::Added { object, .. } | Self::Deleted { object, .. } => object,
            Self::Updated { new, .. } => new,
        }
    }

    /// The object's state before, where it had one.
    #[must_use]
    pub fn old(&self) -> Option<&Arc<T>> {
        match self {
            Self::Added { .. } | Self::Deleted { .. } => None,
            Self::Updated { old, .. } => Some(old),
        }
    }

    /// The object's key.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(self.object().meta())
    }

    /// Whether nothing changed and the object is only delivered again.
    #[must_use]
    pub fn is_resync(&self) -> bool {
        match self {
            Self::Updated { old, new } => old.meta().resource_version == new.meta().resource_version,
            _ => false,
        }
    }

    /// Whether the object is gone.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

/// A local copy of the objects of one kind and scope. Clones share it. Objects are shared and must not be changed.
pub struct Informer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Clone for Informer<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

struct Shared<T> {
    verbs: Verbs,
    scope: Scope,
    stream_fill: bool,
    drop_managed_fields: bool,
    transform: Option<Transform>,
    identities_only: bool,
    default_resync: Option<Duration>,
    store: ObjectStore<T>,
    /// Held while the store changes and handlers are told, so that each handler sees every change once, in order.
    handlers: Mutex<Vec<Handler<T>>>,
    synced: CancellationToken,
    started: AtomicBool,
    stopped: CancellationToken,
    /// Whether it follows no longer; changes while `handlers` is held.
    ended: AtomicBool,
}

/// What is called with every change.
type Call<T> = Box<dyn FnMut(&Change<T>) + Send>;

struct Handler<T> {
    call: Call<T>,
    resync: Option<Duration>,
    next_resync: Option<Instant>,
    /// Whose handler it is, where it ends before the informer does.
    of: Option<Weak<()>>,
}

impl<T> Handler<T> {
    fn is_wanted(&self) -> bool {
        self.of.as_ref().is_none_or(|of| of.strong_count() > 0)
    }
}

impl<T: ApiObject> Handler<T> {
    fn tell(&mut self, change: &Change<T>) {
        let call = &mut self.call;
        if catch_unwind(AssertUnwindSafe(|| call(change))).is_err() {
            tracing::error!(key = %change.key(), "Informer handler panicked");
        }
    }
}

impl<T: ApiObject> Informer<T> {
    pub(super) fn new(verbs: Verbs, scope: Scope, options: &InformerOptions, resync: Option<Duration>) -> Self {
        let stopped = verbs.client().tasks().token().child_token();
        let shared = Shared {
            verbs,
            scope,
            stream_fill: options.stream_fill,
            drop_managed_fields: options.drop_managed_fields,
            transform: options.transform.clone(),
            identities_only: options.identities_only,
            default_resync: resync.filter(|_| !options.identities_only),
            store: ObjectStore::default(),
            handlers: Mutex::default(),
            synced: CancellationToken::new(),
            started: AtomicBool::new(false),
            stopped,
            ended: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn handle(&self) -> Arc<dyn Running> {
        Arc::<Shared<T>>::clone(&self.shared) as Arc<dyn Running>
    }

    /// The resource.
    #[must_use]
    pub fn resource(&self) -> &ResourceInfo {
        self.shared.verbs.resource()
    }

    /// Starts following the server; does nothing when it runs already.
    pub fn start(&self) {
        self.shared.clone().launch();
    }

    /// The object of a key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        self.shared.store.get(key)
    }

    /// The object of this name in this namespace; an empty namespace for cluster-scoped ones.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.shared.store.find(namespace, name)
    }

    /// All objects, by namespace and name.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        self.shared.store.list()
    }

    /// The objects in a namespace, by name.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        self.shared.store.in_namespace(namespace)
    }

    /// The objects that an index has under a value, by namespace and name.
    #[must_use]
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        self.shared.store.by_index(index, value)
    }

    /// The values that an index has objects under.
    #[must_use]
    pub fn index_values(&self, index: &str) -> Vec<String> {
        self.shared.store.index_values(index)
    }

    /// All keys, in order.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.shared.store.keys()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.store.len()
    }

    /// Whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The version that the store is at.
    #[must_use]
    pub fn resource_version(&self) -> String {
        self.shared.store.version()
    }

    /// Adds an index: the values that each object is found under. One of the same name stays as it is, so that
    /// everybody who needs it may add it.
    pub fn add_index(&self, name: &'static str, values_of: impl Fn(&T) -> Vec<String> + Send + Sync + 'static) {
        self.shared.store.add_index(name, values_of);
    }

    /// Calls `handler` for every object that is there, and for every change from then on. It must neither block nor
    /// subscribe to this informer.
    pub fn subscribe(&self, handler: impl FnMut(&Change<T>) + Send + 'static) {
        self.add_handler(self.shared.default_resync, None, Box::new(handler));
    }

    /// Like [`Self::subscribe`], until nobody holds `of` any more.
    pub(super) fn subscribe_while(&self, of: Weak<()>, handler: impl FnMut(&Change<T>) + Send + 'static) {
        self.add_handler(self.shared.default_resync, Some(of), Box::new(handler));
    }

    /// Like [`Self::subscribe`], with a resync period of its own: everything is delivered again that often.
    pub fn subscribe_with_resync(&self, period: Duration, handler: impl FnMut(&Change<T>) + Send + 'static) {
        self.add_handler(Some(period.max(MIN_RESYNC)), None, Box::new(handler));
    }

    fn add_handler(&self, resync: Option<Duration>, of: Option<Weak<()>>, call: Call<T>) {
        let next_resync = resync.map(|period| Instant::now() + period);
        let mut handler = Handler { call, resync, next_resync, of };
        let mut handlers = self.shared.handlers.lock();
        handlers.retain(Handler::is_wanted);
        for object in self.shared.store.list() {
            handler.tell(&Change::Added { object, initial: true });
        }
        // Of an informer that has ended it hears no more, and nobody would let go of it.
        if !self.shared.ended.load(Ordering::SeqCst) {
            handlers.push(handler);
        }
    }

    /// Whether the store has been filled and the handlers have been told.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.shared.synced.is_cancelled()
    }

    /// Waits until the store has been filled and the handlers have been told.
    pub async fn wait_synced(&self) {
        self.shared.synced.cancelled().await;
    }
}

/// An informer that follows its server. What handlers hold often holds the informer, so they go when it ends, however that
/// comes: else each would keep the other for good.
struct Following<T: ApiObject>(Arc<Shared<T>>);

impl<T: ApiObject> Drop for Following<T> {
    fn drop(&mut self) {
        let mut handlers = self.0.handlers.lock();
        self.0.ended.store(true, Ordering::SeqCst);
        let told = std::mem::take(&mut *handlers);
        // What they hold may be the last to hold another informer, and that locks, too.
        drop(handlers);
        drop(told);
    }
}

impl<T: ApiObject> Shared<T> {
    fn launch(self: Arc<Self>) {
        if self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        let reflector = Reflector {
            verbs: self.verbs.clone(),
            label_selector: self.scope.label_selector.clone(),
            field_selector: self.scope.field_selector.clone(),
            stream_fill: self.stream_fill,
            sink: Arc::<Self>::clone(&self) as Arc<dyn Sink>,
        };
        let stopped = self.stopped.clone();
        let running = Following(self.clone());
        self.verbs.client().tasks().spawn("informer", async move {
            let _running = running;
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = reflector.run() => {}
            }
        });
    }

    /// Prepares an object for the store; nothing when it is of another kind.
    fn accept(&self, mut object: Box<dyn Object>) -> Option<(ObjectKey, Arc<T>)> {
        if self.drop_managed_fields {
            object.meta_mut().managed_fields.clear();
        }
        if let Some(transform) = &self.transform {
            transform(object.as_mut());
        }
        let key = ObjectKey::of(object.meta());
        match downcast::<T>(object) {
            Some(object) => Some((key, Arc::new(object))),
            None => {
                tracing::error!(%key, "Object of an unexpected kind dropped");
                None
            }
        }
    }

    /// Forgets all but the identity of an object that handlers are told of, where nobody reads it here.
    fn told(&self, key: &ObjectKey, meta: &ObjectMeta) {
        if !self.identities_only {
            return;
        }
        let mut identity = T::default();
        *identity.meta_mut() = ObjectMeta {
            name: meta.name.clone(),
            namespace: meta.namespace.clone(),
            uid: meta.uid.clone(),
            resource_version: meta.resource_version.clone(),
            ..ObjectMeta::default()
        };
        self.store.put(key, &Arc::new(identity));
    }

    /// Tells of an object that has come in place of `old`.
    fn tell_put(handlers: &mut [Handler<T>], old: Option<Arc<T>>, new: Arc<T>, initial: bool) {
        match old {
            None => Self::tell(handlers, &Change::Added { object: new, initial }),
            // Delivered twice.
            Some(old) if old.meta().resource_version == new.meta().resource_version => {}
            // While nobody watched, the object went and another of its name came.
            Some(old) if old.meta().uid != new.meta().uid => {
                Self::tell(handlers, &Change::Deleted { object: old, stale: true });
                Self::tell(handlers, &Change::Added { object: new, initial });
            }
            Some(old) => Self::tell(handlers, &Change::Updated { old, new }),
        }
    }

    fn tell(handlers: &mut [Handler<T>], change: &Change<T>) {
        for handler in handlers.iter_mut().filter(|handler| handler.is_wanted()) {
            handler.tell(change);
        }
    }
}

impl<T: ApiObject> Running for Shared<T> {
    fn start(self: Arc<Self>) {
        self.launch();
    }

    fn stop(&self) {
        self.stopped.cancel();
    }

    fn synced(&self) -> CancellationToken {
        self.synced.clone()
    }
}

impl<T: ApiObject> Sink for Shared<T> {
    fn replace(&self, objects: Vec<Box<dyn Object>>, version: &str) {
        let mut handlers = self.handlers.lock();
        handlers.retain(Handler::is_wanted);
        let order: Vec<_> = objects.into_iter().filter_map(|object| self.accept(object)).collect();
        let content: BTreeMap<_, _> = order.iter().cloned().collect();
        let former = self.store.replace(content, version);
        for (key, object) in &former {
            if self.store.get(key).is_none() {
                Self::tell(&mut handlers, &Change::Deleted { object: Arc::clone(object), stale: true });
            }
        }
        let initial = !self.synced.is_cancelled();
        for (key, new) in order {
            self.told(&key, new.meta());
            Self::tell_put(&mut handlers, former.get(&key).cloned(), new, initial);
        }
        drop(handlers);
        self.synced.cancel();
    }

    fn put(&self, object: Box<dyn Object>) {
        let Some((key, new)) = self.accept(object) else { return };
        let mut handlers = self.handlers.lock();
        let old = self.store.put(&key, &new);
        self.told(&key, new.meta());
        Self::tell_put(&mut handlers, old, new, false);
    }

    fn remove(&self, object: Box<dyn Object>) {
        let Some((key, object)) = self.accept(object) else { return };
        let mut handlers = self.handlers.lock();
        if self.store.remove(&key).is_some() {
            Self::tell(&mut handlers, &Change::Deleted { object, stale: false });
        }
    }

    fn advance(&self, version: &str) {
        self.store.advance(version);
    }

    fn next_resync(&self) -> Option<Instant> {
        self.handlers.lock().iter().filter_map(|handler| handler.next_resync).min()
    }

    fn resync(&self, now: Instant) {
        let mut handlers = self.handlers.lock();
        let objects = self.store.list();
        let due = |handler: &&mut Handler<T>| handler.is_wanted() && handler.next_resync.is_some_and(|at| at <= now);
        for handler in handlers.iter_mut().filter(due) {
            handler.next_resync = handler.resync.map(|period| now + period);
            for object in &objects {
                handler.tell(&Change::Updated { old: Arc::clone(object), new: Arc::clone(object) });
            }
        }
    }
}
