//! Objects that plugins look at besides the cluster's snapshot. A plugin asks for the kinds that it reads when it is built
//! ([`Listers::of`]); what nobody asks for is not watched.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use client::{Informer, Informers, ObjectKey, ObjectStore};
use parking_lot::Mutex;

/// Where listers come from: from watches, or from memory for tests and benchmarks.
pub struct Listers {
    informers: Option<Informers>,
    /// The lister of each kind that was asked for.
    known: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
}

impl Listers {
    /// Listers of what the informers bring in. A kind that is asked for is watched from their next start on.
    #[must_use]
    pub fn watched(informers: Informers) -> Self {
        Self { informers: Some(informers), known: Mutex::default() }
    }

    /// Listers of what is put into them.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { informers: None, known: Mutex::default() }
    }

    /// The objects of a kind.
    pub fn of<T: Kind + Object>(&self) -> Lister<T> {
        let mut known = self.known.lock();
        let lister = known.get(&TypeId::of::<T>()).and_then(|lister| lister.downcast_ref::<Lister<T>>());
        if let Some(lister) = lister {
            return lister.clone();
        }
        let lister = match &self.informers {
            Some(informers) => Lister::Watched(informers.of()),
            None => Lister::InMemory(Arc::default()),
        };
        known.insert(TypeId::of::<T>(), Box::new(lister.clone()));
        lister
    }

    /// Objects of this kind come from here, as only some of them are watched.
    pub(crate) fn set<T: Kind + Object>(&self, lister: Lister<T>) {
        self.known.lock().insert(TypeId::of::<T>(), Box::new(lister));
    }
}

/// Reads of the objects of one kind, as new as the watch has brought them. Nothing here goes over the network. Clones
/// share the objects.
pub enum Lister<T> {
    /// What an informer holds.
    Watched(Informer<T>),
    /// What was put there.
    InMemory(Arc<InMemory<T>>),
}

/// The values that an object is found under in an index.
type ValuesOf<T> = fn(&T) -> Vec<String>;

/// Hears of an object that changed, or is gone.
type Heard<T> = Box<dyn FnMut(&Arc<T>) + Send>;

/// Objects that were put there.
pub struct InMemory<T> {
    objects: ObjectStore<T>,
    heard: Mutex<Vec<Heard<T>>>,
}

impl<T> Default for InMemory<T> {
    fn default() -> Self {
        Self { objects: ObjectStore::default(), heard: Mutex::default() }
    }
}

impl<T> InMemory<T> {
    fn tell(&self, object: &Arc<T>) {
        for hear in self.heard.lock().iter_mut() {
            hear(object);
        }
    }
}

impl<T> Clone for Lister<T>
where
    Informer<T>: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Self::Watched(informer) => Self::Watched(informer.clone()),
            Self::InMemory(own) => Self::InMemory(Arc::clone(own)),
        }
    }
}

/// There is no such object, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource} {name:?} not found")]
pub struct NotFound {
    resource: String,
    name: String,
}

impl NotFound {
    /// No object of a kind has this name.
    #[must_use]
    pub fn of<T: Kind>(name: &str) -> Self {
        let (singular, group) = (T::TYPE.singular, T::TYPE.group);
        let resource = if group.is_empty() { singular.to_owned() } else { format!("{singular}.{group}") };
        Self { resource, name: name.to_owned() }
    }
}

impl<T: Kind + Object> Lister<T> {
    /// An object by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, namespace: &str, name: &str) -> Result<Arc<T>, NotFound> {
        self.find(namespace, name).ok_or_else(|| NotFound::of::<T>(name))
    }

    /// An object by its name; the namespace is empty for kinds that live in none.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.find(namespace, name),
            Self::InMemory(own) => own.objects.find(namespace, name),
        }
    }

    /// All objects.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.list(),
            Self::InMemory(own) => own.objects.list(),
        }
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.in_namespace(namespace),
            Self::InMemory(own) => own.objects.in_namespace(namespace),
        }
    }

    /// Adds an index: the values that each object is found under. One of the same name stays as it is.
    pub fn add_index(&self, name: &'static str, values_of: ValuesOf<T>) {
        match self {
            Self::Watched(informer) => informer.add_index(name, values_of),
            Self::InMemory(own) => own.objects.add_index(name, values_of),
        }
    }

    /// The objects that an index has under a value, by namespace and name.
    #[must_use]
    pub fn by_index(&self, index: &str, value: &str) -> Vec<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.by_index(index, value),
            Self::InMemory(own) => own.objects.by_index(index, value),
        }
    }

    /// Tells of each object that comes, changes or goes from now on. Whoever hears of it must not wait.
    pub(crate) fn on_change(&self, mut hear: impl FnMut(&Arc<T>) + Send + 'static) {
        match self {
            Self::Watched(informer) => informer.subscribe(move |change| hear(change.object())),
            Self::InMemory(own) => own.heard.lock().push(Box::new(hear)),
        }
    }

    /// Takes an object of those in memory away.
    pub fn remove(&self, namespace: &str, name: &str) {
        if let Self::InMemory(own) = self {
            let gone = own.objects.remove(&ObjectKey::new(namespace, name));
            gone.iter().for_each(|object| own.tell(object));
        }
    }

    /// Adds or replaces an object of those in memory. What is watched comes from the API server only.
    pub fn put(&self, object: Arc<T>) {
        if let Self::InMemory(own) = self {
            own.objects.put(&ObjectKey::of(object.meta()), &object);
            own.tell(&object);
        }
    }
}
