//! Objects that plugins look at besides the cluster's snapshot. A plugin asks for the kinds that it reads when it is built
//! ([`Listers::of`]); what nobody asks for is not watched.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::object::{Kind, Object};
use client::{Informer, Informers};
use parking_lot::{Mutex, RwLock};

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

/// Objects by namespace and name.
type InMemory<T> = RwLock<BTreeMap<(String, String), Arc<T>>>;

impl<T> Clone for Lister<T>
where
    Informer<T>: Clone,
{
    fn clone(&self) -> Self {
        match self {
            Self::Watched(informer) => Self::Watched(informer.clone()),
            Self::InMemory(objects) => Self::InMemory(Arc::clone(objects)),
        }
    }
}

impl<T: Kind + Object> Lister<T> {
    /// An object by its name; the namespace is empty for kinds that live in none.
    #[must_use]
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.find(namespace, name),
            Self::InMemory(objects) => objects.read().get(&(namespace.to_owned(), name.to_owned())).cloned(),
        }
    }

    /// All objects.
    #[must_use]
    pub fn list(&self) -> Vec<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.list(),
            Self::InMemory(objects) => objects.read().values().cloned().collect(),
        }
    }

    /// The objects of a namespace.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        match self {
            Self::Watched(informer) => informer.in_namespace(namespace),
            Self::InMemory(objects) => {
                let objects = objects.read();
                let own = objects.iter().filter(|((other, _), _)| other == namespace);
                own.map(|(_, object)| Arc::clone(object)).collect()
            }
        }
    }

    /// Takes an object of those in memory away.
    pub fn remove(&self, namespace: &str, name: &str) {
        if let Self::InMemory(objects) = self {
            objects.write().remove(&(namespace.to_owned(), name.to_owned()));
        }
    }

    /// Adds or replaces an object of those in memory. What is watched comes from the API server only.
    pub fn put(&self, object: Arc<T>) {
        if let Self::InMemory(objects) = self {
            let key = (object.meta().namespace.clone(), object.meta().name.clone());
            objects.write().insert(key, object);
        }
    }
}
