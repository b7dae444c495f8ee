//! Types of objects as an OpenAPI document describes them, for those who check expressions without objects.
//!
//! A type has the name of its schema; one that is described within another is named by its path. Nothing is unfolded, so
//! that schemas may refer to themselves.

use std::sync::Arc;

use api_machinery::gvk::GroupVersionKind;
use api_machinery::value::Value as Json;
use cel::kubernetes::declared::escape;
use cel::{Type, TypeProvider, Value};

/// Between the name of a schema and the steps below it.
const STEP: char = '/';
/// The elements of a list, or the values of a map.
const ELEMENTS: &str = "@elements";
/// How many references are followed from one schema to the next before anything is described.
const MAX_REFERENCES: usize = 8;

/// The schemas of a document.
#[derive(Debug)]
pub struct OpenApiTypes(Json);

/// A type of a document.
#[derive(Debug, Clone)]
pub struct KnownType {
    pub(crate) ty: Type,
    pub(crate) types: Arc<OpenApiTypes>,
}

impl OpenApiTypes {
    /// The schemas of an OpenAPI v3 document.
    #[must_use]
    pub fn new(document: &Json) -> Arc<Self> {
        let schemas = document.get("components").and_then(|own| own.get("schemas"));
        Arc::new(Self(schemas.cloned().unwrap_or_default()))
    }

    /// The type of a kind's objects.
    #[must_use]
    pub fn of_kind(self: &Arc<Self>, kind: &GroupVersionKind) -> Option<KnownType> {
        let is_kind = |own: &Json| {
            [("group", &kind.group), ("version", &kind.version), ("kind", &kind.kind)]
                .into_iter()
                .all(|(member, wanted)| own.get(member).and_then(Json::as_str) == Some(&**wanted))
        };
        let names = |schema: &Json| {
            let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Json::as_array);
            kinds.is_some_and(|kinds| kinds.iter().any(is_kind))
        };
        let (name, schema) = self.0.as_object()?.iter().find(|(_, schema)| names(schema))?;
        Some(KnownType { ty: self.type_of(schema, name), types: Arc::clone(self) })
    }

    /// The schema that is meant, and its name: its own, or that of the one it refers to.
    fn resolved<'j>(&'j self, mut schema: &'j Json, name: &str) -> Option<(&'j Json, String)> {
        let mut name = name.to_owned();
        for _ in 0..MAX_REFERENCES {
            let wrapped = schema.get("allOf").and_then(Json::as_array).and_then(|all| all.first());
            let reference = schema.get("$ref").or_else(|| wrapped.and_then(|own| own.get("$ref")));
            let Some(reference) = reference.and_then(Json::as_str) else { return Some((schema, name)) };
            let target = reference.rsplit(STEP).next()?;
            (schema, name) = (self.0.get(target)?, target.to_owned());
        }
        None
    }

    fn type_of(&self, schema: &Json, name: &str) -> Type {
        let Some((schema, name)) = self.resolved(schema, name) else { return Type::Dyn };
        let text = |member: &str| schema.get(member).and_then(Json::as_str).unwrap_or_default();
        let says = |member: &str| schema.get(member).and_then(Json::as_bool) == Some(true);
        if says("x-kubernetes-int-or-string") || says("x-kubernetes-preserve-unknown-fields") {
            return Type::Dyn;
        }
        let below = || format!("{name}{STEP}{ELEMENTS}");
        match (text("type"), text("format")) {
            (_, "int-or-string") => Type::Dyn,
            ("array", _) => schema.get("items").map_or(Type::Dyn, |items| Type::list(self.type_of(items, &below()))),
            ("object", _) => match (schema.get("properties"), schema.get("additionalProperties")) {
                (Some(_), _) => Type::object(&name),
                (None, Some(values @ Json::Object(_))) => Type::map(Type::String, self.type_of(values, &below())),
                // Nothing is said of what is in it.
                _ => Type::Dyn,
            },
            ("string", "byte") => Type::Bytes,
            ("string", "date" | "date-time") => Type::Timestamp,
            ("string", "duration") => Type::Duration,
            ("string", _) => Type::String,
            ("boolean", _) => Type::Bool,
            ("integer", _) => Type::Int,
            ("number", _) => Type::Double,
            _ => Type::Dyn,
        }
    }

    /// The schema of a type by name.
    fn find(&self, name: &str) -> Option<&Json> {
        let mut steps = name.split(STEP);
        let mut schema = self.0.get(steps.next()?)?;
        for step in steps {
            schema = match step {
                ELEMENTS => schema.get("items").or_else(|| schema.get("additionalProperties"))?,
                property => schema.get("properties")?.get(property)?,
            };
        }
        Some(schema)
    }
}

impl TypeProvider for OpenApiTypes {
    fn has_type(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn field(&self, type_name: &str, field: &str) -> Option<Type> {
        let properties = self.find(type_name)?.get("properties")?.as_object()?;
        let (name, schema) = properties.iter().find(|(name, _)| escape(name).is_some_and(|own| &*own == field))?;
        Some(self.type_of(schema, &format!("{type_name}{STEP}{name}")))
    }

    fn constant(&self, _: &str) -> Option<Value<'static>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Composition, Origin, Scope};

    fn document() -> Json {
        json!({"components": {"schemas": {
            "g.Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Thing"}],
                "properties": {
                    "spec": {"allOf": [{"$ref": "#/components/schemas/g.Spec"}]},
                    "any": {"x-kubernetes-preserve-unknown-fields": true, "type": "object"},
                },
            },
            "g.Spec": {"type": "object", "properties": {
                "size": {"type": "integer"},
                "port": {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "next": {"$ref": "#/components/schemas/g.Spec"},
                "a-b": {"type": "boolean"},
            }},
            "g.Loop": {"$ref": "#/components/schemas/g.Loop",
                "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Loop"}]},
        }}})
    }

    fn thing(kind: &str) -> Option<KnownType> {
        let kind = GroupVersionKind { group: "g".into(), version: "v1".into(), kind: kind.to_owned().into() };
        OpenApiTypes::new(&document()).of_kind(&kind)
    }

    #[test]
    fn expressions_are_held_against_the_schema() {
        let scope = Scope { authorizer: true, ..Scope::default() };
        let mut composition = Composition::typed(scope, Origin::Stored, &thing("Thing").expect("a kind"), None);
        composition.add("size", "object.spec.size").expect("a variable");
        for (source, mistake) in [
            ("object.spec.size > 1 && oldObject.spec.next.next.size > 1", ""),
            ("object.spec.port == 1 || object.spec.port == 'a' || object.any.thing", ""),
            ("object.spec.labels['a'] == 'b' && object.spec.parts.all(p, p.name != '') && object.spec.a__dash__b", ""),
            ("variables.size > 1", ""),
            ("object.spec.sice > 1", "undefined field 'sice'"),
            ("object.spec.parts[0].size", "undefined field 'size'"),
            ("object.spec.size == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
            ("variables.size == 'a'", "found no matching overload for '_==_' applied to '(int, string)'"),
            ("params.x", "undeclared reference to 'params'"),
        ] {
            let found = composition.issues(source).map(|issues| issues.to_string()).unwrap_or_default();
            assert!(found.contains(mistake) && found.is_empty() == mistake.is_empty(), "{source}: {found}");
        }
    }

    #[test]
    fn what_is_not_described_may_be_anything() {
        assert!(thing("None").is_none());
        assert_eq!(thing("Loop").map(|known| known.ty), Some(Type::Dyn));
        let scope = Scope { params: true, ..Scope::default() };
        let composition = Composition::typed(scope, Origin::Stored, &thing("Loop").expect("a kind"), None);
        assert_eq!(composition.issues("object.a.b == params.c.d"), None);
    }
}
