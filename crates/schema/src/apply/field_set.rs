//! Sets of places in an object, and their `FieldsV1` form.

use std::collections::{BTreeMap, btree_map};

use api_machinery::json::{self, DecodeError, Reader, Token, Writer};
use serde_json::Value;

use super::path::{Element, FieldPath};
use crate::type_node::TypeNode;

/// A set of places; a tree by first step. An entry is there when it is in the set or holds something that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<Element, Entry>,
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

    /// As it is written: without a dot, an entry with nothing below it is itself in the set, also where that is only what
    /// is not known.
    fn read(has_dot: bool, below: FieldSet) -> Self {
        Self { owned: has_dot || below.is_empty(), below }
    }
}

/// A text that is no field set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error decoding set: {0}")]
pub struct FieldSetError(pub String);

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

    /// Adds a place; the root is never in a set.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        // A step is only copied when it is new: walks insert many places below the same few steps.
        if !self.entries.contains_key(first) {
            self.entries.insert(first.clone(), Entry::default());
        }
        let Some(entry) = self.entries.get_mut(first) else { return };
        if rest.is_empty() { entry.owned = true } else { entry.below.insert(rest) }
    }

    /// Says what a walk found at and below a step; it found something.
    pub(super) fn put(&mut self, step: Element, found: Entry) {
        self.entries.insert(step, found);
    }

    /// Whether a place is in the set.
    pub fn contains(&self, path: &[Element]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.entries.get(first).is_some_and(|entry| entry.owned),
            Some((first, rest)) => self.entries.get(first).is_some_and(|entry| entry.below.contains(rest)),
        }
    }

    /// Whether the place one step down is in the set.
    pub fn has(&self, step: &Element) -> bool {
        self.entries.get(step).is_some_and(|entry| entry.owned)
    }

    /// The set below a step, if anything is.
    pub fn below(&self, step: &Element) -> Option<&Self> {
        self.entries.get(step).map(|entry| &entry.below).filter(|below| !below.is_empty())
    }

    /// Places of either.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        for (step, entry) in other.entries {
            match self.entries.entry(step) {
                btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(entry);
                }
                btree_map::Entry::Occupied(mut mine) => {
                    let mine = mine.get_mut();
                    mine.owned |= entry.owned;
                    mine.below = std::mem::take(&mut mine.below).union(entry.below);
                }
            }
        }
        self
    }

    /// Places of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let common = self.entries.iter().filter_map(|(step, entry)| {
            let theirs = other.entries.get(step)?;
            let both = Entry { owned: entry.owned && theirs.owned, below: entry.below.intersection(&theirs.below) };
            Some((step.clone(), both))
        });
        Self { entries: common.filter(|(_, entry)| !entry.is_empty()).collect() }
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
        for (step, theirs) in &other.entries {
            let Some(entry) = self.entries.get_mut(step) else { continue };
            let kept = keep(entry, theirs);
            if kept {
                entry.below.shrink(&theirs.below, keep);
            }
            if !kept || entry.is_empty() {
                self.entries.remove(step);
            }
        }
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
            let Some(mine) = self.entries.get(step) else { return false };
            let (is_declared, below_type) = member_of(node, step);
            let is_kept = mine.owned || (!theirs.owned && is_declared);
            is_kept && mine.below.keeps(&theirs.below, below_type)
        })
    }

    /// Makes the set fit its type: what lies below an atomic place becomes the place, unknown places go.
    #[must_use]
    pub fn reconciled(&self, node: TypeNode<'_>) -> Self {
        use crate::type_node::{Class, ListKind};
        let fitted = self.entries.iter().filter_map(|(step, entry)| {
            let below_type = match step {
                Element::Field(name) => node.member(name)?,
                _ => node.item(),
            };
            let atomic = matches!(below_type.class(), Class::Map { atomic: true } | Class::List(ListKind::Atomic));
            let entry = match below_type.class() {
                Class::Deduced => entry.clone(),
                _ if atomic && !entry.below.is_empty() => Entry { owned: true, below: Self::default() },
                _ => Entry { owned: entry.owned, below: entry.below.reconciled(below_type) },
            };
            Some((step.clone(), entry))
        });
        Self { entries: fitted.filter(|(_, entry)| !entry.is_empty()).collect() }
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

    /// The `FieldsV1` form, as text: its order of keys is not that of ordinary maps.
    pub fn to_fields_v1(&self) -> String {
        let mut out = Writer::default();
        self.write(&mut out, false);
        out.into_string()
    }

    fn write(&self, out: &mut Writer, owned: bool) {
        out.symbol('{');
        let mut first = true;
        if owned && !self.is_empty() {
            out.raw("\".\":{}");
            first = false;
        }
        for (step, entry) in &self.entries {
            if !std::mem::take(&mut first) {
                out.symbol(',');
            }
            step.write_key(out);
            entry.below.write(out, entry.owned);
        }
        out.symbol('}');
    }

    /// Reads the `FieldsV1` form.
    ///
    /// # Errors
    /// Names what is no part of a set.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldSetError> {
        if !value.is_object() {
            return Err(FieldSetError("expected an object".into()));
        }
        Self::from_fields_v1_text(&json::encode_value(value))
    }

    /// Reads the `FieldsV1` form from its text; what is no JSON, or null, says nothing.
    ///
    /// # Errors
    /// As [`from_fields_v1`](Self::from_fields_v1).
    pub fn from_fields_v1_text(text: &str) -> Result<Self, FieldSetError> {
        let mut reader = Reader::new(text);
        match read_set(&mut reader).and_then(|set| Ok(reader.end().map(|()| set)?)) {
            Ok(set) => Ok(set.unwrap_or_default()),
            Err(ReadError::NoJson) => Ok(Self::default()),
            Err(ReadError::Set(error)) => Err(error),
        }
    }
}

/// Why a text is no field set.
enum ReadError {
    NoJson,
    Set(FieldSetError),
}

impl From<DecodeError> for ReadError {
    fn from(_: DecodeError) -> Self {
        Self::NoJson
    }
}

/// The set that stands next; nothing for null.
fn read_set(reader: &mut Reader<'_>) -> Result<Option<FieldSet>, ReadError> {
    match reader.token()? {
        Token::Object => read_entries(reader).map(|(_, set)| Some(set)),
        Token::Null => Ok(None),
        _ => Err(ReadError::Set(FieldSetError("expected an object".into()))),
    }
}

/// The entries of an object that has begun, and whether a dot is among them.
fn read_entries(reader: &mut Reader<'_>) -> Result<(bool, FieldSet), ReadError> {
    let (mut first, mut has_dot, mut set) = (true, false, FieldSet::default());
    while let Some(key) = reader.key(&mut first)? {
        if key == "." {
            has_dot = true;
            reader.skip_value()?;
            continue;
        }
        match read_step(&key).map_err(ReadError::Set)? {
            None => reader.skip_value()?,
            Some(step) => {
                let Token::Object = reader.token()? else { return Err(ReadError::Set(nothing_below(&key))) };
                let (has_dot, below) = read_entries(reader)?;
                set.entries.insert(step, Entry::read(has_dot, below));
            }
        }
    }
    Ok((has_dot, set))
}

fn nothing_below(key: &str) -> FieldSetError {
    FieldSetError(format!("expected an object below {key}"))
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

impl Element {
    /// Writes the step as a key of the `FieldsV1` form.
    fn write_key(&self, out: &mut Writer) {
        match self {
            Self::Field(name) => out.prefixed_key("f:", name),
            Self::Key(members) => {
                let mut text = Writer::default();
                text.object(members);
                out.prefixed_key("k:", &text.into_string());
            }
            Self::Value(value) => out.prefixed_key("v:", &json::encode_value(value)),
            Self::Index(index) => out.prefixed_key("i:", &index.to_string()),
        }
    }
}

/// One key of the `FieldsV1` form; `None` for kinds of steps that are not known.
fn read_step(key: &str) -> Result<Option<Element>, FieldSetError> {
    let bad = |problem: String| FieldSetError(format!("{problem}: {key}"));
    let (prefix, text) = key.split_once(':').ok_or_else(|| bad("missing colon".into()))?;
    let parse = || json::parse_value(text).map_err(|error| bad(error.to_string()));
    match prefix {
        "f" => Ok(Some(Element::field(text))),
        "v" => Ok(Some(Element::Value(parse()?))),
        "k" => match parse()? {
            Value::Object(members) => Ok(Some(Element::Key(members))),
            _ => Err(bad("expected an object".into())),
        },
        "i" => text.parse().map(|index| Some(Element::Index(index))).map_err(|_| bad("expected a number".into())),
        _ if prefix.len() == 1 => Ok(None),
        _ => Err(bad("unknown prefix".into())),
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
            (r#"{".":7,"f:a":{}}"#, Ok(r#"{"f:a":{}}"#)),
            (r#"{"f:a":{},"f:a":{"f:b":{}}}"#, Ok(r#"{"f:a":{"f:b":{}}}"#)),
        ] {
            let read = FieldSet::from_fields_v1_text(text).map(|set| set.to_fields_v1());
            assert_eq!(read.as_deref(), expected.as_ref().copied(), "{text}");
        }
    }
}
