//! What changed between two values.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{granular, is_hollow, items_by_step, member_type};
use crate::apply::field_set::FieldSet;
use crate::apply::path::{Element, FieldPath, same_value};
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
    let mut walk = Walk { path: Vec::new(), found: Comparison::default() };
    walk.visit(Some(old), Some(new), node);
    walk.found
}

struct Walk {
    path: FieldPath,
    found: Comparison,
}

impl Walk {
    fn visit(&mut self, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>) {
        let Some(value) = new.filter(|value| !value.is_null()).or(old).or(new) else { return };
        let class = node.class_for(value);
        let other_class = old.filter(|value| !value.is_null()).map_or(class, |value| node.class_for(value));
        let hollow = |value: Option<&Value>| value.is_none_or(is_hollow);
        if !granular(class) || class != other_class || (hollow(old) && hollow(new)) {
            return self.leaf(old, new);
        }
        match class {
            Class::List(kind) => self.lists(old, new, node, kind),
            _ => self.maps(old, new, node),
        }
        self.presence(old, new);
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) if !same_value(old, new) => self.found.modified.insert(&self.path),
            _ => self.presence(old, new),
        }
    }

    fn presence(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (None, Some(_)) => self.found.added.insert(&self.path),
            (Some(_), None) => self.found.removed.insert(&self.path),
            _ => {}
        }
    }

    fn maps(&mut self, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>) {
        let old_map = old.and_then(Value::as_object);
        let new_map = new.and_then(Value::as_object);
        let only_old =
            old_map.into_iter().flatten().filter(|(name, _)| new_map.is_none_or(|map| !map.contains_key(*name)));
        for (name, value) in only_old {
            self.step(Element::field(name), Some(value), None, member_type(node, name));
        }
        for (name, value) in new_map.into_iter().flatten() {
            let before = old_map.and_then(|map| map.get(name));
            self.step(Element::field(name), before, Some(value), member_type(node, name));
        }
    }

    fn step(&mut self, step: Element, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>) {
        self.path.push(step);
        self.visit(old, new, node);
        self.path.pop();
    }

    fn lists(&mut self, old: Option<&Value>, new: Option<&Value>, node: TypeNode<'_>, kind: ListKind) {
        fn items(value: Option<&Value>) -> &[Value] {
            value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
        }
        type Twins<'v> = (Vec<&'v Value>, Vec<&'v Value>);
        let mut twins: BTreeMap<Element, Twins<'_>> = BTreeMap::new();
        for (step, values) in items_by_step(node, kind, items(old)) {
            twins.entry(step).or_default().0 = values;
        }
        for (step, values) in items_by_step(node, kind, items(new)) {
            twins.entry(step).or_default().1 = values;
        }
        for (step, (before, after)) in twins {
            match (before.as_slice(), after.as_slice()) {
                ([_] | [], [_] | []) => {
                    self.step(step, before.first().copied(), after.first().copied(), node.item());
                }
                _ => self.repeated(step, &before, &after),
            }
        }
    }

    /// Items that occur twice are compared as one opaque place.
    fn repeated(&mut self, step: Element, before: &[&Value], after: &[&Value]) {
        self.path.push(step);
        let same = before.len() == after.len() && before.iter().zip(after).all(|(a, b)| same_value(a, b));
        match (before.is_empty(), after.is_empty()) {
            (true, _) => self.found.added.insert(&self.path),
            (_, true) => self.found.removed.insert(&self.path),
            _ if !same => self.found.modified.insert(&self.path),
            _ => {}
        }
        self.path.pop();
    }
}
