//! What objects with labels are found under, so that those of a selector are found without a walk over a whole namespace.

use std::hash::{BuildHasher, RandomState};

use api_machinery::labels::Selector;
use api_machinery::meta::ObjectMeta;

/// A label of a namespace, or a whole namespace, by its hash. Two that collide only cost time: selectors have the last word.
pub(super) type Anchor = u64;

/// Makes anchors; those of different makers have nothing to do with each other.
#[derive(Default)]
pub(super) struct Anchors(RandomState);

impl Anchors {
    /// A whole namespace.
    pub(super) fn whole(&self, namespace: &str) -> Anchor {
        self.anchor(namespace, None)
    }

    /// What an object is found under: its namespace, and each of its labels.
    pub(super) fn of(&self, meta: &ObjectMeta) -> Vec<Anchor> {
        let labels = meta.labels.iter().map(|(key, value)| Some((key.as_str(), value.as_str())));
        std::iter::once(None).chain(labels).map(|label| self.anchor(&meta.namespace, label)).collect()
    }

    /// Of all anchors that everything has that a selector selects, the one with the fewest objects.
    pub(super) fn rarest(&self, namespace: &str, selector: &Selector, objects: impl Fn(&Anchor) -> usize) -> Anchor {
        let exact = selector.requirements().iter().filter_map(|requirement| {
            let value = selector.required_value(requirement.key())?;
            Some(self.anchor(namespace, Some((requirement.key(), value))))
        });
        exact.min_by_key(objects).unwrap_or_else(|| self.whole(namespace))
    }

    fn anchor(&self, namespace: &str, label: Option<(&str, &str)>) -> Anchor {
        self.0.hash_one((namespace, label))
    }
}
