//! The definitions that are known, as their cache holds them, and the names that they have been granted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::object::Object;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionNames};

use crate::custom_kinds::{VersionSchema, VersionSchemas};

/// A definition; shared with the cache of definitions, as it may be large.
#[derive(Clone)]
pub(super) struct Known(Arc<dyn Object>);

impl Known {
    /// Nothing where the object is of another kind.
    pub(super) fn new(object: Arc<dyn Object>) -> Option<Self> {
        object.downcast_ref::<CustomResourceDefinition>().is_some().then_some(Self(object))
    }

    pub(super) fn get(&self) -> &CustomResourceDefinition {
        self.0.downcast_ref().expect("invariant: `new` takes nothing else")
    }

    /// The schema of a version.
    pub(super) fn schema(&self, version: &str) -> Arc<VersionSchema> {
        Arc::new(VersionSchema::new(&self.0, version))
    }

    /// Has schemas that are in service held by this definition, which has the same.
    pub(super) fn hold(&self, schemas: &VersionSchemas) {
        schemas.0.iter().for_each(|(_, schema)| schema.hold(&self.0));
    }
}

impl From<CustomResourceDefinition> for Known {
    fn from(definition: CustomResourceDefinition) -> Self {
        Self(Arc::new(definition))
    }
}

/// Names that a definition has in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum NameKind {
    /// Plural, singular, and short names.
    Resource,
    /// Kinds, and the kinds of lists.
    Kind,
}

/// Group, what it names, and the name.
type NameClaim = (String, NameKind, String);

/// All definitions by name, and who has been granted which names.
#[derive(Default)]
pub(super) struct Definitions {
    all: BTreeMap<String, Known>,
    granted: HashMap<NameClaim, BTreeSet<String>>,
}

impl Definitions {
    pub(super) fn get(&self, name: &str) -> Option<&Known> {
        self.all.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    pub(super) fn insert(&mut self, known: Known) -> Option<Known> {
        let name = known.get().metadata.name.clone();
        let former = self.remove(&name);
        for claim in claims(known.get()) {
            self.granted.entry(claim).or_default().insert(name.clone());
        }
        self.all.insert(name, known);
        former
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Known> {
        let former = self.all.remove(name)?;
        for claim in claims(former.get()) {
            if let Some(owners) = self.granted.get_mut(&claim) {
                owners.remove(name);
                if owners.is_empty() {
                    self.granted.remove(&claim);
                }
            }
        }
        Some(former)
    }

    /// Whether a definition other than `own` has been granted a name.
    pub(super) fn is_taken(&self, own: &CustomResourceDefinition, kind: NameKind, name: &str) -> bool {
        let claim = (own.spec.group.clone(), kind, name.to_owned());
        let owners = self.granted.get(&claim).into_iter().flatten();
        !name.is_empty() && owners.into_iter().any(|owner| *owner != own.metadata.name)
    }

    /// The definitions of a group that have not been granted all that they want, the oldest first.
    pub(super) fn waiting(&self, group: &str) -> Vec<String> {
        let waits = |known: &&Known| {
            let definition = known.get();
            definition.spec.group == group && definition.spec.names != definition.status.accepted_names
        };
        let mut waiting: Vec<&CustomResourceDefinition> = self.all.values().filter(waits).map(Known::get).collect();
        waiting.sort_by_key(|own| (own.metadata.creation_timestamp, own.metadata.name.clone()));
        waiting.into_iter().map(|own| own.metadata.name.clone()).collect()
    }
}

fn claims(definition: &CustomResourceDefinition) -> Vec<NameClaim> {
    let CustomResourceDefinitionNames { plural, singular, short_names, kind, list_kind, .. } =
        &definition.status.accepted_names;
    let resources = [plural, singular].into_iter().chain(short_names).map(|name| (NameKind::Resource, name));
    let kinds = [kind, list_kind].into_iter().map(|name| (NameKind::Kind, name));
    let named = resources.chain(kinds).filter(|(_, name)| !name.is_empty());
    named.map(|(kind, name)| (definition.spec.group.clone(), kind, name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, accepted: &str) -> Known {
        let mut definition = CustomResourceDefinition::default();
        definition.metadata.name = name.into();
        definition.spec.group = "g".into();
        definition.spec.names.plural = name.into();
        definition.status.accepted_names.plural = accepted.into();
        definition.into()
    }

    #[test]
    fn names_are_taken_by_others_until_they_let_go() {
        let mut all = Definitions::default();
        all.insert(definition("a", "a"));
        all.insert(definition("b", ""));
        let is_taken =
            |all: &Definitions, own: &str| all.is_taken(all.get(own).unwrap().get(), NameKind::Resource, "a");
        assert_eq!((is_taken(&all, "a"), is_taken(&all, "b")), (false, true));
        assert_eq!(all.waiting("g"), ["b"]);
        all.insert(definition("a", "c"));
        assert!(!is_taken(&all, "b"), "what is granted anew counts");
        all.insert(definition("a", "a"));
        all.remove("a");
        assert!(!is_taken(&all, "b"));
    }
}
