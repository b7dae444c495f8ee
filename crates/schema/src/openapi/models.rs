//! Models: the schema of every struct that a document needs.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::leaf::LeafType;
use api_machinery::meta::{APIGroup, APIResourceList, APIVersions, DeleteOptions, ListMeta, ObjectMeta, Status};
use api_machinery::reflect::{Field, FieldType, ListType, Presence, Shape, StructType, Union};
use serde_json::{Map, Value, json};

use super::registered::REGISTERED;
use super::{Model, Resource, custom};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

const APIEXTENSIONS: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
/// Any JSON value, in schemas of custom resources.
const ANY_JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";
const FIELDS_V1: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1";

/// Which version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 2.0: `/openapi/v2`.
    V2,
    /// 3.0: `/openapi/v3`.
    V3,
}

/// Whether models of built-in kinds say which values a text may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choices {
    /// As far as it is known.
    Told,
    /// For no text.
    Untold,
}

impl Dialect {
    /// The text of a reference to a model.
    pub(super) fn reference(self, name: &str) -> String {
        match self {
            Self::V2 => format!("#/definitions/{name}"),
            Self::V3 => format!("#/components/schemas/{name}"),
        }
    }

    pub(super) fn to(self, name: &str) -> Value {
        json!({"$ref": self.reference(name)})
    }
}

/// The name of a struct's model.
pub(super) fn table_name(table: &StructType) -> String {
    format!("{}.{}", table.package, table.name)
}

fn table_of<T: Field>() -> Option<&'static StructType> {
    match T::shape() {
        Shape::Struct(table) => Some(table),
        _ => None,
    }
}

/// The models of these resources and of all that they refer to, by name.
pub fn definitions(resources: &[Resource<'_>], dialect: Dialect, choices: Choices) -> BTreeMap<String, Value> {
    let mut builder = Builder { dialect, choices, models: BTreeMap::new(), raw_model: None };
    for resource in resources {
        builder.add_resource(resource);
    }
    let plain =
        [table_of::<ObjectMeta>(), table_of::<Status>(), table_of::<DeleteOptions>(), table_of::<APIResourceList>()];
    plain.into_iter().flatten().for_each(|table| builder.add_table(table));
    builder.add_request_types();
    builder.name_request_kinds(resources);
    builder.models
}

/// The models of discovery documents.
pub(super) fn discovery_definitions(dialect: Dialect) -> BTreeMap<String, Value> {
    let choices = Choices::Told;
    let mut builder = Builder { dialect, choices, models: BTreeMap::new(), raw_model: None };
    let tables = [table_of::<APIVersions>(), table_of::<APIGroup>()];
    tables.into_iter().flatten().for_each(|table| builder.add_table(table));
    for kind in ["APIVersions", "APIGroup"] {
        builder.name_kind(&format!("{META}.{kind}"), "", "v1", kind);
    }
    builder.models
}

/// Drops models that no operation leads to.
pub(super) fn keep_reachable<'v>(models: &mut BTreeMap<String, Value>, operations: impl Iterator<Item = &'v Value>) {
    let mut reached = BTreeSet::new();
    let mut next = Vec::new();
    operations.for_each(|operation| collect_references(operation, &mut next));
    while let Some(name) = next.pop() {
        if let Some(model) = models.get(&name).filter(|_| !reached.contains(&name)) {
            collect_references(model, &mut next);
            reached.insert(name);
        }
    }
    models.retain(|name, _| reached.contains(name));
}

/// Appends the names of all models that a document refers to.
fn collect_references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                names.extend(reference.rsplit('/').next().map(ToOwned::to_owned));
            }
            map.values().for_each(|value| collect_references(value, names));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_references(value, names)),
        _ => {}
    }
}

struct Builder {
    dialect: Dialect,
    choices: Choices,
    models: BTreeMap<String, Value>,
    /// The model of free-form values in the struct at hand, when it is not the usual one.
    raw_model: Option<&'static str>,
}

impl Builder {
    fn add_resource(&mut self, resource: &Resource<'_>) {
        let (Some(model), Some(name)) = (resource.model, resource.model_name()) else { return };
        match model {
            Model::Table(table) => self.add_table(table),
            Model::Custom { schema, .. } => {
                self.models.entry(name.clone()).or_insert_with(|| custom::published(schema, self.dialect));
                table_of::<ObjectMeta>().into_iter().for_each(|table| self.add_table(table));
            }
        }
        self.name_kind(&name, &resource.gvk.group, &resource.gvk.version, &resource.gvk.kind);
        if let Some(list) = resource.list_name() {
            self.add_list(resource, &name, &list);
        }
    }

    /// Tells which kind a model is.
    fn name_kind(&mut self, model: &str, group: &str, version: &str, kind: &str) {
        let entry = json!({"group": group, "kind": kind, "version": version});
        let Some(model) = self.models.get_mut(model).and_then(Value::as_object_mut) else { return };
        let kinds = model.entry("x-kubernetes-group-version-kind").or_insert_with(|| json!([]));
        if let Some(kinds) = kinds.as_array_mut().filter(|kinds| !kinds.contains(&entry)) {
            kinds.push(entry);
        }
    }

    fn add_list(&mut self, resource: &Resource<'_>, item: &str, name: &str) {
        table_of::<ListMeta>().into_iter().for_each(|table| self.add_table(table));
        let kind = format!("{}List", resource.gvk.kind);
        let is_custom = matches!(resource.model, Some(Model::Custom { .. }));
        let metadata = self.member_reference(&format!("{META}.ListMeta"), !is_custom);
        let list = json!({
            "description": format!("{kind} is a list of {}.", resource.gvk.kind),
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "items": {"type": "array", "items": self.dialect.to(item)},
                "metadata": metadata,
            },
        });
        self.models.insert(name.to_owned(), list);
        self.name_kind(name, resource.group, resource.version, &kind);
    }

    /// Bodies of requests and watch streams that have no table.
    fn add_request_types(&mut self) {
        let raw = self.member_reference("io.k8s.apimachinery.pkg.runtime.RawExtension", false);
        let mut event = json!({
            "type": "object",
            "required": ["type", "object"],
            "properties": {"object": raw, "type": {"type": "string"}},
        });
        if self.dialect == Dialect::V3 {
            event["properties"]["type"]["default"] = "".into();
        }
        let free = json!({"type": "object"});
        self.models.insert(format!("{META}.Patch"), free.clone());
        self.models.insert("io.k8s.apimachinery.pkg.runtime.RawExtension".into(), free);
        self.models.insert(format!("{META}.WatchEvent"), event);
    }

    /// Options and watch events exist in every group version, the others in one.
    fn name_request_kinds(&mut self, resources: &[Resource<'_>]) {
        for kind in ["WatchEvent", "Status", "DeleteOptions", "APIResourceList"] {
            self.name_kind(&format!("{META}.{kind}"), "", "v1", kind);
        }
        let versions: BTreeSet<(&str, &str)> =
            resources.iter().map(|resource| (resource.group, resource.version)).collect();
        // A document of one built-in version names that one; others name all that are known.
        let is_custom = |resource: &Resource<'_>| matches!(resource.model, Some(Model::Custom { .. }));
        let of_custom = resources.iter().all(is_custom);
        let versions: Vec<(&str, &str)> = if versions.len() == 1 && !of_custom {
            versions.into_iter().collect()
        } else {
            let known = REGISTERED.iter().filter(|known| known.beside_custom || !of_custom);
            known.flat_map(|known| known.versions.iter().map(|version| (known.group, *version))).collect()
        };
        for (group, version) in versions {
            for kind in ["WatchEvent", "DeleteOptions"] {
                self.name_kind(&format!("{META}.{kind}"), group, version, kind);
            }
        }
    }

    fn add_table(&mut self, table: &'static StructType) {
        let name = table_name(table);
        if self.models.contains_key(&name) {
            return;
        }
        // Entered before its members, because types refer to themselves.
        self.models.insert(name.clone(), Value::Null);
        let mut schema = Map::new();
        put_text(&mut schema, "description", table.doc);
        schema.insert("type".into(), "object".into());
        let (mut properties, mut required) = (Map::new(), Vec::new());
        if table.type_meta {
            for name in ["apiVersion", "kind"] {
                properties.insert(name.into(), json!({"type": "string"}));
            }
        }
        let raw_model = (table.package == APIEXTENSIONS).then_some(ANY_JSON);
        let outer = std::mem::replace(&mut self.raw_model, raw_model);
        self.add_members(table, &mut properties, &mut required);
        self.raw_model = outer;
        if let Some(union) = table.union {
            schema.insert("x-kubernetes-unions".into(), json!([union_of(union)]));
        }
        if !properties.is_empty() {
            schema.insert("properties".into(), Value::Object(properties));
        }
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        if table.atomic {
            schema.insert("x-kubernetes-map-type".into(), "atomic".into());
        }
        self.models.insert(name.clone(), Value::Object(schema));
        // Where they stand inside others, no resource tells what they are.
        if let Some(kind) = table.core_kind() {
            self.name_kind(&name, "", "v1", kind);
        }
    }

    /// The members of a struct and of what is inline in it.
    fn add_members(&mut self, table: &StructType, properties: &mut Map<String, Value>, required: &mut Vec<Value>) {
        for field in table.fields {
            let shape = (field.shape)();
            match shape.required() {
                Shape::Struct(inner) if field.inline => self.add_members(inner, properties, required),
                _ if field.rest || field.name.is_empty() => {}
                _ => {
                    let mut member = self.member(field, shape);
                    if !field.values().is_empty() && self.choices == Choices::Told {
                        let values: BTreeSet<&str> = field.values().iter().copied().collect();
                        place_of_values(&mut member)["enum"] = json!(values);
                    }
                    properties.insert(field.name.into(), member);
                    required.extend(field.required.then(|| Value::from(field.name)));
                }
            }
        }
    }

    /// The schema of a declared field.
    fn member(&mut self, field: &FieldType, shape: Shape) -> Value {
        let optional = matches!(shape, Shape::Optional(_));
        let inner = shape.required();
        let schema = match inner {
            // The one free-form value with a model of its own.
            Shape::Leaf(leaf) if field.name == "fieldsV1" => self.leaf(leaf, FIELDS_V1),
            _ => self.schema(shape),
        };
        let mut schema = match schema {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let reference = schema.contains_key("$ref") && self.dialect == Dialect::V3;
        if self.dialect == Dialect::V3
            && let Some(default) = declared_default(field, inner, optional)
        {
            schema.insert("default".into(), default);
        }
        put_text(&mut schema, "description", field.doc);
        // Bytes are a list, too, where upstream says so.
        if matches!(inner, Shape::List(_)) || (matches!(inner, Shape::Bytes) && field.atomic) {
            put_list_type(&mut schema, field);
        } else if field.atomic || field.granular {
            let map_type = if field.atomic { "atomic" } else { "granular" };
            schema.insert("x-kubernetes-map-type".into(), map_type.into());
        }
        put_patch_strategy(&mut schema, field);
        if reference && let Some(target) = schema.remove("$ref") {
            let target = json!({"$ref": target});
            if schema.is_empty() {
                return target;
            }
            // In version 3 nothing may stand beside a reference.
            schema.insert("allOf".into(), json!([target]));
        }
        Value::Object(schema)
    }

    fn member_reference(&self, name: &str, with_default: bool) -> Value {
        match (self.dialect, with_default) {
            (Dialect::V2, _) => self.dialect.to(name),
            (Dialect::V3, true) => json!({"allOf": [self.dialect.to(name)], "default": {}}),
            (Dialect::V3, false) => json!({"allOf": [self.dialect.to(name)]}),
        }
    }

    /// The schema of a type, wherever it stands.
    fn schema(&mut self, shape: Shape) -> Value {
        match shape {
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Int32 => json!({"type": "integer", "format": "int32"}),
            Shape::Int64 => json!({"type": "integer", "format": "int64"}),
            Shape::Float => json!({"type": "number", "format": "double"}),
            Shape::Str => json!({"type": "string"}),
            Shape::Bytes => json!({"type": "string", "format": "byte"}),
            Shape::Struct(table) => {
                self.add_table(table);
                self.dialect.to(&table_name(table))
            }
            Shape::List(of) => json!({"type": "array", "items": self.schema(of())}),
            Shape::Map(of) => json!({"type": "object", "additionalProperties": self.schema(of())}),
            Shape::Optional(of) => self.schema(of()),
            Shape::Leaf(leaf) if leaf.name == "runtime.RawExtension" => {
                self.leaf(leaf, self.raw_model.unwrap_or(leaf.model))
            }
            Shape::Leaf(leaf) => self.leaf(leaf, leaf.model),
            Shape::Dynamic => json!({"type": "object"}),
        }
    }

    fn leaf(&mut self, leaf: &'static LeafType, model: &str) -> Value {
        let schema = if model == ANY_JSON { json!({"description": leaf.doc}) } else { leaf_schema(leaf, self.dialect) };
        if model.is_empty() {
            return schema;
        }
        self.models.entry(model.into()).or_insert(schema);
        self.dialect.to(model)
    }
}

fn leaf_schema(leaf: &LeafType, dialect: Dialect) -> Value {
    match (leaf.name, dialect) {
        ("resource.Quantity", Dialect::V3) => {
            json!({"description": leaf.doc, "oneOf": [{"type": "string"}, {"type": "number"}]})
        }
        ("intstr.IntOrString", Dialect::V3) => json!({
            "description": leaf.doc, "format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]
        }),
        _ => {
            let mut schema = Map::new();
            put_text(&mut schema, "description", leaf.doc);
            put_text(&mut schema, "type", leaf.openapi_type);
            put_text(&mut schema, "format", leaf.openapi_format);
            if leaf.openapi_type == "array" {
                schema.insert("items".into(), json!({"type": "string"}));
            }
            Value::Object(schema)
        }
    }
}

/// What a v3 document says an absent field means: the declared default, or the zero value of what is always written.
fn declared_default(field: &FieldType, shape: Shape, optional: bool) -> Option<Value> {
    if let Ok(declared) = serde_json::from_str(field.default) {
        return Some(declared);
    }
    match shape {
        _ if optional => None,
        Shape::Struct(_) => Some(json!({})),
        Shape::Bool if field.presence == Presence::Always => Some(false.into()),
        Shape::Int32 | Shape::Int64 | Shape::Float if field.presence == Presence::Always => Some(0.into()),
        Shape::Str if field.presence == Presence::Always => Some("".into()),
        _ => None,
    }
}

/// Where the values of a field are told: of the items or entries of one that has some, else of the field itself.
fn place_of_values(member: &mut Value) -> &mut Value {
    let within = ["items", "additionalProperties"].into_iter().find(|name| member.get(name).is_some());
    match within {
        Some(name) => &mut member[name],
        None => member,
    }
}

fn union_of(union: &Union) -> Value {
    let fields: Map<String, Value> =
        union.fields.iter().map(|(field, name)| ((*field).to_owned(), (*name).into())).collect();
    let mut shown = json!({"fields-to-discriminateBy": fields});
    if !union.discriminator.is_empty() {
        shown["discriminator"] = union.discriminator.into();
    }
    shown
}

fn put_text(schema: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        schema.insert(name.into(), text.into());
    }
}

fn put_list_type(schema: &mut Map<String, Value>, field: &FieldType) {
    let (name, keys): (&str, &[&str]) = match field.list {
        ListType::Atomic => ("atomic", &[]),
        ListType::Set => ("set", &[]),
        ListType::Map(keys) => ("map", keys),
    };
    schema.insert("x-kubernetes-list-type".into(), name.into());
    if !keys.is_empty() {
        schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
    }
}

fn put_patch_strategy(schema: &mut Map<String, Value>, field: &FieldType) {
    let strategy = match (field.patch.merge, field.patch.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) if field.patch.replace => "replace",
        (false, false) => return,
    };
    schema.insert("x-kubernetes-patch-strategy".into(), strategy.into());
    put_text(schema, "x-kubernetes-patch-merge-key", field.patch.merge_key);
}
