//! A store that another release wrote: what lies there in an older version of its kind is shown in the current one, and
//! written back as it is stored now by the first write.

use api_machinery::protobuf;
use kinds::rules::Rules;
use serde_json::{Value, json};
use storage::{Expect, Write};

use super::harness::Api;

/// An object as an older release stored it, and as it lies there after a label was put on it, metadata aside.
struct Case {
    /// Group, version and plural name in the API.
    place: [&'static str; 3],
    stored: Value,
    expected: Value,
    /// Annotations that came of fields.
    annotations: Value,
}

fn case(place: [&'static str; 3], stored: Value, expected: Value) -> Case {
    Case { place, stored, expected, annotations: Value::Null }
}

fn cases() -> Vec<Case> {
    vec![
        ingress("extensions/v1beta1"),
        ingress("networking.k8s.io/v1beta1"),
        case(
            ["policy", "v1", "poddisruptionbudgets"],
            json!({"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "spec": {"minAvailable": 1, "selector": {}}}),
            json!({"spec": {"minAvailable": 1, "selector": {"matchExpressions": [
                {"key": "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match", "operator": "Exists"}
            ]}}}),
        ),
        case(
            ["discovery.k8s.io", "v1", "endpointslices"],
            json!({"apiVersion": "discovery.k8s.io/v1beta1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": [],
                "endpoints": [{"addresses": ["10.1.0.1"], "nodeName": "n1", "hints": {"forZones": [{"name": "a"}]},
                    "topology": {"kubernetes.io/hostname": "n1", "topology.kubernetes.io/zone": "a", "rack": "r"}}]}),
            json!({"addressType": "IPv4", "ports": null,
                "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {}, "nodeName": "n1", "zone": "a",
                    "hints": {"forZones": [{"name": "a"}]}, "deprecatedTopology": {"rack": "r"}}]}),
        ),
        case(
            ["node.k8s.io", "v1", "runtimeclasses"],
            json!({"apiVersion": "node.k8s.io/v1alpha1", "kind": "RuntimeClass", "spec": {"runtimeHandler": "h"}}),
            json!({"handler": "h"}),
        ),
        case(
            ["rbac.authorization.k8s.io", "v1", "rolebindings"],
            json!({"apiVersion": "rbac.authorization.k8s.io/v1alpha1", "kind": "RoleBinding",
                "subjects": [{"kind": "User", "name": "*"}, {"kind": "ServiceAccount", "name": "a", "namespace": "b"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}}),
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"},
                {"kind": "ServiceAccount", "name": "a", "namespace": "b"},
            ]}),
        ),
        priority_level("v1beta2", json!({"assuredConcurrencyShares": 5}), 5, Value::Null),
        priority_level("v1beta3", json!({"nominalConcurrencyShares": 0}), 30, Value::Null),
        priority_level(
            "v1beta3",
            json!({"nominalConcurrencyShares": 0}),
            0,
            json!({"flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""}),
        ),
        autoscaler(),
        deployment(),
    ]
}

fn ingress(version: &str) -> Case {
    case(
        ["networking.k8s.io", "v1", "ingresses"],
        json!({"apiVersion": version, "kind": "Ingress", "spec": {
            "backend": {"serviceName": "a", "servicePort": 80},
            "rules": [{"host": "h", "http": {"paths": [{"path": "/", "backend": {"serviceName": "b", "servicePort": "http"}}]}}],
        }}),
        json!({
            "spec": {
                "defaultBackend": {"service": {"name": "a", "port": {"number": 80}}},
                "rules": [{"host": "h", "http": {"paths": [{
                    "path": "/", "pathType": "ImplementationSpecific",
                    "backend": {"service": {"name": "b", "port": {"name": "http"}}},
                }]}}],
            },
            "status": {"loadBalancer": {}},
        }),
    )
}

fn priority_level(version: &str, shares: Value, expected: i32, annotations: Value) -> Case {
    let mut limited = json!({"limitResponse": {"type": "Reject"}});
    let mut stored_limits = limited.clone();
    stored_limits.as_object_mut().expect("an object").extend(shares.as_object().expect("an object").clone());
    limited["nominalConcurrencyShares"] = expected.into();
    limited["lendablePercent"] = 0.into();
    let stored = json!({
        "apiVersion": format!("flowcontrol.apiserver.k8s.io/{version}"), "kind": "PriorityLevelConfiguration",
        "metadata": {"annotations": annotations}, "spec": {"type": "Limited", "limited": stored_limits},
    });
    let expected = json!({"spec": {"type": "Limited", "limited": limited}, "status": {}});
    case(["flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"], stored, expected)
}

fn autoscaler() -> Case {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let utilization = json!({"type": "Utilization", "averageUtilization": 50});
    case(
        ["autoscaling", "v2", "horizontalpodautoscalers"],
        json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}}),
        json!({
            "spec": {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}]},
            "status": {"desiredReplicas": 0, "currentMetrics": null},
        }),
    )
}

fn deployment() -> Case {
    let pods = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": pods});
    let mut stored = spec.clone();
    stored["rollbackTo"] = json!({"revision": 4});
    // Of the defaults of a pod only what the API adds is of interest here, and that is tested elsewhere.
    Case {
        annotations: json!({"deprecated.deployment.rollback.to": "4"}),
        ..case(
            ["apps", "v1", "deployments"],
            json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "spec": stored}),
            json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}}),
        )
    }
}

/// Whether all that is expected is there; what is there beside it is a default.
fn holds(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| holds(found.get(key).unwrap_or(&Value::Null), value))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| holds(found, expected))
        }
        (found, expected) => found == expected,
    }
}

impl Case {
    /// Where the object lies in the store, and its path in the API.
    fn places(&self, rules: &dyn Rules) -> (String, String) {
        let (info, [group, version, resource]) = (rules.info(), self.place);
        let prefix = info.storage.expect("it is stored").prefix;
        let namespace = if info.namespaced { "default/" } else { "" };
        let scope = if info.namespaced { "namespaces/default/" } else { "" };
        (format!("/registry/{prefix}/{namespace}x"), format!("/apis/{group}/{version}/{scope}{resource}/x"))
    }

    async fn play(&self, api: &Api) {
        let [group, version, resource] = self.place;
        let rules = kinds::find(group, version, resource).expect("a kind");
        let (key, path) = self.places(rules);
        let mut object = self.stored.clone();
        let meta = object.as_object_mut().expect("an object").entry("metadata").or_insert(json!({}));
        (meta["name"], meta["uid"], meta["creationTimestamp"]) =
            ("x".into(), "u".into(), "2021-01-01T00:00:00Z".into());
        if rules.info().namespaced {
            meta["namespace"] = "default".into();
        }
        let backend = api.server.cx().backend();
        backend.txn(&key.clone().into(), Expect::Any, Write::put(object.to_string())).await.expect("a write");

        let shown = api.get(&path).await;
        assert_eq!(shown.code, 200, "{path}: {}", shown.text);
        assert!(holds(&shown.json(), &self.expected), "{path} is read as {}", shown.text);
        let labelled = api.patch("merge-patch", &path, r#"{"metadata":{"labels":{"l":"v"}}}"#).await;
        assert_eq!(labelled.code, 200, "{path}: {}", labelled.text);

        let value = backend.get(&key.into()).await.expect("a read").kv.expect("it is there").value;
        let envelope = protobuf::open(&value).expect("protobuf");
        let stored_as = (envelope.api_version.as_str(), envelope.kind.as_str());
        assert_eq!(stored_as, (rules.info().api_version().as_str(), rules.info().kind), "{path}");
        let mut stored = rules.new_object();
        protobuf::decode(envelope.raw, stored.as_reflect_mut()).expect("of that kind");
        assert!(holds(&stored.to_value(), &self.expected), "{path} is stored as {}", stored.to_json());
        assert_eq!(stored.meta().labels["l"], "v", "{path}");
        let annotations: Value = serde_json::to_value(&stored.meta().annotations).expect("a map");
        let expected = if self.annotations.is_null() { json!({}) } else { self.annotations.clone() };
        assert_eq!(annotations, expected, "{path}");
        backend.txn(&self.places(rules).0.into(), Expect::Any, Write::Delete).await.expect("a write");
    }
}

#[tokio::test(start_paused = true)]
async fn what_older_releases_stored_is_read_and_written_back_in_the_current_version() {
    let api = Api::start().await;
    for case in cases() {
        case.play(&api).await;
    }
}

/// Upstream stores definitions in a version that it serves no more, as JSON. Without them, no custom object would be there.
#[tokio::test(start_paused = true)]
async fn definitions_that_upstream_stored_are_in_service_and_stay_as_they_are() {
    const DEFINITION: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/shirts.example.com";
    const SHIRT: &str = "/registry/example.com/shirts/default/s";
    let names = json!({"plural": "shirts", "singular": "shirt", "kind": "Shirt", "listKind": "ShirtList"});
    let color = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}});
    let is = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason});
    let mut definition = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1",
        "metadata": {"name": "shirts.example.com", "uid": "u", "generation": 1, "creationTimestamp": "2025-02-21T12:38:19Z"},
        "spec": {
            "group": "example.com", "version": "v1", "names": names, "scope": "Namespaced",
            "validation": {"openAPIV3Schema": color},
            "versions": [{"name": "v1", "served": true, "storage": true}, {"name": "v2", "served": true, "storage": false}],
            "additionalPrinterColumns": [{"name": "Color", "type": "string", "JSONPath": ".spec.color"}],
            "conversion": {"strategy": "None"}, "preserveUnknownFields": false,
        },
        "status": {
            "conditions": [is("NamesAccepted", "NoConflicts"), is("Established", "InitialNamesAccepted")],
            "acceptedNames": names, "storedVersions": ["v1"],
        },
    });
    let shirt = json!({
        "apiVersion": "example.com/v1", "kind": "Shirt", "spec": {"color": "red"},
        "metadata": {"name": "s", "namespace": "default", "uid": "s", "creationTimestamp": "2025-02-21T12:38:19Z"},
    });
    let api = Api::start().await;
    let backend = api.server.cx().backend();
    for (key, value) in [(DEFINITION, &definition), (SHIRT, &shirt)] {
        backend.txn(&key.into(), Expect::Any, Write::put(format!("{value}\n"))).await.expect("a write");
    }
    let shirts = "/apis/example.com/v2/namespaces/default/shirts/s";
    while api.get(shirts).await.code != 200 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(api.get(shirts).await.json()["spec"], json!({"color": "red"}));

    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shirts.example.com";
    let shown = api.get(path).await.json();
    for version in shown["spec"]["versions"].as_array().expect("versions") {
        assert_eq!(version["schema"]["openAPIV3Schema"], color);
        assert_eq!(version["additionalPrinterColumns"][0]["jsonPath"], ".spec.color");
    }
    let labelled = api.patch("merge-patch", path, r#"{"metadata":{"labels":{"l":"v"}}}"#).await;
    assert_eq!(labelled.code, 200, "{}", labelled.text);
    let value = backend.get(&DEFINITION.into()).await.expect("a read").kv.expect("it is there").value;
    let stored: Value = serde_json::from_slice(&value).expect("JSON");
    definition["metadata"]["labels"] = json!({"l": "v"});
    assert!(holds(&stored, &definition), "stored as {stored}");
    assert_eq!(stored["spec"], definition["spec"], "and nothing is said twice");
}
