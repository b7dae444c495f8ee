//! What changed between two values.

use serde_json::{Map, Value};

use super::{Items, granular, is_hollow, items_by_step, member_type, side_by_side};
use crate::apply::field_set::{Entry, FieldSet};
use crate::apply::path::{Element, same_value};
use crate::type_node::{Class, ListKind, TypeNode};

/// Places that appeared, changed or disappeared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Places of the new value only.
    pub added: FieldSet,
    /// Leaves that differ.
    pub modified: FieldSet,
    /// Places of the old value only.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether nothing changed.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The same without places in or below those of `ignored`.
    #[must_use]
    pub fn without(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.without_trees(ignored),
            modified: self.modified.without_trees(ignored),
            removed: self.removed.without_trees(ignored),
        }
    }

    /// Places that the new value set or changed, and those that it no longer has.
    #[must_use]
    pub fn into_written_and_removed(self) -> (FieldSet, FieldSet) {
        (self.modified.union(self.added), self.removed)
    }
}

/// Compares two values of one type. The order of keyed lists and sets does not count.
pub fn compare(old: &Value, new: &Value, node: TypeNode<'_>) -> Comparison {
    Difference::of(Some(old), Some(new), node).below()
}

/// Compares two values that differ in members that `changes` has, too, at most.
pub fn compare_within(old: &Value, new: &Value, changes: &Value, node: TypeNode<'_>) -> Comparison {
    Difference::within(Some(old), Some(new), Some(changes), node).below()
}

/// How two values differ at one place, and below it: sets grow from the leaves, so that no path is walked twice.
#[derive(Default)]
pub(super) struct Difference {
    pub(super) added: Entry,
    modified: Entry,
    removed: Entry,
}

impl Difference {
    pub(super) fn of(old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>) -> Self {
        Self::within(old, new, None, node)
    }

    fn below(self) -> Comparison {
        Comparison { added: self.added.below, modified: self.modified.below, removed: self.removed.below }
    }

    fn within(old: Option<&Value>, new: Option<&Value>, changes: Option<&Value>, node: TypeNode<'_>) -> Self {
        let mut here = Self::default();
        let Some(value) = new.filter(|value| !value.is_null()).or(old).or(new) else { return here };
        let class = node.class_for(value);
        let other_class = old.filter(|value| !value.is_null()).map_or(class, |value| node.class_for(value));
        let hollow = |value: Option<&Value>| value.is_none_or(is_hollow);
        if !granular(class) || class != other_class || (hollow(old) && hollow(new)) {
            here.leaf(old, new);
            return here;
        }
        match class {
            Class::List(kind) => here.lists(old, new, node, kind),
            _ => match changes.and_then(Value::as_object) {
                Some(changes) => here.members(old, new, changes, node),
                None => here.maps(old, new, node),
            },
        }
        here.presence(old, new);
        here
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.modified.owned = !same_value(old, new),
            _ => self.presence(old, new),
        }
    }

    fn presence(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.added.owned = old.is_none() && new.is_some();
        self.removed.owned = old.is_some() && new.is_none();
    }

    fn put(&mut self, step: impl Fn() -> Element, found: Self) {
        for (set, found) in [
            (&mut self.added.below, found.added),
            (&mut self.modified.below, found.modified),
            (&mut self.removed.below, found.removed),
        ] {
            // Most places of most updates have not changed: no step is made for those.
            if !found.is_empty() {
                set.put(step(), found);
            }
        }
    }

    fn maps(&mut self, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>) {
        let [old, new] = [old, new].map(|value| value.and_then(Value::as_object).into_iter().flatten());
        side_by_side(old, new, |name, before, after| {
            self.put(|| Element::field(name), Self::of(before, after, member_type(node, name)));
        });
    }

    /// As `maps`, where no other members differ than those that `changes` has.
    fn members(&mut self, old: Option<&Value>, new: Option<&Value>, changes: &Map<String, Value>, node: TypeNode<'_>) {
        for (name, change) in changes {
            let [before, after] = [old, new].map(|value| value.and_then(|value| value.get(name)));
            // To look for the same is cheaper than to walk through it.
            if before == after {
                continue;
            }
            self.put(|| Element::field(name), Self::within(before, after, Some(change), member_type(node, name)));
        }
    }

    fn lists(&mut self, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>, kind: ListKind) {
        let [old, new] = [old, new].map(|value| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
        let [old, new] = [old, new].map(|items| items_by_step(node, kind, items));
        side_by_side(old, new, |step, before, after| {
            let [before, after] = [before, after].map(|items| items.iter().flat_map(Items::iter).collect::<Vec<_>>());
            let found = match (before.as_slice(), after.as_slice()) {
                ([_] | [], [_] | []) => Self::of(before.first().copied(), after.first().copied(), node.item()),
                _ => Self::of_repeated(&before, &after, node.item()),
            };
            self.put(|| step.clone(), found);
        });
    }

    /// Items that occur twice are compared as one opaque place: what was below a single one before is gone.
    fn of_repeated(before: &[&Value], after: &[&Value], item: TypeNode<'_>) -> Self {
        let same = before.len() == after.len() && before.iter().zip(after).all(|(a, b)| same_value(a, b));
        let mut here = Self::default();
        match (before.is_empty(), after.is_empty()) {
            (true, _) => here.added.owned = true,
            (_, true) => here.removed.owned = true,
            _ => here.modified.owned = !same,
        }
        match (before, after) {
            ([only], [_, ..]) => here.removed.below = Self::of(Some(only), None, item).removed.below,
            ([_, ..], [only]) => here.added.below = Self::of(None, Some(only), item).added.below,
            _ => {}
        }
        here
    }
}
