//! Documents against upstream's, where those are at hand.

use std::collections::BTreeSet;

use api_machinery::object::Kind;
use api_machinery::reflect::{Field, Shape};
use serde_json::{Map, json};

use super::*;

const ALL: [&str; 8] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

fn table<T: Field>() -> &'static StructType {
    match T::shape() {
        Shape::Struct(table) => table,
        _ => panic!("not a struct"),
    }
}

/// The kinds whose deletion is said to answer with the object.
const RETURNING: [&str; 8] = [
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodTemplate",
    "ResourceQuota",
    "Service",
    "ServiceAccount",
    "StorageClass",
];

fn resource<T: Kind + Field>() -> Resource<'static> {
    let of = T::TYPE;
    let offered = |verb: &&str| of.kind != "Namespace" || *verb != "deletecollection";
    Resource {
        gvk: GroupVersionKind::new(of.group, of.version, of.kind),
        group: of.group,
        version: of.version,
        name: of.resource,
        parent_kind: of.kind,
        subresource: "",
        namespaced: of.namespaced,
        verbs: if of.kind.ends_with("Review") { vec!["create"] } else { ALL.into_iter().filter(offered).collect() },
        returns_deleted: RETURNING.contains(&of.kind),
        model: Some(Model::Table(table::<T>())),
    }
}

macro_rules! resources_of {
    ($($module:ident: $($kind:ident),*;)*) => {
        vec![$($(resource::<api_types::$module::$kind>()),*),*]
    };
}

fn resources() -> Vec<Resource<'static>> {
    resources_of! {
        core_v1: ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
            PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount;
        apps_v1: ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet;
        batch_v1: CronJob, Job;
        rbac_v1: ClusterRole, ClusterRoleBinding, Role, RoleBinding;
        discovery_v1: EndpointSlice;
        coordination_v1: Lease;
        scheduling_v1: PriorityClass;
        node_v1: RuntimeClass;
        policy_v1: PodDisruptionBudget;
        authentication_v1: SelfSubjectReview, TokenReview;
        authorization_v1: LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview;
        certificates_v1: CertificateSigningRequest;
        networking_v1: Ingress, IngressClass, NetworkPolicy;
        storage_v1: StorageClass;
        events_v1: Event;
        apiextensions_v1: CustomResourceDefinition;
    }
}

fn golden(name: &str) -> Value {
    test_facts::facts(&format!("openapi/{name}"))
}

/// What is compared: no descriptions, which are our own words, and no media type that is off by default.
fn comparable(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(name, value)| {
                let is_description = name.as_str() == "description" && value.is_string();
                // The documents at hand were made without the values of fields, which servers do tell.
                let is_off = name.contains("cbor")
                    || name.as_str() == "x-kubernetes-unions"
                    || (name.as_str() == "enum" && value.is_array());
                !is_description && !is_off
            });
            let mut kept: Map<String, Value> = kept.map(|(name, value)| (name.clone(), comparable(value))).collect();
            // A lone reference is wrapped only to hang a description on it, and we describe more fields.
            if let Some(Value::Array(wrapped)) = kept.get("allOf").cloned()
                && let [Value::Object(only)] = wrapped.as_slice()
            {
                kept.remove("allOf");
                kept.extend(only.clone());
            }
            Value::Object(kept)
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
    let mut all = Vec::new();
    for (group, version) in versions {
        let file = match group.as_str() {
            "" => "v3/api__v1_openapi.json".to_owned(),
            group => format!("v3/apis__{group}__{version}_openapi.json"),
        };
        let golden = golden(&file);
        let mine: Vec<Resource<'_>> = resources
            .iter()
            .filter(|resource| version_of(resource) == (group.clone(), version.clone()))
            .cloned()
            .collect();
        let document = version_document(&group, &version, &mine, Choices::Told);
        let empty = Map::new();
        let models = |document: &Value| document["components"]["schemas"].as_object().unwrap_or(&empty).clone();
        let found = differences(&models(&document), &models(&golden));
        all.extend(found.into_iter().map(|text| format!("{file}: {text}")));
    }
    assert!(all.is_empty(), "{} differences\n{}", all.len(), all.join("\n"));
}

#[test]
fn swagger_models_are_upstreams() {
    let golden = golden("swagger.json");
    let document = swagger(&resources(), Choices::Told).to_value();
    let models = |document: &Value| document["definitions"].as_object().cloned().unwrap_or_default();
    let mut found = differences(&models(&document), &models(&golden));
    // Options and events are listed for every version that is served: here few, there all.
    found.retain(|text| !text.contains(".DeleteOptions.x-") && !text.contains(".WatchEvent.x-"));
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}

#[test]
fn operations_are_upstreams() {
    let files = [
        ("", "v3/api__v1_openapi.json"),
        ("apps", "v3/apis__apps__v1_openapi.json"),
        ("rbac.authorization.k8s.io", "v3/apis__rbac.authorization.k8s.io__v1_openapi.json"),
        ("authorization.k8s.io", "v3/apis__authorization.k8s.io__v1_openapi.json"),
    ];
    for (group, file) in files {
        let golden = golden(file);
        let mine: Vec<Resource<'_>> = resources().into_iter().filter(|resource| resource.group == group).collect();
        let document = version_document(group, "v1", &mine, Choices::Told);
        for (path, item) in document["paths"].as_object().unwrap() {
            let theirs = &golden["paths"][path];
            assert!(theirs.is_object(), "{path} is not upstream's");
            assert_eq!(comparable(&item["parameters"]), comparable(&theirs["parameters"]), "{path}");
            for (method, operation) in item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters") {
                for key in [
                    "operationId",
                    "parameters",
                    "tags",
                    "x-kubernetes-action",
                    "x-kubernetes-group-version-kind",
                    "requestBody",
                ] {
                    let ours = comparable(&operation[key]);
                    assert_eq!(ours, comparable(&theirs[method][key]), "{path} {method} {key}");
                }
            }
        }
    }
}

/// Served kinds tell which values their fields have, and each path what all its operations have in common.
#[test]
fn documents_tell_values_and_what_is_common() {
    let pods = version_document("", "v1", &[resource::<api_types::core_v1::Pod>()], Choices::Told);
    let models = &pods["components"]["schemas"];
    let model = |name: &str| &models[format!("io.k8s.api.core.v1.{name}")];
    // The table has another order.
    assert_eq!(model("PodSpec")["properties"]["restartPolicy"]["enum"], json!(["Always", "Never", "OnFailure"]));
    let untold = version_document("", "v1", &[resource::<api_types::core_v1::Pod>()], Choices::Untold);
    let field = &untold["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["restartPolicy"];
    assert_eq!((&field["type"], &field["enum"]), (&json!("string"), &serde_json::Value::Null));
    let inlined = &model("EphemeralContainer")["properties"]["imagePullPolicy"]["enum"];
    assert_eq!(*inlined, json!(["Always", "IfNotPresent", "Never"]));
    assert_eq!(
        model("SeccompProfile")["x-kubernetes-unions"],
        json!([{"discriminator": "type", "fields-to-discriminateBy": {"localhostProfile": "LocalhostProfile"}}])
    );
    assert_eq!(
        model("PodSchedulingGroup")["x-kubernetes-unions"],
        json!([{"fields-to-discriminateBy": {"podGroupName": "PodGroupName"}}]),
        "no field chooses"
    );
    let claims = version_document("", "v1", &[resource::<api_types::core_v1::PersistentVolumeClaim>()], Choices::Told);
    let status = &claims["components"]["schemas"]["io.k8s.api.core.v1.PersistentVolumeClaimStatus"]["properties"];
    let modes = json!(["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]);
    assert_eq!((&status["accessModes"]["items"]["enum"], &status["accessModes"]["enum"]), (&modes, &json!(null)));
    let states = status["allocatedResourceStatuses"]["additionalProperties"]["enum"].as_array().map(Vec::len);
    assert_eq!(states, Some(5), "the values of entries stand with the entries");
    let names = |place: &Value| {
        let list = place["parameters"].as_array().cloned().unwrap_or_default();
        list.iter().map(|own| own["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let all = &pods["paths"]["/api/v1/pods"];
    let shared = "allowWatchBookmarks continue fieldSelector labelSelector limit pretty resourceVersion \
                  resourceVersionMatch sendInitialEvents shardSelector timeoutSeconds watch";
    assert_eq!((names(all).as_str(), names(&all["get"]).as_str()), (shared, ""), "one operation has all in common");
    let one = &pods["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"];
    assert_eq!(names(one), "name namespace pretty");
    assert_eq!(names(&one["put"]), "dryRun fieldManager fieldValidation");
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
        group: "stable.example.com",
        name: "crontabs",
        parent_kind: "CronTab",
        ..resource::<api_types::core_v1::ConfigMap>()
    };
    let document = version_document("stable.example.com", "v1", std::slice::from_ref(&crontabs), Choices::Told);
    let model = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
    assert_eq!(model["properties"]["spec"]["properties"]["size"]["nullable"], json!(true));
    assert_eq!(model["x-kubernetes-group-version-kind"][0]["kind"], json!("CronTab"));
    let path = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
    assert_eq!(document["paths"][path]["get"]["operationId"], json!("readStableExampleComV1NamespacedCronTab"));
    let types = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let patch = &document["paths"][path]["patch"];
    assert_eq!(
        types(&patch["requestBody"]["content"]),
        "application/apply-patch+yaml application/json-patch+json application/merge-patch+json",
        "clients that find strategic merge patches here would send one"
    );
    assert_eq!(types(&patch["responses"]["200"]["content"]), "application/json application/yaml");
    assert_eq!(document["info"]["title"], json!("Kubernetes CRD Swagger"));
    assert_eq!(types(&document["components"]), "schemas");
    assert_eq!(document["paths"].as_object().unwrap().len(), 3, "no document of what is served, no old watches");
    let swagger = swagger(&[crontabs], Choices::Told).to_value();
    let old = &swagger["definitions"]["com.example.stable.v1.CronTab"]["properties"]["spec"]["properties"];
    assert_eq!(old["size"], json!({"type": "integer"}));
    assert_eq!(old["port"], json!({"x-kubernetes-int-or-string": true}));
    assert!(swagger["definitions"]["com.example.stable.v1.CronTabList"].is_object());
}
