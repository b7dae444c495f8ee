//! The custom kinds that are served now, for discovery and OpenAPI.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kinds::info::ResourceInfo;
use parking_lot::RwLock;

use super::facts::CustomInfo;
use crate::config::BuiltInResource;
use crate::custom_kinds::VersionSchema;

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
    pub(crate) schema: Arc<VersionSchema>,
}

/// All custom kinds.
#[derive(Default)]
pub(crate) struct ServedKinds {
    kinds: RwLock<BTreeMap<OwnPlace, Arc<ServedKind>>>,
    generation: AtomicU64,
    /// The generation in which each version of a group changed last.
    changed: RwLock<HashMap<[String; 2], u64>>,
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
        let place = own_place(kind.info.get());
        self.kinds.write().insert(place.clone(), Arc::new(kind));
        self.count(place);
    }

    /// Removes a kind.
    pub(crate) fn remove(&self, info: &ResourceInfo<'_>) {
        let place = own_place(info);
        self.kinds.write().remove(&place);
        self.count(place);
    }

    fn count(&self, [group, version, _]: OwnPlace) {
        // The version has changed before anybody can see that something has.
        let mut changed = self.changed.write();
        changed.insert([group, version], self.generation.load(Ordering::Acquire) + 1);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts changes: documents made of an older one are stale.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The generation in which a version of a group changed last; 0 for one that never did.
    pub(crate) fn version_generation(&self, group: &str, version: &str) -> u64 {
        self.changed.read().get(&[group.to_owned(), version.to_owned()]).copied().unwrap_or_default()
    }

    /// The kinds of a version of a group.
    pub(crate) fn in_version(&self, group: &str, version: &str) -> Vec<Arc<ServedKind>> {
        let first = [group.to_owned(), version.to_owned(), String::new()];
        let kinds = self.kinds.read();
        let own = kinds.range(first..).take_while(|([own_group, own_version, _], _)| {
            (own_group.as_str(), own_version.as_str()) == (group, version)
        });
        own.map(|(_, kind)| Arc::clone(kind)).collect()
    }

    /// Group and version of all kinds, each pair once.
    pub(crate) fn versions(&self) -> Vec<[String; 2]> {
        let kinds = self.kinds.read();
        let mut versions: Vec<_> = kinds.keys().map(|[group, version, _]| [group.clone(), version.clone()]).collect();
        versions.dedup();
        versions
    }

    /// All kinds, by place.
    pub(crate) fn all(&self) -> Vec<Arc<ServedKind>> {
        self.kinds.read().values().cloned().collect()
    }
}
