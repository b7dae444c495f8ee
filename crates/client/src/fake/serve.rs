//! The requests of the fake server.

use std::collections::BTreeMap;

use api_machinery::fields::FieldSelector;
use api_machinery::gvk::GroupResource;
use api_machinery::json::{encode_value, parse_value};
use api_machinery::labels::Selector;
use api_machinery::status::ApiError;
use api_machinery::value::Value;
use bytes::Bytes;
use component_base::serving;
use http::{HeaderValue, Method, StatusCode, header};

use super::FakeServer;
use super::store::{Store, set, text};
use super::watch;
use crate::transport::Body;

/// Which objects a request is about.
#[derive(Clone, Default)]
pub(super) struct Selection {
    pub(super) resource: String,
    namespace: String,
    name: String,
    subresource: String,
    labels: Option<Selector>,
    fields: Option<FieldSelector>,
}

impl Selection {
    /// Takes `/api/v1/namespaces/ns/pods/name/status` apart.
    fn of(path: &str, query: &BTreeMap<String, String>) -> Option<Self> {
        let mut parts = path.trim_start_matches('/').split('/');
        let version = match parts.next()? {
            "api" => parts.next()?.to_owned(),
            "apis" => format!("{}/{}", parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut rest: Vec<&str> = parts.collect();
        let mut namespace = "";
        if let ["namespaces", inside, _, ..] = rest.as_slice()
            && !["status", "finalize"].contains(&rest[2])
        {
            namespace = inside;
            rest.drain(..2);
        }
        Some(Self {
            resource: format!("{version}/{}", rest.first()?),
            namespace: namespace.to_owned(),
            name: rest.get(1).copied().unwrap_or_default().to_owned(),
            subresource: rest.get(2).copied().unwrap_or_default().to_owned(),
            labels: query.get("labelSelector").and_then(|text| Selector::parse(text).ok()),
            fields: query.get("fieldSelector").and_then(|text| FieldSelector::parse(text).ok()),
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let in_namespace = self.namespace.is_empty() || text(object, &["metadata", "namespace"]) == self.namespace;
        let labels = || {
            let labels = object.get("metadata").and_then(|meta| meta.get("labels")).and_then(Value::as_object);
            let pairs = labels.into_iter().flatten();
            pairs.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
        };
        in_namespace
            && self.labels.as_ref().is_none_or(|selector| selector.matches(&labels()))
            && self.fields.as_ref().is_none_or(|selector| {
                selector.matches(|field| text(object, &field.split('.').collect::<Vec<_>>()).into())
            })
    }
}

/// The object as a PartialObjectMetadata.
pub(super) fn metadata_only(mut object: Value) -> Value {
    let mut partial = Value::Object(Default::default());
    partial["kind"] = "PartialObjectMetadata".into();
    partial["apiVersion"] = "meta.k8s.io/v1".into();
    partial["metadata"] = object["metadata"].take();
    partial
}

fn parse_query(query: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte == b'%'
                && let Some((hex, after)) = tail.split_first_chunk::<2>()
                && let Ok(code) = u8::from_str_radix(&String::from_utf8_lossy(hex), 16)
            {
                bytes.push(code);
                rest = after;
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

pub(super) fn answer(status: u16, value: &Value) -> http::Response<Body> {
    let mut response = http::Response::new(serving::full(encode_value(value)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn failed(error: &ApiError) -> http::Response<Body> {
    let mut status = Value::Object(Default::default());
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    status["status"] = "Failure".into();
    status["reason"] = error.reason.as_ref().into();
    status["message"] = error.message.clone().into();
    status["code"] = error.code.into();
    answer(error.code, &status)
}

pub(super) fn serve(server: &FakeServer, request: &http::Request<Bytes>) -> http::Response<Body> {
    let query = parse_query(request.uri().query().unwrap_or_default());
    {
        let mut store = server.store.lock();
        store.requests.push(format!("{} {}", request.method(), request.uri()));
        let failure = store.failures.get_mut(request.method().as_str()).and_then(|statuses| statuses.pop_front());
        if let Some(status) = failure {
            return failed(&ApiError { code: status, message: "injected".into(), ..ApiError::default() });
        }
    }
    let Some(select) = Selection::of(request.uri().path(), &query) else {
        return failed(&ApiError::unknown_resource());
    };
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let partial = accept.contains("as=PartialObjectMetadata");
    if query.get("watch").is_some_and(|value| value == "true") {
        return start_watch(server, select, &query, partial);
    }
    let body = parse_value(&String::from_utf8_lossy(request.body())).unwrap_or_default();
    let mut store = server.store.lock();
    let outcome = match *request.method() {
        Method::GET if select.name.is_empty() => Ok(list(&store, &select, partial)),
        Method::GET => find(&store, &select).map(|object| if partial { metadata_only(object) } else { object }),
        Method::POST if select.name.is_empty() => create(&mut store, &select, body),
        Method::POST => subresource(&mut store, &select, body),
        Method::PUT => update(&mut store, &select, body),
        Method::PATCH => patch(&mut store, &select, body),
        Method::DELETE => delete(&mut store, &select, &body),
        _ => Err(ApiError::method_not_allowed()),
    };
    outcome.map_or_else(|error| failed(&error), |value| answer(200, &value))
}

fn start_watch(
    server: &FakeServer,
    select: Selection,
    query: &BTreeMap<String, String>,
    partial: bool,
) -> http::Response<Body> {
    let initial = query.get("sendInitialEvents").is_some_and(|value| value == "true");
    let (offered, now) = {
        let store = server.store.lock();
        (store.initial_events, store.version())
    };
    if initial && !offered {
        let text = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        return failed(&ApiError { code: 422, reason: "Invalid".into(), message: text.into(), ..ApiError::default() });
    }
    let version = query.get("resourceVersion").and_then(|text| text.parse().ok()).unwrap_or(now);
    let mut response = http::Response::new(watch::body(server, select, version, initial, partial));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn group_resource(select: &Selection) -> GroupResource {
    let mut parts: Vec<&str> = select.resource.split('/').collect();
    let resource = parts.pop().unwrap_or_default().to_owned();
    let group = if parts.len() > 1 { parts[0].to_owned() } else { String::new() };
    GroupResource { group: group.into(), resource: resource.into() }
}

fn find(store: &Store, select: &Selection) -> Result<Value, ApiError> {
    let found = store.get(&select.resource, &select.namespace, &select.name).cloned();
    found.ok_or_else(|| ApiError::not_found(&group_resource(select), &select.name))
}

fn list(store: &Store, select: &Selection, partial: bool) -> Value {
    let items = store.objects(&select.resource).into_iter().filter(|object| select.matches(object));
    let mut list = Value::Object(Default::default());
    list["kind"] = "List".into();
    list["apiVersion"] = "v1".into();
    list["metadata"] = Value::Object(Default::default());
    list["metadata"]["resourceVersion"] = store.version().to_string().into();
    list["items"] = items.map(|object| if partial { metadata_only(object) } else { object }).collect();
    list
}

fn create(store: &mut Store, select: &Selection, mut object: Value) -> Result<Value, ApiError> {
    if text(&object, &["metadata", "name"]).is_empty() {
        let name = format!("{}{:05}", text(&object, &["metadata", "generateName"]), store.version() + 1);
        set(&mut object, &["metadata", "name"], name.into());
    }
    if !select.namespace.is_empty() {
        set(&mut object, &["metadata", "namespace"], select.namespace.clone().into());
    }
    let name = text(&object, &["metadata", "name"]);
    if store.get(&select.resource, &select.namespace, name).is_some() {
        return Err(ApiError::already_exists(&group_resource(select), name));
    }
    Ok(store.put(&select.resource, object))
}

/// Binding sets the node, an account's tokens are named after it; everything else is accepted without effect.
fn subresource(store: &mut Store, select: &Selection, body: Value) -> Result<Value, ApiError> {
    let mut object = find(store, select)?;
    if select.subresource == "binding" {
        set(&mut object, &["spec", "nodeName"], text(&body, &["target", "name"]).into());
        store.put(&select.resource, object);
    } else if select.subresource == "eviction" {
        store.remove(&select.resource, &select.namespace, &select.name);
    } else if select.subresource == "token" {
        let mut issued = body;
        set(&mut issued, &["status", "token"], format!("token of {}", select.name).into());
        set(&mut issued, &["status", "expirationTimestamp"], "2099-01-01T00:00:00Z".into());
        return Ok(issued);
    }
    let mut status = Value::Object(Default::default());
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    status["status"] = "Success".into();
    Ok(status)
}

fn update(store: &mut Store, select: &Selection, object: Value) -> Result<Value, ApiError> {
    let former = find(store, select)?;
    refuse_stale(select, &former, &object)?;
    if select.subresource == "scale" {
        let mut next = former.clone();
        set(&mut next, &["spec", "replicas"], object["spec"]["replicas"].clone());
        return if next == former { Ok(former) } else { finish_update(store, select, next) };
    }
    let mut next = if select.subresource == "status" { former.clone() } else { object.clone() };
    let status = if select.subresource == "status" { &object } else { &former };
    if let Some(status) = status.get("status") {
        next["status"] = status.clone();
    }
    // As with most kinds: a write of the status keeps the spec, not the annotations.
    if let (Some(annotations), "status") = (object["metadata"].get("annotations"), select.subresource.as_str()) {
        next["metadata"]["annotations"] = annotations.clone();
    }
    if next == former { Ok(former) } else { finish_update(store, select, next) }
}

/// Refuses a write about another state of the object than there is.
fn refuse_stale(select: &Selection, former: &Value, written: &Value) -> Result<(), ApiError> {
    let asked = text(written, &["metadata", "resourceVersion"]);
    if asked.is_empty() || asked == text(former, &["metadata", "resourceVersion"]) {
        return Ok(());
    }
    Err(ApiError::modified(&group_resource(select), &select.name))
}

fn patch(store: &mut Store, select: &Selection, patch: Value) -> Result<Value, ApiError> {
    let former = match find(store, select) {
        Ok(former) => former,
        // Only apply creates; a patch that names its kind is taken for one.
        Err(_) if patch.get("kind").is_some() => return Ok(store.put(&select.resource, patch)),
        Err(error) => return Err(error),
    };
    let uid = text(&patch, &["metadata", "uid"]);
    if !uid.is_empty() && uid != text(&former, &["metadata", "uid"]) {
        return Err(ApiError::conflict(&group_resource(select), &select.name, "Precondition failed"));
    }
    refuse_stale(select, &former, &patch)?;
    let mut next = former.clone();
    merge(&mut next, &patch);
    if next == former { Ok(former) } else { finish_update(store, select, next) }
}

/// The directive of strategic patches that takes values out of a list.
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merges as RFC 7386 does; good enough for strategic patches that touch no list but to take values out.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Default::default());
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE_FROM) {
            let gone = value.as_array().map_or(&[][..], Vec::as_slice);
            if let Some(kept) = target.get_mut(list).and_then(Value::as_array_mut) {
                kept.retain(|item| !gone.contains(item));
            }
        } else if value.is_null() {
            if let Some(map) = target.as_object_mut() {
                map.remove(key);
            }
        } else {
            merge(&mut target[key], value);
        }
    }
}

/// Stores an object, or removes it when it is being deleted and nothing holds it any more.
fn finish_update(store: &mut Store, select: &Selection, object: Value) -> Result<Value, ApiError> {
    let deleting = !text(&object, &["metadata", "deletionTimestamp"]).is_empty();
    let stored = store.put(&select.resource, object);
    if deleting && !is_held(&stored) {
        store.remove(&select.resource, &select.namespace, &select.name);
    }
    Ok(stored)
}

fn is_held(object: &Value) -> bool {
    let finalizers = object.get("metadata").and_then(|meta| meta.get("finalizers")).and_then(Value::as_array);
    finalizers.is_some_and(|list| !list.is_empty())
}

fn delete(store: &mut Store, select: &Selection, options: &Value) -> Result<Value, ApiError> {
    if select.name.is_empty() {
        for object in store.objects(&select.resource).into_iter().filter(|object| select.matches(object)) {
            let (namespace, name) = (text(&object, &["metadata", "namespace"]), text(&object, &["metadata", "name"]));
            store.remove(&select.resource, namespace, name);
        }
        return Ok(list(store, select, false));
    }
    let mut object = find(store, select)?;
    let uid = text(options, &["preconditions", "uid"]);
    if !uid.is_empty() && uid != text(&object, &["metadata", "uid"]) {
        return Err(ApiError::conflict(&group_resource(select), &select.name, "Precondition failed: UID"));
    }
    if is_held(&object) {
        set(&mut object, &["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
        return Ok(store.put(&select.resource, object));
    }
    Ok(store.remove(&select.resource, &select.namespace, &select.name).unwrap_or(object))
}
