//! Sets of places in an object, and their `FieldsV1` form.

use std::collections::BTreeMap;

use api_machinery::json;
use serde_json::{Map, Value};

use super::path::{Element, FieldPath};
use crate::type_node::TypeNode;

/// A set of places; a tree by first step. An entry is there when it is in the set or holds something that is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<Element, Entry>,
}

/// What a set says of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// The place itself is in the set.
    owned: bool,
    /// Places below that are.
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.owned && self.below.is_empty()
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
        let entry = self.entries.entry(first.clone()).or_default();
        if rest.is_empty() { entry.owned = true } else { entry.below.insert(rest) }
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
    pub fn union(&self, other: &Self) -> Self {
        let mut result = self.clone();
        for (step, entry) in &other.entries {
            let mine = result.entries.entry(step.clone()).or_default();
            mine.owned |= entry.owned;
            mine.below = mine.below.union(&entry.below);
        }
        result
    }

    /// Places of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(|step, entry| {
            let theirs = other.entries.get(step)?;
            Some(Entry { owned: entry.owned && theirs.owned, below: entry.below.intersection(&theirs.below) })
        })
    }

    /// Places that are not in the other; places below those stay.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(|step, entry| match other.entries.get(step) {
            None => Some(entry.clone()),
            Some(theirs) => {
                Some(Entry { owned: entry.owned && !theirs.owned, below: entry.below.difference(&theirs.below) })
            }
        })
    }

    /// Places that are neither in the other nor below a place of it.
    #[must_use]
    pub fn without_trees(&self, other: &Self) -> Self {
        self.combine(|step, entry| match other.entries.get(step) {
            None => Some(entry.clone()),
            Some(theirs) if theirs.owned => None,
            Some(theirs) => Some(Entry { owned: entry.owned, below: entry.below.without_trees(&theirs.below) }),
        })
    }

    fn combine(&self, keep: impl Fn(&Element, &Entry) -> Option<Entry>) -> Self {
        let kept = self.entries.iter().filter_map(|(step, entry)| Some((step.clone(), keep(step, entry)?)));
        Self { entries: kept.filter(|(_, entry)| !entry.is_empty()).collect() }
    }

    /// The same with every declared struct field on the way to a place, so that emptied structs are removed as well.
    #[must_use]
    pub fn with_declared_parents(&self, node: TypeNode<'_>) -> Self {
        let deepened = self.entries.iter().map(|(step, entry)| {
            let (declared, below_type) = match step {
                Element::Field(name) => match node.declared(name) {
                    Some(of) => (true, of),
                    None => (false, node.entry().unwrap_or(TypeNode::deduced())),
                },
                _ => (false, node.item()),
            };
            let owned = entry.owned || (declared && !entry.below.is_empty());
            (step.clone(), Entry { owned, below: entry.below.with_declared_parents(below_type) })
        });
        Self { entries: deepened.collect() }
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
        let mut out = String::new();
        self.write(&mut out, false);
        out
    }

    fn write(&self, out: &mut String, owned: bool) {
        out.push('{');
        let mut first = true;
        let mut member = |out: &mut String, key: &str| {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            out.push_str(&json::encode_value(&Value::from(key)));
            out.push(':');
        };
        if owned && !self.is_empty() {
            member(out, ".");
            out.push_str("{}");
        }
        for (step, entry) in &self.entries {
            let key = match step {
                Element::Field(name) => format!("f:{name}"),
                Element::Key(members) => format!("k:{}", json::encode_value(&Value::Object(members.clone()))),
                Element::Value(value) => format!("v:{}", json::encode_value(value)),
                Element::Index(index) => format!("i:{index}"),
            };
            member(out, &key);
            entry.below.write(out, entry.owned);
        }
        out.push('}');
    }

    /// Reads the `FieldsV1` form.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldSetError> {
        let Value::Object(map) = value else { return Err(FieldSetError("expected an object".into())) };
        Self::from_map(map)
    }

    fn from_map(map: &Map<String, Value>) -> Result<Self, FieldSetError> {
        let mut set = Self::default();
        for (key, value) in map.iter().filter(|(key, _)| *key != ".") {
            let Some(step) = read_step(key)? else { continue };
            let Value::Object(below) = value else {
                return Err(FieldSetError(format!("expected an object below {key}")));
            };
            // Without a dot, an entry with nothing below it is itself in the set.
            let owned = below.is_empty() || below.contains_key(".");
            set.entries.insert(step, Entry { owned, below: Self::from_map(below)? });
        }
        Ok(set)
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
