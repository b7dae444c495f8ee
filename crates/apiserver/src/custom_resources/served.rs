//! The custom kinds that are served now, for discovery and OpenAPI.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api_machinery::value::Value;
use kinds::info::ResourceInfo;
use parking_lot::RwLock;

use super::facts::CustomInfo;
use crate::config::BuiltInResource;

/// Group, version and plural name.
type OwnPlace = [String; 3];

fn own_place(info: &ResourceInfo<'_>) -> OwnPlace {
    [info.group, info.version, info.resource].map(str::to_owned)
}

/// One custom kind.
pub(crate) struct ServedKind {
    pub(crate) info: Arc<CustomInfo>,
    /// The name of its model, such as `com.example.stable.v1.CronTab`.
    pub(crate) model: String,
    /// `openAPIV3Schema` as declared.
    pub(crate) schema: Value,
}

/// All custom kinds.
#[derive(Default)]
pub(crate) struct ServedKinds {
    kinds: RwLock<BTreeMap<OwnPlace, Arc<ServedKind>>>,
    generation: AtomicU64,
    /// Built-in kinds that are not served.
    disabled: BTreeSet<BuiltInResource>,
}

impl ServedKinds {
    /// No custom kinds yet, and all built-in ones but these.
    pub(crate) fn without(disabled: &BTreeSet<BuiltInResource>) -> Self {
        Self { disabled: disabled.clone(), ..Self::default() }
    }

    /// Whether a built-in kind is served.
    pub(crate) fn is_enabled(&self, info: &ResourceInfo<'_>) -> bool {
        !self.disabled.contains(&(info.group, info.version, info.resource))
    }

    /// Adds or replaces a kind.
    pub(crate) fn insert(&self, kind: ServedKind) {
        self.kinds.write().insert(own_place(kind.info.get()), Arc::new(kind));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, info: &ResourceInfo<'_>) {
        self.kinds.write().remove(&own_place(info));
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
}
