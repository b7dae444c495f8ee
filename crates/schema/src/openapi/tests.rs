//! Documents against upstream's, where those are at hand.

use std::collections::BTreeSet;

use api_machinery::reflect::Field;
use api_machinery::reflect::Shape;
use serde_json::{Map, json};

use super::*;

const ALL: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

fn table<T: Field>() -> &'static StructType {
    match T::shape() {
        Shape::Struct(table) => table,
        _ => panic!("not a struct"),
    }
}

fn resource(
    group: &'static str,
    kind: &'static str,
    name: &'static str,
    namespaced: bool,
    table: &'static StructType,
) -> Resource<'static> {
    Resource {
        gvk: GroupVersionKind::new(group, "v1", kind),
        group,
        version: "v1",
        name,
        parent_kind: kind,
        subresource: "",
        namespaced,
        verbs: ALL.into_iter().filter(|verb| kind != "Namespace" || *verb != "deletecollection").collect(),
        model: Some(Model::Table(table)),
    }
}

fn resources() -> Vec<Resource<'static>> {
    use api_types::{apps_v1, batch_v1, core_v1, networking_v1, rbac_v1, storage_v1};
    vec![
        resource("", "Pod", "pods", true, table::<core_v1::Pod>()),
        resource("", "Service", "services", true, table::<core_v1::Service>()),
        resource("", "ConfigMap", "configmaps", true, table::<core_v1::ConfigMap>()),
        resource("", "Secret", "secrets", true, table::<core_v1::Secret>()),
        resource("", "Node", "nodes", false, table::<core_v1::Node>()),
        resource("", "Namespace", "namespaces", false, table::<core_v1::Namespace>()),
        resource("", "Event", "events", true, table::<core_v1::Event>()),
        resource(
            "",
            "PersistentVolumeClaim",
            "persistentvolumeclaims",
            true,
            table::<core_v1::PersistentVolumeClaim>(),
        ),
        resource("", "PersistentVolume", "persistentvolumes", false, table::<core_v1::PersistentVolume>()),
        resource("apps", "Deployment", "deployments", true, table::<apps_v1::Deployment>()),
        resource("apps", "StatefulSet", "statefulsets", true, table::<apps_v1::StatefulSet>()),
        resource("apps", "DaemonSet", "daemonsets", true, table::<apps_v1::DaemonSet>()),
        resource("batch", "CronJob", "cronjobs", true, table::<batch_v1::CronJob>()),
        resource("networking.k8s.io", "Ingress", "ingresses", true, table::<networking_v1::Ingress>()),
        resource(
            "networking.k8s.io",
            "NetworkPolicy",
            "networkpolicies",
            true,
            table::<networking_v1::NetworkPolicy>(),
        ),
        resource("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false, table::<rbac_v1::ClusterRole>()),
        resource("storage.k8s.io", "StorageClass", "storageclasses", false, table::<storage_v1::StorageClass>()),
    ]
}

fn golden(name: &str) -> Option<Value> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/api/openapi").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => Some(serde_json::from_str(&text).unwrap()),
        Err(_) => {
            println!("skipped: no golden document at {}", path.display());
            None
        }
    }
}

/// What is compared: no descriptions, which are our own words, and no media type that is off by default.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, value)| {
                let is_description = name.as_str() == "description" && value.is_string();
                let is_off = name.contains("cbor") || name.as_str() == "x-kubernetes-unions";
                // "granular" is said of some maps, and true of all others.
                !is_description && !is_off && **value != json!("granular")
            });
            Value::Object(kept.map(|(name, value)| (name.clone(), comparable(value))).collect())
        }
        Value::Array(list) => list.iter().filter(|item| !is_noise(item)).map(comparable).collect(),
        other => other.clone(),
    }
}

fn is_noise(item: &Value) -> bool {
    item.as_str().is_some_and(|text| text.contains("cbor")) || item.get("name") == Some(&json!("shardSelector"))
}

/// Differences of the entries that both have, as `name: ours != theirs`.
fn differences(ours: &Map<String, Value>, theirs: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, mine) in ours {
        match theirs.get(name) {
            None => found.push(format!("{name}: not upstream's")),
            Some(other) => compare(name, &comparable(mine), &comparable(other), &mut found),
        }
    }
    found
}

fn compare(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let absent = Value::Null;
                let (a, b) = (a.get(name).unwrap_or(&absent), b.get(name).unwrap_or(&absent));
                compare(&format!("{path}.{name}"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: {ours} != {theirs}")),
    }
}

#[test]
fn models_are_upstreams() {
    let resources = resources();
    let version_of = |resource: &Resource<'_>| (resource.group.to_owned(), resource.version.to_owned());
    let versions: BTreeSet<(String, String)> = resources.iter().map(version_of).collect();
    for (group, version) in versions {
        let file = match group.as_str() {
            "" => "v3/api__v1_openapi.json".to_owned(),
            group => format!("v3/apis__{group}__{version}_openapi.json"),
        };
        let Some(golden) = golden(&file) else { return };
        let mine: Vec<Resource<'_>> = resources
            .iter()
            .filter(|resource| version_of(resource) == (group.clone(), version.clone()))
            .cloned()
            .collect();
        let document = version_document(&group, &version, &mine);
        let empty = Map::new();
        let models = |document: &Value| document["components"]["schemas"].as_object().unwrap_or(&empty).clone();
        let mut found = differences(&models(&document), &models(&golden));
        // Upstream wraps a reference only to hang a description on it, and this one field has none.
        found.retain(|text| !text.contains(".IngressRule.properties.http."));
        assert!(found.is_empty(), "{file}: {} differences\n{}", found.len(), found.join("\n"));
    }
}

#[test]
fn swagger_models_are_upstreams() {
    let Some(golden) = golden("swagger.json") else { return };
    let document = swagger(&resources());
    let models = |document: &Value| document["definitions"].as_object().cloned().unwrap_or_default();
    let mut found = differences(&models(&document), &models(&golden));
    // Options and events are listed for every version that is served: here few, there all.
    found.retain(|text| !text.contains(".DeleteOptions.x-") && !text.contains(".WatchEvent.x-"));
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

#[test]
fn operations_are_upstreams() {
    for (group, file) in [("", "v3/api__v1_openapi.json"), ("apps", "v3/apis__apps__v1_openapi.json")] {
        let Some(golden) = golden(file) else { return };
        let mine: Vec<Resource<'_>> = resources().into_iter().filter(|resource| resource.group == group).collect();
        let document = version_document(group, "v1", &mine);
        for (path, item) in document["paths"].as_object().unwrap() {
            let theirs = &golden["paths"][path];
            assert!(theirs.is_object(), "{path} is not upstream's");
            for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters") {
                for key in
                    ["operationId", "tags", "x-kubernetes-action", "x-kubernetes-group-version-kind", "requestBody"]
                {
                    let ours = comparable(&operation[key]);
                    assert_eq!(ours, comparable(&theirs[method][key]), "{path} {method} {key}");
                }
            }
        }
    }
}

#[test]
fn custom_resources_are_published() {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "nullable": true, "default": 1},
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                }
            }
        }
    });
    let crontabs = Resource {
        gvk: GroupVersionKind::new("stable.example.com", "v1", "CronTab"),
        model: Some(Model::Custom { name: "com.example.stable.v1.CronTab", schema: &schema }),
        ..resource("stable.example.com", "CronTab", "crontabs", true, table::<api_machinery::meta::ObjectMeta>())
    };
    let document = version_document("stable.example.com", "v1", std::slice::from_ref(&crontabs));
    let model = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(model["properties"]["spec"]["properties"]["size"]["nullable"], json!(true));
    assert_eq!(model["x-kubernetes-group-version-kind"][0]["kind"], json!("CronTab"));
    let path = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
    assert_eq!(document["paths"][path]["get"]["operationId"], json!("readStableExampleComV1NamespacedCronTab"));
    let swagger = swagger(&[crontabs]);
    let old = &swagger["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"]["properties"];
    assert_eq!(old["size"], json!({"type": "integer"}));
    assert_eq!(old["port"], json!({"x-kubernetes-int-or-string": true}));
    assert!(swagger["definitions"]["com.example.stable.v1.CronTabList"].is_object());
}
