//! The custom kinds that are served now, for discovery and OpenAPI.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api_machinery::value::Value;
use kinds::info::ResourceInfo;
use parking_lot::RwLock;

use crate::options::Place;

/// One custom kind.
pub(crate) struct ServedKind {
    pub(crate) info: &'static ResourceInfo,
    /// The name of its model, such as `com.example.stable.v1.CronTab`.
    pub(crate) model: String,
    /// `openAPIV3Schema` as declared.
    pub(crate) schema: Value,
}

/// All custom kinds.
#[derive(Default)]
pub(crate) struct ServedKinds {
    kinds: RwLock<BTreeMap<Place, Arc<ServedKind>>>,
    generation: AtomicU64,
    /// Built-in kinds that are not served.
    disabled: BTreeSet<Place>,
}

impl ServedKinds {
    /// No custom kinds yet, and all built-in ones but these.
    pub(crate) fn without(disabled: &BTreeSet<Place>) -> Self {
        Self { disabled: disabled.clone(), ..Self::default() }
    }

    /// Whether a built-in kind is served.
    pub(crate) fn is_enabled(&self, info: &ResourceInfo) -> bool {
        !self.disabled.contains(&(info.group, info.version, info.resource))
    }

    /// Adds or replaces a kind.
    pub(crate) fn insert(&self, kind: ServedKind) {
        let place = (kind.info.group, kind.info.version, kind.info.resource);
        self.kinds.write().insert(place, Arc::new(kind));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, info: &'static ResourceInfo) {
        self.kinds.write().remove(&(info.group, info.version, info.resource));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts changes: documents made of an older one are stale.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// All kinds, by place.
    pub(crate) fn all(&self) -> Vec<Arc<ServedKind>> {
        self.kinds.read().values().cloned().collect()
    }

    /// Their names and facts.
    pub(crate) fn infos(&self) -> Vec<&'static ResourceInfo> {
        self.kinds.read().values().map(|kind| kind.info).collect()
    }
}
