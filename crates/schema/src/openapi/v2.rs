//! The document in OpenAPI 2.0.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::models::{Choices, definitions, discovery_definitions, keep_reachable};
use super::operations::{self, Answer, Body, Operation, path_parameters};
use super::swagger::Swagger;
use super::v3::description;
use super::{Dialect, Resource, operation_group, short_group, version_prefix};

const PRODUCES: [&str; 3] = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const STREAMS: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The document of what is served.
pub fn swagger(resources: &[Resource<'_>], choices: Choices) -> Swagger {
    let mut versions: Vec<(&str, &str)> = resources.iter().map(|resource| (resource.group, resource.version)).collect();
    versions.sort_unstable();
    versions.dedup();
    let mut all: Vec<Operation> =
        versions.into_iter().map(|(group, version)| version_discovery(group, version)).collect();
    all.extend(resources.iter().flat_map(operations::of));
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in &all {
        paths.entry(operation.path.as_str()).or_default().insert(operation.method.into(), render(operation));
    }
    for (path, item) in &mut paths {
        let shared: Vec<Value> = path_parameters(path)
            .into_iter()
            .map(|name| json!({"in": "path", "name": name, "required": true, "type": "string", "uniqueItems": true}))
            .collect();
        if !shared.is_empty() {
            item.insert("parameters".into(), shared.into());
        }
    }
    let mut models = definitions(resources, Dialect::V2, choices);
    models.extend(discovery_definitions(Dialect::V2));
    keep_reachable(&mut models, paths.values().flat_map(Map::values));
    Swagger::new(paths.into_iter().map(|(path, item)| (path.to_owned(), Value::Object(item))), models)
}

fn version_discovery(group: &str, version: &str) -> Operation {
    let id = format!("get{}APIResources", operation_group(group, version));
    let tag = format!("{}_{version}", short_group(group));
    operations::discovery(format!("{}/", version_prefix(group, version)), id, tag, "APIResourceList")
}

fn render(operation: &Operation) -> Value {
    let (schema, produces) = match &operation.answer {
        Answer::Model(model) => (Dialect::V2.to(model), PRODUCES.to_vec()),
        Answer::Stream(model) => (Dialect::V2.to(model), [&PRODUCES[..], &STREAMS].concat()),
        Answer::Text => (json!({"type": "string"}), vec!["*/*"]),
        Answer::Log => (json!({"type": "string"}), [&["text/plain"], &PRODUCES[..]].concat()),
    };
    let mut responses = Map::new();
    for code in operation.codes {
        responses.insert((*code).into(), json!({"description": description(code), "schema": schema}));
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let body = |model: &str, required: bool| {
        let mut body = json!({"in": "body", "name": "body", "schema": Dialect::V2.to(model)});
        if required {
            body["required"] = true.into();
        }
        body
    };
    let (consumes, body) = match &operation.body {
        Body::None => (vec!["*/*"], None),
        Body::Model(model, required) => (vec!["*/*"], Some(body(model, *required))),
        Body::Patch => (PATCHES.to_vec(), Some(body("io.k8s.apimachinery.pkg.apis.meta.v1.Patch", true))),
    };
    let query = operation
        .query
        .iter()
        .map(|(name, kind)| json!({"in": "query", "name": name, "type": kind, "uniqueItems": true}));
    let parameters: Vec<Value> = body.into_iter().chain(query).collect();
    let mut rendered = Map::new();
    rendered.insert("consumes".into(), json!(consumes));
    rendered.insert("operationId".into(), operation.id.clone().into());
    if !parameters.is_empty() {
        rendered.insert("parameters".into(), parameters.into());
    }
    rendered.insert("produces".into(), json!(produces));
    rendered.insert("responses".into(), responses.into());
    rendered.insert("schemes".into(), json!(["https"]));
    rendered.insert("tags".into(), json!([operation.tag]));
    put_kind(&mut rendered, operation);
    rendered.into()
}

/// The action and kind of an operation, by which clients find it.
pub(super) fn put_kind(rendered: &mut Map<String, Value>, operation: &Operation) {
    if !operation.action.is_empty() {
        rendered.insert("x-kubernetes-action".into(), operation.action.into());
    }
    if let Some(gvk) = &operation.gvk {
        let kind = json!({"group": gvk.group, "kind": gvk.kind, "version": gvk.version});
        rendered.insert("x-kubernetes-group-version-kind".into(), kind);
    }
}
