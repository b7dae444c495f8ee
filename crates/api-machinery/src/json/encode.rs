//! Writing typed values.

use std::any::Any;

use base64::Engine as _;

use super::writer::Writer;
use crate::object::Unstructured;
use crate::reflect::{self, Field, FieldType, Reflect, View};
use crate::value::Value;

/// What is shown instead of a secret.
pub(super) const REDACTED: &str = "REDACTED";
/// The annotation that repeats a whole object, secrets and all.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A member of a custom object.
enum Member<'a> {
    Text(&'a str),
    Struct(&'a dyn Reflect),
    Value(&'a Value),
}

impl Writer {
    /// Writes a struct.
    pub fn structure(&mut self, value: &dyn Reflect) {
        self.symbol('{');
        let mut first = true;
        self.members(value, &mut first);
        self.symbol('}');
    }

    /// Writes a struct with its `kind` and `apiVersion` in front; of a custom object all members are in the order of their
    /// names, as upstream has nothing but maps of it.
    pub fn typed_structure(&mut self, kind: &str, api_version: &str, value: &dyn Reflect) {
        if let Some(object) = (value as &dyn Any).downcast_ref::<Unstructured>() {
            return self.custom_object(kind, api_version, object);
        }
        self.raw("{\"kind\":");
        self.string(kind);
        self.raw(",\"apiVersion\":");
        self.string(api_version);
        let mut first = false;
        self.members(value, &mut first);
        self.symbol('}');
    }

    fn custom_object(&mut self, kind: &str, api_version: &str, object: &Unstructured) {
        let mut named = [
            ("apiVersion", Member::Text(api_version)),
            ("kind", Member::Text(kind)),
            ("metadata", Member::Struct(&object.metadata)),
        ]
        .into_iter()
        .peekable();
        let sorts = std::mem::replace(&mut self.sorts, true);
        let mut first = true;
        self.symbol('{');
        for (name, value) in &object.content {
            while let Some((before, member)) = named.next_if(|(own, _)| *own < name.as_str()) {
                self.named_member(before, &member, &mut first);
            }
            self.named_member(name, &Member::Value(value), &mut first);
        }
        for (name, member) in named {
            self.named_member(name, &member, &mut first);
        }
        self.symbol('}');
        self.sorts = sorts;
    }

    fn named_member(&mut self, name: &str, member: &Member<'_>, first: &mut bool) {
        self.separate(first);
        self.key(name);
        match member {
            Member::Text(text) => self.string(text),
            Member::Struct(members) => self.structure(*members),
            Member::Value(value) => self.value(value),
        }
    }

    fn members(&mut self, value: &dyn Reflect, first: &mut bool) {
        let (table, written) = (value.struct_type().fields, reflect::written_fields(value));
        if !self.sorts {
            return written.for_each(|index| self.member(&table[index], value.field(index).view(), first));
        }
        let mut sorted: Vec<usize> = written.collect();
        sorted.sort_by_key(|index| table[*index].name);
        sorted.into_iter().for_each(|index| self.member(&table[index], value.field(index).view(), first));
    }

    fn member(&mut self, row: &FieldType, view: View<'_>, first: &mut bool) {
        match view {
            View::Struct(inner) if row.inline => self.members(inner, first),
            View::Map(rest) if row.rest => rest.each(&mut |name, entry| {
                self.separate(first);
                self.key(name);
                self.field(entry);
            }),
            view => {
                self.separate(first);
                self.raw(row.key);
                if self.redacts && row.secret { self.string(REDACTED) } else { self.view(view) }
            }
        }
    }

    fn separate(&mut self, first: &mut bool) {
        if !std::mem::replace(first, false) {
            self.symbol(',');
        }
    }

    /// Writes a field's value.
    pub fn field(&mut self, field: &dyn Field) {
        self.view(field.view());
    }

    fn view(&mut self, view: View<'_>) {
        match view {
            View::Bool(value) => self.bool(value),
            View::Int32(value) => self.int(i64::from(value)),
            View::Int64(value) => self.int(value),
            View::Float(value) => self.float(value),
            View::Str(value) => self.string(value),
            View::Bytes([]) => self.null(),
            View::Bytes(value) => {
                self.symbol('"');
                self.raw(&base64::engine::general_purpose::STANDARD.encode(value));
                self.symbol('"');
            }
            View::Struct(value) => match self.shows_kinds.then(|| value.struct_type().core_kind()).flatten() {
                Some(kind) => self.typed_structure(kind, "v1", value),
                None => self.structure(value),
            },
            // An empty list that is written at all is Go's nil slice: storage keeps no difference.
            View::List(list) if list.is_empty() => self.null(),
            View::List(list) => {
                self.symbol('[');
                let mut first = true;
                for item in (0..list.len()).filter_map(|index| list.item(index)) {
                    self.separate(&mut first);
                    self.field(item);
                }
                self.symbol(']');
            }
            View::Map(map) if map.is_empty() => self.null(),
            View::Map(map) => {
                self.symbol('{');
                let mut first = true;
                map.each(&mut |name, entry| {
                    self.separate(&mut first);
                    self.key(name);
                    match entry.view() {
                        _ if self.redacts && name == LAST_APPLIED => self.string(REDACTED),
                        // Storage keeps an entry without bytes as an entry, never as nil.
                        View::Bytes([]) => self.raw("\"\""),
                        _ => self.field(entry),
                    }
                });
                self.symbol('}');
            }
            View::Optional(None) => self.null(),
            View::Optional(Some(value)) => self.field(value),
            View::Leaf(leaf) => leaf.write_json(self),
            View::Dynamic(value) => self.value(value),
        }
    }
}
