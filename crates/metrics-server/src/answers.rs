//! The API's answers: objects, lists, tables, discovery and refusals, as JSON.

use api_machinery::gvk::GroupResource;
use api_machinery::meta::ObjectMeta;
use api_machinery::object::Object;
use api_machinery::quantity::{Format, Quantity};
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::core_v1::ResourceList;
use api_types::metrics_v1beta1::{ContainerMetrics, GROUP, NodeMetrics, PodMetrics, VERSION};
use component_base::serving::{Response, full};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use crate::query::Resource;
use crate::usage::Usage;

/// What a node used, as an object; `of` is the node's metadata.
pub(crate) fn node(of: &ObjectMeta, usage: &Usage, now: Time) -> NodeMetrics {
    NodeMetrics {
        metadata: metadata(of, now),
        timestamp: Time::from_unix_seconds(usage.at_seconds),
        window: usage.window.into(),
        usage: amounts(usage),
    }
}

/// What a pod used, as an object; `of` is the pod's metadata. The time is that of the container heard of first.
pub(crate) fn pod(of: &ObjectMeta, containers: Vec<(String, Usage)>, now: Time) -> Option<PodMetrics> {
    let earliest = containers.iter().map(|(_, usage)| *usage).min_by_key(|usage| usage.at_seconds)?;
    let container = |(name, usage): (String, Usage)| ContainerMetrics { name, usage: amounts(&usage) };
    Some(PodMetrics {
        metadata: metadata(of, now),
        timestamp: Time::from_unix_seconds(earliest.at_seconds),
        window: earliest.window.into(),
        containers: containers.into_iter().map(container).collect(),
    })
}

fn metadata(of: &ObjectMeta, now: Time) -> ObjectMeta {
    ObjectMeta {
        name: of.name.clone(),
        namespace: of.namespace.clone(),
        labels: of.labels.clone(),
        creation_timestamp: now,
        ..ObjectMeta::default()
    }
}

fn amounts(usage: &Usage) -> ResourceList {
    let cpu = Quantity::from_nano(usage.nanocores, Format::DecimalSi);
    let memory = Quantity::from_value(usage.memory_bytes, Format::BinarySi);
    [("cpu".to_owned(), cpu), ("memory".to_owned(), memory)].into()
}

/// What is answered for a request.
pub(crate) enum Answer {
    One(Box<dyn Object>),
    List(Resource, Vec<Box<dyn Object>>),
}

impl Answer {
    /// As an answer in the form that the client takes.
    pub(crate) fn write(self, accept: &str) -> Response {
        if accept.split(',').any(|one| one.contains("as=Table")) {
            return json(StatusCode::OK, table(&self.into_objects()).to_string());
        }
        let text = match self {
            Self::One(object) => object.to_json(),
            Self::List(resource, objects) => list(resource, &objects),
        };
        json(StatusCode::OK, text)
    }

    fn into_objects(self) -> Vec<Box<dyn Object>> {
        match self {
            Self::One(object) => vec![object],
            Self::List(_, objects) => objects,
        }
    }
}

/// A list, written one object after the other.
fn list(resource: Resource, objects: &[Box<dyn Object>]) -> String {
    let kind = match resource {
        Resource::Nodes => "NodeMetricsList",
        Resource::Pods => "PodMetricsList",
    };
    let mut text = format!(r#"{{"kind":"{kind}","apiVersion":"{GROUP}/{VERSION}","metadata":{{}},"items":["#);
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&object.to_json_item());
    }
    text.push_str("]}");
    text
}

/// Objects as rows, for people: the sums over the containers of a pod.
fn table(objects: &[Box<dyn Object>]) -> Value {
    let column = |name: &str, type_: &str, format: &str, description: &str| json!({"name": name, "type": type_, "format": format, "description": description, "priority": 0});
    let row = |object: &dyn Object| {
        let (usage, window) = used(object);
        let amount = |name: &str| usage.get(name).map(ToString::to_string).unwrap_or_default();
        let meta = object.meta();
        let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {
            "name": meta.name, "namespace": meta.namespace, "labels": meta.labels,
            "creationTimestamp": meta.creation_timestamp.to_string()}});
        json!({"cells": [meta.name, amount("cpu"), amount("memory"), window], "object": partial})
    };
    let name = column("Name", "string", "name", "Name of the resource");
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": [
            name,
            column("cpu", "string", "quantity", "Usage of processor time"),
            column("memory", "string", "quantity", "Usage of memory"),
            column("Window", "string", "duration", "Over how long it was measured"),
        ],
        "rows": objects.iter().map(|object| row(object.as_ref())).collect::<Vec<_>>(),
    })
}

fn used(object: &dyn Object) -> (ResourceList, String) {
    if let Some(node) = object.downcast_ref::<NodeMetrics>() {
        return (node.usage.clone(), node.window.to_string());
    }
    let Some(pod) = object.downcast_ref::<PodMetrics>() else { return Default::default() };
    let mut sum = ResourceList::new();
    for (name, amount) in pod.containers.iter().flat_map(|container| &container.usage) {
        sum.entry(name.clone()).or_default().add(amount);
    }
    (sum, pod.window.to_string())
}

/// A refusal.
pub(crate) fn refused(error: &ApiError) -> Response {
    let details = error
        .details
        .as_deref()
        .map(|details| json!({"name": details.name, "group": details.group, "kind": details.kind}));
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": error.message, "reason": error.reason, "code": error.code});
    if let Some(details) = details {
        status["details"] = details;
    }
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json(code, status.to_string())
}

/// That there is no usage of something, by the name that upstream gives the resource there.
pub(crate) fn not_found(resource: Resource, namespace: &str, name: &str) -> ApiError {
    match resource {
        Resource::Nodes => ApiError::not_found(&GroupResource::new(GROUP, "nodemetrics"), name),
        Resource::Pods => ApiError::not_found(&GroupResource::new(GROUP, "podmetrics"), &format!("{namespace}/{name}")),
    }
}

/// A page of discovery.
pub(crate) fn discovery(path: &str) -> Option<Response> {
    let version = json!({"groupVersion": format!("{GROUP}/{VERSION}"), "version": VERSION});
    let group = json!({"name": GROUP, "versions": [version], "preferredVersion": version});
    let resource = |resource: Resource, kind: &str, is_namespaced: bool| {
        json!({"name": resource.name(), "singularName": "", "namespaced": is_namespaced, "kind": kind,
            "verbs": ["get", "list"]})
    };
    let page = match path.trim_end_matches('/') {
        "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}),
        "/apis/metrics.k8s.io" => {
            let mut page = group;
            page["kind"] = "APIGroup".into();
            page["apiVersion"] = "v1".into();
            page
        }
        "/apis/metrics.k8s.io/v1beta1" => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": format!("{GROUP}/{VERSION}"),
            "resources": [
                resource(Resource::Nodes, "NodeMetrics", false),
                resource(Resource::Pods, "PodMetrics", true),
            ],
        }),
        _ => return None,
    };
    Some(json(StatusCode::OK, page.to_string()))
}

fn json(code: StatusCode, text: String) -> Response {
    let mut response = Response::new(full(text));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
