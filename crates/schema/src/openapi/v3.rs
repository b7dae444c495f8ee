//! Documents in OpenAPI 3.0.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::models::{Choices, definitions, discovery_definitions, keep_reachable};
use super::operations::{self, Answer, Body, Operation, path_parameters};
use super::{Dialect, Model, Resource, operation_group, short_group, version_prefix};

const MEDIA_TYPES: [&str; 3] = ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const CUSTOM: [&str; 2] = ["application/json", "application/yaml"];
const STREAM_TYPES: [&str; 2] = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const PATCH_TYPES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// The document of one group version, such as `apis/apps/v1`.
pub fn version_document(group: &str, version: &str, resources: &[Resource<'_>], choices: Choices) -> Value {
    let tag = format!("{}_{version}", short_group(group));
    let id = format!("get{}APIResources", operation_group(group, version));
    let path = format!("{}/", version_prefix(group, version));
    let is_custom = |resource: &Resource<'_>| matches!(resource.model, Some(Model::Custom { .. }));
    let of_custom = resources.iter().all(is_custom);
    let mut all = Vec::new();
    if !of_custom {
        all.push(operations::discovery(path, id, tag, "APIResourceList"));
    }
    all.extend(resources.iter().flat_map(operations::of));
    let mut made = document(&all, definitions(resources, Dialect::V3, choices));
    if of_custom {
        // Upstream makes these documents apart from all others.
        made["info"]["title"] = "Kubernetes CRD Swagger".into();
        made["components"].as_object_mut().and_then(|components| components.remove("securitySchemes"));
    }
    made
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

/// The document of a path of the server itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnPath {
    /// `version`.
    Version,
    /// `.well-known/openid-configuration`.
    Issuer,
    /// `openid/v1/jwks`.
    IssuerKeys,
}

impl OwnPath {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Version, Self::Issuer, Self::IssuerKeys];

    /// The path without its first slash, by which the index names the document.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Issuer => ".well-known/openid-configuration",
            Self::IssuerKeys => "openid/v1/jwks",
        }
    }

    fn operation(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Version => ("getCodeVersion", "version", "application/json"),
            Self::Issuer => ("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "application/json"),
            Self::IssuerKeys => ("getServiceAccountIssuerOpenIDKeyset", "openid", "application/jwk-set+json"),
        }
    }
}

/// The document of a path of the server itself.
pub fn own_document(own: OwnPath) -> Value {
    const INFO: &str = "io.k8s.apimachinery.pkg.version.Info";
    let (id, tag, media) = own.operation();
    let schema = if own == OwnPath::Version { Dialect::V3.to(INFO) } else { json!({"type": "string"}) };
    let responses = json!({
        "200": {"description": description("200"), "content": content(&[media], &schema)},
        "401": {"description": "Unauthorized"},
    });
    let mut path = Map::new();
    path.insert(format!("/{}/", own.key()), json!({"get": {"operationId": id, "responses": responses, "tags": [tag]}}));
    let models =
        if own == OwnPath::Version { BTreeMap::from([(INFO.to_owned(), version_info())]) } else { BTreeMap::new() };
    around(path.into(), models)
}

/// What the server tells of its version.
fn version_info() -> Value {
    let always =
        ["buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "major", "minor", "platform"];
    let sometimes = ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];
    let mut properties = Map::new();
    for name in always {
        properties.insert(name.into(), json!({"type": "string", "default": ""}));
    }
    for name in sometimes {
        properties.insert(name.into(), json!({"type": "string"}));
    }
    let required =
        ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];
    json!({"type": "object", "required": required, "properties": properties})
}

fn document(all: &[Operation], mut models: BTreeMap<String, Value>) -> Value {
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    let shared = shared_parameters(all);
    for operation in all {
        let item = paths.entry(operation.path.as_str()).or_default();
        let common = shared.get(operation.path.as_str()).map(Vec::as_slice).unwrap_or_default();
        item.insert(operation.method.into(), render(operation, common));
        if !common.is_empty() {
            item.insert("parameters".into(), render_parameters(common.iter()).into());
        }
    }
    let paths = json!(paths);
    keep_reachable(&mut models, std::iter::once(&paths));
    around(paths, models)
}

/// What stands around paths and models in every document.
fn around(paths: Value, models: BTreeMap<String, Value>) -> Value {
    let mut components = json!({
        "securitySchemes": {"BearerToken": {"in": "header", "name": "authorization", "type": "apiKey"}},
    });
    if !models.is_empty() {
        components["schemas"] = json!(models);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": components,
    })
}

/// A parameter by name and place, with its type.
type Parameter<'a> = (&'a str, &'static str, &'static str);

/// All parameters of an operation, by name.
fn parameters(operation: &Operation) -> Vec<Parameter<'_>> {
    let in_path = path_parameters(&operation.path).into_iter().map(|name| (name, "path", "string"));
    let in_query = operation.query.iter().map(|(name, kind)| (*name, "query", *kind));
    let has_object = operation.gvk.is_some() && operation.action != "connect";
    let pretty = has_object.then_some(("pretty", "query", "string"));
    let mut all: Vec<Parameter<'_>> = in_path.chain(in_query).chain(pretty).collect();
    all.sort_unstable();
    all
}

/// The parameters that every operation of each path has: they are told once.
fn shared_parameters(all: &[Operation]) -> BTreeMap<&str, Vec<Parameter<'_>>> {
    let mut shared: BTreeMap<&str, Vec<Parameter<'_>>> = BTreeMap::new();
    for operation in all {
        let own = parameters(operation);
        let common = shared.entry(operation.path.as_str()).or_insert_with(|| own.clone());
        common.retain(|parameter| own.contains(parameter));
    }
    shared
}

fn render_parameters<'a>(parameters: impl Iterator<Item = &'a Parameter<'a>>) -> Vec<Value> {
    let parameter = |(name, place, kind): &Parameter<'_>| {
        let mut parameter = json!({"in": place, "name": name, "schema": {"type": kind, "uniqueItems": true}});
        if *place == "path" {
            parameter["required"] = true.into();
        }
        parameter
    };
    parameters.map(parameter).collect()
}

fn content(types: &[&str], schema: &Value) -> Value {
    types.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": schema}))).collect::<Map<_, _>>().into()
}

fn render(operation: &Operation, common: &[Parameter<'_>]) -> Value {
    let answer = match &operation.answer {
        Answer::Model(model) | Answer::Stream(model) if operation.custom => content(&CUSTOM, &Dialect::V3.to(model)),
        Answer::Model(model) => content(&MEDIA_TYPES, &Dialect::V3.to(model)),
        Answer::Stream(model) => content(&[&MEDIA_TYPES[..], &STREAM_TYPES].concat(), &Dialect::V3.to(model)),
        Answer::Text => content(&["*/*"], &json!({"type": "string"})),
        Answer::Log => content(&[&MEDIA_TYPES[..], &["text/plain"]].concat(), &json!({"type": "string"})),
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
    let all = parameters(operation);
    let own = render_parameters(all.iter().filter(|parameter| !common.contains(parameter)));
    if !own.is_empty() {
        rendered.insert("parameters".into(), own.into());
    }
    match &operation.body {
        Body::None => {}
        Body::Model(model, required) => {
            let types = if operation.custom { &CUSTOM[..] } else { &["*/*"] };
            let mut body = json!({"content": content(types, &Dialect::V3.to(model))});
            if *required {
                body["required"] = true.into();
            }
            rendered.insert("requestBody".into(), body);
        }
        Body::Patch => {
            let patch = Dialect::V3.to("io.k8s.apimachinery.pkg.apis.meta.v1.Patch");
            // Custom kinds take no strategic merge patches: clients look here before they send one.
            let types = if operation.custom { &PATCH_TYPES[..3] } else { &PATCH_TYPES };
            rendered.insert("requestBody".into(), json!({"content": content(types, &patch), "required": true}));
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
