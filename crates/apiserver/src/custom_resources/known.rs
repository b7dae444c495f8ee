//! The definitions that are known, as their cache holds them, and the names that they have been granted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use api_machinery::object::Object;
use api_machinery::time::Time;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionNames};

/// A definition, shared with who else reads it. It may be large: whoever keeps it keeps all of its schemas unpacked.
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

/// What is kept of a definition for as long as it is there.
#[derive(Debug, PartialEq)]
pub(super) struct Summary {
    pub(super) uid: String,
    pub(super) created: Time,
    pub(super) group: String,
    pub(super) wanted: CustomResourceDefinitionNames,
    pub(super) granted: CustomResourceDefinitionNames,
}

impl Summary {
    fn of(definition: &CustomResourceDefinition) -> Self {
        Self {
            uid: definition.metadata.uid.clone(),
            created: definition.metadata.creation_timestamp,
            group: definition.spec.group.clone(),
            wanted: definition.spec.names.clone(),
            granted: definition.status.accepted_names.clone(),
        }
    }
}

/// All definitions by name, and who has been granted which names.
#[derive(Default)]
pub(super) struct Definitions {
    all: BTreeMap<String, Summary>,
    granted: HashMap<NameClaim, BTreeSet<String>>,
}

impl Definitions {
    pub(super) fn get(&self, name: &str) -> Option<&Summary> {
        self.all.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.all.keys()
    }

    /// Takes note of a definition as it is now, and gives what was known of it before.
    pub(super) fn insert(&mut self, definition: &CustomResourceDefinition) -> Option<Summary> {
        let name = &definition.metadata.name;
        let former = self.remove(name);
        let summary = Summary::of(definition);
        for claim in claims(&summary) {
            self.granted.entry(claim).or_default().insert(name.clone());
        }
        self.all.insert(name.clone(), summary);
        former
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Summary> {
        let former = self.all.remove(name)?;
        for claim in claims(&former) {
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

    /// The definitions of a group that have not been granted all that they want.
    pub(super) fn waiting(&self, group: &str) -> impl Iterator<Item = &String> {
        let waits = move |own: &Summary| own.group == group && own.wanted != own.granted;
        self.all.iter().filter(move |(_, own)| waits(own)).map(|(name, _)| name)
    }
}

fn claims(own: &Summary) -> Vec<NameClaim> {
    let CustomResourceDefinitionNames { plural, singular, short_names, kind, list_kind, .. } = &own.granted;
    let resources = [plural, singular].into_iter().chain(short_names).map(|name| (NameKind::Resource, name));
    let kinds = [kind, list_kind].into_iter().map(|name| (NameKind::Kind, name));
    let named = resources.chain(kinds).filter(|(_, name)| !name.is_empty());
    named.map(|(kind, name)| (own.group.clone(), kind, name.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, accepted: &str) -> CustomResourceDefinition {
        let mut definition = CustomResourceDefinition::default();
        definition.metadata.name = name.into();
        definition.spec.group = "g".into();
        definition.spec.names.plural = name.into();
        definition.status.accepted_names.plural = accepted.into();
        definition
    }

    #[test]
    fn names_are_taken_by_others_until_they_let_go() {
        let mut all = Definitions::default();
        all.insert(&definition("a", "a"));
        all.insert(&definition("b", ""));
        let is_taken = |all: &Definitions, own: &str| all.is_taken(&definition(own, ""), NameKind::Resource, "a");
        assert_eq!((is_taken(&all, "a"), is_taken(&all, "b")), (false, true));
        assert!(all.waiting("g").eq(["b"]));
        all.insert(&definition("a", "c"));
        assert!(!is_taken(&all, "b"), "what is granted anew counts");
        all.insert(&definition("a", "a"));
        all.remove("a");
        assert!(!is_taken(&all, "b"));
    }
}
