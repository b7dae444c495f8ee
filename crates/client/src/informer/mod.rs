//! Informers: a local copy of the objects of one kind and scope, kept current by a watch and shared by everybody in
//! the process, with handlers that are told of every change.
//!
//! Handlers are called in order by the one task that feeds the store, after the store has changed, so there is no
//! queue to overflow. They must not block: the usual handler puts a key into a work queue.

mod reflector;
mod share;
mod shared;
mod step;
mod store;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::{Kind, Object, Unstructured};
use base::CancellationToken;
use parking_lot::Mutex;

pub(crate) use reflector::backoff;
pub use share::Share;
pub use shared::{Change, Informer};
pub use store::ObjectStore;

use crate::client::Client;
use crate::resource::{ApiObject, Codec, ResourceInfo};
use crate::verbs::Verbs;

/// Changes every object before it is stored.
pub type Transform = Arc<dyn Fn(&mut dyn Object) + Send + Sync>;

/// How the informers of a process behave.
#[derive(Clone)]
pub struct InformerOptions {
    /// After how long handlers get everything again: this and up to twice as long. Nothing for never.
    pub resync: Option<Duration>,
    /// Whether `managedFields` are dropped before an object is stored; nobody but the API server needs them.
    pub drop_managed_fields: bool,
    /// Whether the store is filled by a watch that starts with all objects (falls back to a list),
    /// unless the process has that off.
    pub stream_fill: bool,
    /// What else to change before an object is stored.
    pub transform: Option<Transform>,
    /// Whether, once handlers were told of an object, the store keeps no more than its names, uid and version: for a
    /// single handler, there before the start, that keeps the objects itself. What is told as former state is no more
    /// than that, and nothing is told again.
    pub identities_only: bool,
}

impl Default for InformerOptions {
    fn default() -> Self {
        Self { resync: None, drop_managed_fields: true, stream_fill: true, transform: None, identities_only: false }
    }
}

/// Which objects of a resource an informer holds. The default is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope {
    /// One namespace; empty for all.
    pub namespace: String,
    /// A label selector; empty for all.
    pub label_selector: String,
    /// A field selector; empty for all.
    pub field_selector: String,
}

impl Scope {
    /// One object by name.
    #[must_use]
    pub fn object(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), field_selector: format!("metadata.name={name}"), ..Self::default() }
    }

    /// The objects that a field selector selects.
    #[must_use]
    pub fn fields(field_selector: &str) -> Self {
        Self { field_selector: field_selector.to_owned(), ..Self::default() }
    }
}

/// The informers of a process: one for each resource, form and scope. Clones share them.
#[derive(Clone)]
pub struct Informers {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    options: InformerOptions,
    /// The one resync period of this factory.
    resync: Option<Duration>,
    known: Mutex<BTreeMap<InformerKey, Entry>>,
}

/// Form, resource and scope; the form is part of it as the same resource may be held whole and as metadata.
type InformerKey = (u8, ResourceInfo, Scope);

struct Entry {
    informer: Box<dyn Any + Send + Sync>,
    handle: Arc<dyn Running>,
    /// What those who share it hold; nothing for an informer that stays for good.
    hold: Option<Weak<Hold>>,
}

/// What the shares of an informer have in common; with the last of them, the informer ends.
struct Hold {
    inner: Weak<Inner>,
    place: InformerKey,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        let mut known = inner.known.lock();
        // In between, somebody may have come who found no share left and started an informer anew.
        let is_own = |entry: &Entry| entry.hold.as_ref().is_some_and(|hold| std::ptr::eq(hold.as_ptr(), self));
        if known.get(&self.place).is_some_and(is_own)
            && let Some(entry) = known.remove(&self.place)
        {
            entry.handle.stop();
        }
    }
}

/// What the factory does with an informer whose type it does not know.
trait Running: Send + Sync {
    fn start(self: Arc<Self>);
    fn stop(&self);
    fn synced(&self) -> CancellationToken;
}

impl Informers {
    /// Informers that ask through `client`; their tasks live in the client's group.
    #[must_use]
    pub fn new(client: &Client, mut options: InformerOptions) -> Self {
        options.stream_fill &= client.cx().features.fills_by_watch;
        let resync = options.resync.map(|period| period.mul_f64(1.0 + client.rng().unit()));
        let inner = Inner { client: client.clone(), options, resync, known: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// All objects of a kind.
    #[must_use]
    pub fn of<T: Kind + Object>(&self) -> Informer<T> {
        self.scoped(&Scope::default())
    }

    /// Some objects of a kind.
    #[must_use]
    pub fn scoped<T: Kind + Object>(&self, scope: &Scope) -> Informer<T> {
        self.get_or_make(Codec::typed::<T>(), scope)
    }

    /// The metadata of all objects of a resource that always is there.
    #[must_use]
    pub fn metadata(&self, info: &ResourceInfo) -> Informer<PartialObjectMetadata> {
        self.get_or_make(Codec::metadata(info), &Scope::default())
    }

    /// A share in the metadata of all objects of a resource that may go away: the informer ends, and its objects are
    /// forgotten, once nobody has a share in it any more.
    #[must_use]
    pub fn share_metadata(&self, info: &ResourceInfo) -> Share<PartialObjectMetadata> {
        let codec = Codec::metadata(info);
        let place = (codec.form as u8, info.clone(), Scope::default());
        let mut known = self.inner.known.lock();
        if let Some(entry) = known.get(&place)
            && let Some(informer) = entry.informer.downcast_ref::<Informer<PartialObjectMetadata>>()
        {
            match &entry.hold {
                None => return Share::new(informer.clone(), None),
                Some(hold) => {
                    if let Some(hold) = hold.upgrade() {
                        return Share::new(informer.clone(), Some(hold));
                    }
                    entry.handle.stop();
                }
            }
        }
        let hold = Arc::new(Hold { inner: Arc::downgrade(&self.inner), place: place.clone() });
        let (informer, entry) = self.make(codec, &place.2, Some(Arc::downgrade(&hold)));
        known.insert(place, entry);
        Share::new(informer, Some(hold))
    }

    /// All objects of a resource, as free-form values.
    #[must_use]
    pub fn dynamic(&self, info: &ResourceInfo) -> Informer<Unstructured> {
        self.get_or_make(Codec::unstructured(info), &Scope::default())
    }

    fn get_or_make<T: ApiObject>(&self, codec: Codec, scope: &Scope) -> Informer<T> {
        let place = (codec.form as u8, ResourceInfo::clone(&codec.info), scope.clone());
        let mut known = self.inner.known.lock();
        if let Some(informer) = known.get(&place).and_then(|entry| entry.informer.downcast_ref::<Informer<T>>()) {
            return informer.clone();
        }
        let (informer, entry) = self.make(codec, scope, None);
        known.insert(place, entry);
        informer
    }

    fn make<T: ApiObject>(&self, codec: Codec, scope: &Scope, hold: Option<Weak<Hold>>) -> (Informer<T>, Entry) {
        let verbs = Verbs::new(&self.inner.client, codec, &scope.namespace);
        let informer = Informer::new(verbs, scope.clone(), &self.inner.options, self.inner.resync);
        let entry = Entry { informer: Box::new(informer.clone()), handle: informer.handle(), hold };
        (informer, entry)
    }

    /// Starts every informer that is not running yet.
    pub fn start(&self) {
        for handle in self.handles() {
            handle.start();
        }
    }

    /// Waits until every informer that is known now has been filled for the first time.
    pub async fn wait_synced(&self) {
        for handle in self.handles() {
            handle.synced().cancelled().await;
        }
    }

    /// Whether every informer that is known now has been filled.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.handles().iter().all(|handle| handle.synced().is_cancelled())
    }

    fn handles(&self) -> Vec<Arc<dyn Running>> {
        self.inner.known.lock().values().map(|entry| Arc::clone(&entry.handle)).collect()
    }
}
