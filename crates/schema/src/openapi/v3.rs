//! Documents in OpenAPI 3.0.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::models::{definitions, discovery_definitions, keep_reachable};
use super::operations::{self, Answer, Body, Operation, path_parameters};
use super::{Dialect, Resource, operation_group, short_group, version_prefix};

const MEDIA_TYPES: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAM_TYPES: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCH_TYPES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The document of one group version, such as `apis/apps/v1`.
pub fn version_document(group: &str, version: &str, resources: &[Resource<'_>]) -> Value {
    let tag = format!("{}_{version}", short_group(group));
    let id = format!("get{}APIResources", operation_group(group, version));
    let path = format!("{}/", version_prefix(group, version));
    let mut all = vec![operations::discovery(path, id, tag, "APIResourceList")];
    all.extend(resources.iter().flat_map(operations::of));
    document(&all, definitions(resources, Dialect::V3))
}

/// The document of a group, such as `apis/apps`.
pub fn group_document(group: &str) -> Value {
    let short = short_group(group);
    let id = format!("get{}APIGroup", super::capitalized(&short));
    document(
        &[operations::discovery(format!("/apis/{group}/"), id, short, "APIGroup")],
        discovery_definitions(Dialect::V3),
    )
}

/// The document of `api` or `apis`.
pub fn root_document(core: bool) -> Value {
    let (path, id, tag, model) = if core {
        ("/api/", "getCoreAPIVersions", "core", "APIVersions")
    } else {
        ("/apis/", "getAPIVersions", "apis", "APIGroupList")
    };
    let mut models = discovery_definitions(Dialect::V3);
    if !core {
        let group = Dialect::V3.to("io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup");
        let list = json!({
            "type": "object",
            "required": ["groups"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "groups": {"type": "array", "items": group, "x-kubernetes-list-type": "atomic"},
            },
            "x-kubernetes-group-version-kind": [{"group": "", "kind": "APIGroupList", "version": "v1"}],
        });
        models.insert("io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList".into(), list);
    }
    document(&[operations::discovery(path.into(), id.into(), tag.into(), model)], models)
}

fn document(all: &[Operation], mut models: BTreeMap<String, Value>) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in all {
        let item = paths.entry(operation.path.as_str()).or_default();
        item.insert(operation.method.into(), render(operation));
    }
    for (path, item) in &mut paths {
        let shared = shared_parameters(path, all);
        if !shared.is_empty() {
            item.insert("parameters".into(), shared.into());
        }
    }
    let paths = json!(paths);
    keep_reachable(&mut models, &paths);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {
            "schemas": models,
            "securitySchemes": {"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}},
        },
    })
}

/// Parameters that every operation of a path has.
fn shared_parameters(path: &str, all: &[Operation]) -> Vec<Value> {
    let parameter = |name: &str, kind: &str, place: &str| {
        let mut parameter = json!({"in": place, "name": name, "schema": {"type": kind, "uniqueItems": true}});
        if place == "path" {
            parameter["required"] = true.into();
        }
        parameter
    };
    let mut shared: Vec<Value> =
        path_parameters(path).into_iter().map(|name| parameter(name, "string", "path")).collect();
    let has_objects =
        all.iter().any(|operation| operation.path == path && operation.gvk.is_some() && operation.action != "connect");
    if has_objects {
        shared.push(parameter("pretty", "string", "query"));
    }
    shared
}

fn content(types: &[&str], schema: &Value) -> Value {
    types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

fn render(operation: &Operation) -> Value {
    let answer = match &operation.answer {
        Answer::Model(model) => content(&MEDIA_TYPES, &Dialect::V3.to(model)),
        Answer::Stream(model) => content(&[&MEDIA_TYPES[..], &STREAM_TYPES].concat(), &Dialect::V3.to(model)),
        Answer::Text => content(&["*/*"], &json!({"type": "string"})),
    };
    let mut responses = Map::new();
    for code in operation.codes {
        responses.insert((*code).into(), json!({"description": description(code), "content": answer}));
    }
    responses.insert("401".into(), json!({"description": "Unauthorized"}));
    let mut rendered = Map::new();
    rendered.insert("operationId".into(), operation.id.clone().into());
    rendered.insert("responses".into(), responses.into());
    rendered.insert("tags".into(), json!([operation.tag]));
    let query = operation
        .query
        .iter()
        .map(|(name, kind)| json!({"in": "query", "name": name, "schema": {"type": kind, "uniqueItems": true}}));
    let query: Vec<Value> = query.collect();
    if !query.is_empty() {
        rendered.insert("parameters".into(), query.into());
    }
    match &operation.body {
        Body::None => {}
        Body::Model(model, required) => {
            let mut body = json!({"content": content(&["*/*"], &Dialect::V3.to(model))});
            if *required {
                body["required"] = true.into();
            }
            rendered.insert("requestBody".into(), body);
        }
        Body::Patch => {
            let patch = Dialect::V3.to("io.k8s.apimachinery.pkg.apis.meta.v1.Patch");
            rendered.insert("requestBody".into(), json!({"content": content(&PATCH_TYPES, &patch), "required": true}));
        }
    }
    super::v2::put_kind(&mut rendered, operation);
    rendered.into()
}

pub(super) fn description(code: &str) -> &'static str {
    match code {
        "201" => "Created",
        "202" => "Accepted",
        _ => "OK",
    }
}
