//! The nodes of a schema that have rules, or have some below, with what expressions know of their values.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::kubernetes::declared::{Declared, DeclaredField, DeclaredKind, ListOrder, escape};
use schema::Structural;

use crate::sizes;

/// The name of the type that `self` has at the root. Upstream's is of the same form, with a number that nobody can know.
const ROOT_TYPE: &str = "selfType";
/// What is always there to see of whole objects.
const TYPE_MEMBERS: [&str; 2] = ["apiVersion", "kind"];
const METADATA_MEMBERS: [&str; 2] = ["name", "generateName"];

/// What expressions know of a value.
#[derive(Clone)]
pub(crate) struct Typed {
    pub(crate) declared: Arc<Declared>,
    /// The fewest bytes that it takes in JSON.
    smallest: u64,
}

/// A node with rules, or with some below.
pub(crate) struct Site<'s> {
    pub(crate) schema: &'s Structural,
    /// Nothing where the schema says too little of the value.
    pub(crate) typed: Option<Typed>,
    pub(crate) properties: Vec<(&'s str, Site<'s>)>,
    pub(crate) entries: Option<Box<Site<'s>>>,
    pub(crate) items: Option<Box<Site<'s>>>,
}

impl Typed {
    fn new(kind: DeclaredKind, largest: u64, smallest: u64) -> Self {
        Self { declared: Arc::new(Declared { kind, max_size: Some(largest) }), smallest }
    }

    /// How often such a value can occur in a request.
    pub(crate) fn occurrences(&self) -> u64 {
        sizes::occurrences(self.smallest)
    }
}

impl<'s> Site<'s> {
    /// Unpacks a schema; nothing where it has no rules.
    pub(crate) fn of(schema: &'s Structural) -> Option<Self> {
        if has_rules(schema) { unpack(schema, ROOT_TYPE).1 } else { None }
    }
}

fn has_rules(schema: &Structural) -> bool {
    !schema.expression_rules.is_empty()
        || schema.properties.values().any(|below| has_rules(below))
        || schema.additional_properties.as_deref().is_some_and(has_rules)
        || schema.items.as_deref().is_some_and(has_rules)
}

/// The type of a node and, if there are rules at it or below, the node.
fn unpack<'s>(schema: &'s Structural, name: &str) -> (Option<Typed>, Option<Site<'s>>) {
    let mut types = BTreeMap::new();
    let mut properties = Vec::new();
    for (property, below) in &schema.properties {
        let (typed, site) = unpack(below, &format!("{name}.{property}"));
        types.extend(typed.map(|typed| (property.as_str(), typed)));
        properties.extend(site.map(|site| (property.as_str(), site)));
    }
    let below = |of: &'s Option<Box<Structural>>, step: &str| match of {
        Some(of) => unpack(of, &format!("{name}.{step}")),
        None => (None, None),
    };
    let (entry, entries) = below(&schema.additional_properties, "@elem");
    let (item, items) = below(&schema.items, "@idx");
    let typed = typed(schema, name, types, entry, item);
    let is_empty = schema.expression_rules.is_empty() && properties.is_empty() && entries.is_none() && items.is_none();
    let site = (!is_empty).then(|| Site {
        schema,
        typed: typed.clone(),
        properties,
        entries: entries.map(Box::new),
        items: items.map(Box::new),
    });
    (typed, site)
}

fn typed(
    schema: &Structural,
    name: &str,
    properties: BTreeMap<&str, Typed>,
    entry: Option<Typed>,
    item: Option<Typed>,
) -> Option<Typed> {
    if schema.int_or_string {
        return Some(Typed::new(DeclaredKind::Dyn, sizes::LONGEST, sizes::NUMBER));
    }
    match schema.kind.as_str() {
        "array" => {
            let item = item?;
            let largest = schema.rules.max_items.unwrap_or_else(|| sizes::items(item.smallest));
            let order = match schema.list_type.as_str() {
                "set" => ListOrder::Set,
                "map" => ListOrder::Map(schema.list_map_keys.clone()),
                _ => ListOrder::Atomic,
            };
            Some(Typed::new(DeclaredKind::List { item: item.declared, order }, largest, sizes::EMPTY))
        }
        "object" if schema.additional_properties.is_some() => {
            let entry = entry?;
            let largest = schema.rules.max_properties.unwrap_or_else(|| sizes::entries(entry.smallest));
            Some(Typed::new(DeclaredKind::Map { value: entry.declared }, largest, sizes::EMPTY))
        }
        "object" => Some(object(schema, name, properties)),
        "string" => {
            let (smallest, largest) = sizes::string(schema);
            let kind = match schema.rules.format.as_str() {
                "byte" => DeclaredKind::Bytes,
                "duration" => DeclaredKind::Duration,
                "date" | "date-time" => DeclaredKind::Timestamp,
                _ => DeclaredKind::String,
            };
            Some(Typed::new(kind, largest, smallest))
        }
        "boolean" => Some(Typed::new(DeclaredKind::Bool, 0, sizes::BOOL)),
        "number" => Some(Typed::new(DeclaredKind::Double, 0, sizes::NUMBER)),
        "integer" => Some(Typed::new(DeclaredKind::Int, 0, sizes::NUMBER)),
        _ => None,
    }
}

fn object(schema: &Structural, name: &str, mut properties: BTreeMap<&str, Typed>) -> Typed {
    if schema.is_object_root() {
        add_type_members(&mut properties, name);
    }
    let mut smallest = sizes::EMPTY;
    for required in &schema.rules.required {
        let has_default = schema.properties.get(required).is_some_and(|of| of.default.is_some());
        if let Some(typed) = properties.get(required.as_str()).filter(|_| !has_default) {
            smallest += required.len() as u64 + typed.smallest + sizes::AROUND_MEMBER;
        }
    }
    let field = |(json_name, typed): (&str, Typed)| {
        let field = DeclaredField { json_name: json_name.to_owned(), declared: typed.declared };
        Some((escape(json_name)?, field))
    };
    let fields = properties.into_iter().filter_map(field).collect();
    Typed::new(DeclaredKind::Object { name: name.into(), fields }, 0, smallest)
}

/// What every whole object has, unless the schema says the same already.
fn add_type_members(properties: &mut BTreeMap<&str, Typed>, name: &str) {
    let is_text = |typed: Option<&Arc<Declared>>| typed.is_some_and(|of| matches!(of.kind, DeclaredKind::String));
    let metadata = properties.get("metadata").map(|typed| &typed.declared.kind);
    let says_all = TYPE_MEMBERS.iter().all(|own| is_text(properties.get(own).map(|typed| &typed.declared)))
        && matches!(metadata, Some(DeclaredKind::Object { fields, .. })
            if METADATA_MEMBERS.iter().all(|own| is_text(fields.get(*own).map(|field| &field.declared))));
    if says_all {
        return;
    }
    let text = Typed::new(DeclaredKind::String, sizes::LONGEST, sizes::EMPTY);
    properties.extend(TYPE_MEMBERS.map(|own| (own, text.clone())));
    let fields = METADATA_MEMBERS
        .map(|own| (own.into(), DeclaredField { json_name: own.to_owned(), declared: Arc::clone(&text.declared) }));
    let kind = DeclaredKind::Object { name: format!("{name}.metadata").into(), fields: fields.into() };
    properties.insert("metadata", Typed::new(kind, 0, sizes::EMPTY));
}
