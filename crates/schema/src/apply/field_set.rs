//! Sets of places in an object, and their `FieldsV1` form.

use super::path::{Element, FieldPath};
use crate::type_node::{Class, ListKind, TypeNode};

mod fields_v1;

pub use fields_v1::FieldSetError;
pub(super) use fields_v1::OWN_DOT;

/// A set of places; a tree by first step. An entry is there when it is in the set or holds something that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by step, each of which is there once.
    entries: Vec<(Element, Entry)>,
}

/// What a set says of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The place itself is in the set.
    pub(super) owned: bool,
    /// Places below that are.
    pub(super) below: FieldSet,
}

impl Entry {
    /// A place that is in the set, whatever lies below it.
    pub(super) fn opaque() -> Self {
        Self { owned: true, below: FieldSet::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.owned && self.below.is_empty()
    }
}

/// Steps in any order; of two entries of one step the last counts.
impl FromIterator<(Element, Entry)> for FieldSet {
    fn from_iter<I: IntoIterator<Item = (Element, Entry)>>(entries: I) -> Self {
        let mut entries: Vec<(Element, Entry)> = entries.into_iter().collect();
        if !entries.is_sorted_by(|(one, _), (next, _)| one < next) {
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            entries.dedup_by(|(step, later), (first_step, first)| {
                let is_same = step == first_step;
                if is_same {
                    std::mem::swap(first, later);
                }
                is_same
            });
        }
        Self { entries }
    }
}

impl FieldSet {
    /// The set of these dotted field paths, such as `metadata.name`.
    pub fn of_fields(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.split('.').map(Element::field).collect::<FieldPath>());
        }
        set
    }

    /// Whether it has no places.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The first steps of its places, with what it says of each.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&Element, &Entry)> {
        self.entries.iter().map(|(step, entry)| (step, entry))
    }

    /// Where a step is, or would have to be.
    fn position(&self, step: &Element) -> Result<usize, usize> {
        self.entries.binary_search_by(|(there, _)| there.cmp(step))
    }

    pub(super) fn get(&self, step: &Element) -> Option<&Entry> {
        self.position(step).ok().and_then(|index| self.entries.get(index)).map(|(_, entry)| entry)
    }

    /// Adds a place; the root is never in a set.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let index = self.position(first).unwrap_or_else(|index| {
            self.entries.insert(index, (first.clone(), Entry::default()));
            index
        });
        let Some((_, entry)) = self.entries.get_mut(index) else { return };
        if rest.is_empty() { entry.owned = true } else { entry.below.insert(rest) }
    }

    /// Says what a walk found at and below a step; it found something. Walks go from step to step in order: what comes out
    /// of order moves all that comes after it.
    pub(super) fn put(&mut self, step: Element, found: Entry) {
        if self.entries.last().is_none_or(|(last, _)| *last < step) {
            self.entries.push((step, found));
            return;
        }
        match self.position(&step) {
            Ok(index) => self.entries[index].1 = found,
            Err(index) => self.entries.insert(index, (step, found)),
        }
    }

    /// Whether a place is in the set.
    pub fn contains(&self, path: &[Element]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.has(first),
            Some((first, rest)) => self.get(first).is_some_and(|entry| entry.below.contains(rest)),
        }
    }

    /// Whether the place one step down is in the set.
    pub fn has(&self, step: &Element) -> bool {
        self.get(step).is_some_and(|entry| entry.owned)
    }

    /// The set below a step, if anything is.
    pub fn below(&self, step: &Element) -> Option<&Self> {
        self.get(step).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Places of either.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return if self.is_empty() { other } else { self };
        }
        self.entries.extend(other.entries);
        self.entries.sort_by(|(one, _), (next, _)| one.cmp(next));
        self.entries.dedup_by(|(step, theirs), (first_step, mine)| {
            let is_same = step == first_step;
            if is_same {
                mine.owned |= theirs.owned;
                mine.below = std::mem::take(&mut mine.below).union(std::mem::take(&mut theirs.below));
            }
            is_same
        });
        self
    }

    /// Places of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let common = self.entries.iter().filter_map(|(step, entry)| {
            let theirs = other.get(step)?;
            let both = Entry { owned: entry.owned && theirs.owned, below: entry.below.intersection(&theirs.below) };
            (!both.is_empty()).then(|| (step.clone(), both))
        });
        Self { entries: common.collect() }
    }

    /// Places that are not in the other; places below those stay.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.shrink(other, &|entry, theirs| {
            entry.owned &= !theirs.owned;
            true
        });
        self
    }

    /// Places that are neither in the other nor below a place of it.
    #[must_use]
    pub fn without_trees(mut self, other: &Self) -> Self {
        self.shrink(other, &|_, theirs| !theirs.owned);
        self
    }

    /// Goes through the steps that both sets have, and drops those of which `keep` says so or nothing is left.
    fn shrink(&mut self, other: &Self, keep: &dyn Fn(&mut Entry, &Entry) -> bool) {
        if other.is_empty() {
            return;
        }
        self.entries.retain_mut(|(step, entry)| {
            let Some(theirs) = other.get(step) else { return true };
            if !keep(entry, theirs) {
                return false;
            }
            entry.below.shrink(&theirs.below, keep);
            !entry.is_empty()
        });
    }

    /// The same with every declared struct field on the way to a place, so that emptied structs are removed as well.
    #[must_use]
    pub fn with_declared_parents(&self, node: TypeNode<'_>) -> Self {
        let deepened = self.entries.iter().map(|(step, entry)| {
            let (declared, below_type) = member_of(node, step);
            let owned = entry.owned || (declared && !entry.below.is_empty());
            (step.clone(), Entry { owned, below: entry.below.with_declared_parents(below_type) })
        });
        Self { entries: deepened.collect() }
    }

    /// Whether the set has all places of the other, and each item and free entry on the way to one: taking away what is not
    /// in the set would leave them all.
    #[must_use]
    pub fn keeps(&self, other: &Self, node: TypeNode<'_>) -> bool {
        other.entries.iter().all(|(step, theirs)| {
            let Some(mine) = self.get(step) else { return false };
            if mine.owned && theirs.below.is_empty() {
                return true;
            }
            let (is_declared, below_type) = member_of(node, step);
            let is_kept = mine.owned || (!theirs.owned && is_declared);
            is_kept && mine.below.keeps(&theirs.below, below_type)
        })
    }

    /// Makes the set fit its type: what lies below an atomic place becomes the place, unknown places go.
    pub fn reconcile(&mut self, node: TypeNode<'_>) {
        self.entries.retain_mut(|(step, entry)| {
            let below_type = match step {
                Element::Field(name) => node.member(name),
                _ => Some(node.item()),
            };
            let Some(below_type) = below_type else { return false };
            if entry.below.is_empty() {
                return !entry.is_empty();
            }
            match below_type.class() {
                Class::Deduced => {}
                Class::Map { atomic: true } | Class::List(ListKind::Atomic) => *entry = Entry::opaque(),
                _ => entry.below.reconcile(below_type),
            }
            !entry.is_empty()
        });
    }

    /// All places, in order.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut all = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut all);
        all
    }

    fn collect_paths(&self, prefix: &mut FieldPath, all: &mut Vec<FieldPath>) {
        for (step, entry) in &self.entries {
            prefix.push(step.clone());
            if entry.owned {
                all.push(prefix.clone());
            }
            entry.below.collect_paths(prefix, all);
            prefix.pop();
        }
    }
}

/// Whether a step is a declared field, and the type of what it leads to.
fn member_of<'t>(node: TypeNode<'t>, step: &Element) -> (bool, TypeNode<'t>) {
    match step {
        Element::Field(name) => match node.declared(name) {
            Some(of) => (true, of),
            None => (false, node.entry().unwrap_or(TypeNode::deduced())),
        },
        _ => (false, node.item()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_set_keeps_what_it_has_with_all_items_on_the_way() {
        let node = crate::test_types::node();
        let item = |below: &str| format!(r#"{{"f:items":{{"k:{{\"name\":\"a\"}}":{{{below}}}}}}}"#);
        let (whole, member) = (item(r#"".":{},"f:image":{}"#), item(r#""f:image":{}"#));
        for (mine, theirs, expected) in [
            ("{}", "{}", true),
            (r#"{"f:replicas":{}}"#, "{}", true),
            ("{}", r#"{"f:replicas":{}}"#, false),
            (r#"{"f:replicas":{}}"#, r#"{"f:replicas":{}}"#, true),
            // A declared struct need not be in the set itself, the map that is owned as such has to.
            (r#"{"f:labels":{"f:a":{}}}"#, r#"{"f:labels":{"f:a":{}}}"#, true),
            (r#"{"f:labels":{"f:a":{}}}"#, r#"{"f:labels":{".":{},"f:a":{}}}"#, false),
            (&whole, &whole, true),
            (&whole, &member, true),
            // Nobody has the item: it would be taken away, and the member with it.
            (&member, &member, false),
            (&member, &whole, false),
        ] {
            let [mine, other] =
                [mine, theirs].map(|text| FieldSet::from_fields_v1(&serde_json::from_str(text).unwrap()).unwrap());
            assert_eq!(mine.keeps(&other, node), expected, "{} {}", mine.to_fields_v1(), other.to_fields_v1());
        }
    }

    #[test]
    fn an_entry_with_nothing_known_below_it_is_in_the_set() {
        for (fields, written) in [
            (json!({"f:a": {}}), r#"{"f:a":{}}"#),
            (json!({"f:a": {"f:b": {"x:new": {"f:c": {}}}}}), r#"{"f:a":{"f:b":{}}}"#),
            (json!({"f:a": {".": {}, "f:b": {}}}), r#"{"f:a":{".":{},"f:b":{}}}"#),
        ] {
            let set = FieldSet::from_fields_v1(&fields).unwrap();
            assert_eq!(FieldSet::from_fields_v1_text(&fields.to_string()).as_ref(), Ok(&set), "{fields}");
            assert_eq!(set.to_fields_v1(), written, "{fields}");
            assert_eq!(FieldSet::from_fields_v1(&serde_json::from_str(written).unwrap()), Ok(set), "{fields}");
        }
    }

    #[test]
    fn texts_are_read_as_far_as_they_are_known() {
        let wrong = |text: &str| Err(FieldSetError(text.to_owned()));
        for (text, expected) in [
            // No JSON says nothing, and neither does null.
            ("", Ok("{}")),
            ("null", Ok("{}")),
            ("{", Ok("{}")),
            (r#"{"f:a":{}} x"#, Ok("{}")),
            ("[]", wrong("expected an object")),
            ("7", wrong("expected an object")),
            (r#"{"f:a":7}"#, wrong("expected an object below f:a")),
            (r#"{"f:a":{"f:b":[]}}"#, wrong("expected an object below f:b")),
            (r#"{"a":{}}"#, wrong("missing colon: a")),
            (r#"{"ff:a":{}}"#, wrong("unknown prefix: ff:a")),
            (r#"{"i:x":{}}"#, wrong("expected a number: i:x")),
            (r#"{"k:7":{}}"#, wrong("expected an object: k:7")),
            (r#"{"i:3":{}}"#, Ok(r#"{"i:3":{}}"#)),
            (r#"{"x:a":{"f:b":{}},"f:c":{}}"#, Ok(r#"{"f:c":{}}"#)),
            (r#"{"k:{\"b\":1,\"a\":2}":{".":{},"f:c":{}}}"#, Ok(r#"{"k:{\"a\":2,\"b\":1}":{".":{},"f:c":{}}}"#)),
            (r#"{"v:\"x\"":{}}"#, Ok(r#"{"v:\"x\"":{}}"#)),
            (r#"{"v:18446744073709550.1":{}}"#, Ok(r#"{"v:18446744073709550":{}}"#)),
            (r#"{"v:-8e-400":{},"v:0":{"f:a":{}}}"#, Ok(r#"{"v:0":{"f:a":{}}}"#)),
            (r#"{"k:{\"a\":-0.0}":{}}"#, Ok(r#"{"k:{\"a\":0}":{}}"#)),
            (r#"{".":7,"f:a":{}}"#, Ok(r#"{"f:a":{}}"#)),
            (r#"{"f:a":{},"f:a":{"f:b":{}}}"#, Ok(r#"{"f:a":{"f:b":{}}}"#)),
        ] {
            let read = FieldSet::from_fields_v1_text(text).map(|set| set.to_fields_v1());
            assert_eq!(read.as_deref(), expected.as_ref().copied(), "{text}");
        }
    }
}
