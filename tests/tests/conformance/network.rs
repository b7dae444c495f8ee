//! Services, endpoints and ingresses as objects.

use api_machinery::value::Value;
use serde_json::json;

use crate::custom_resources::condition;
use crate::harness::{Cx, conform, name_of, patch, text};
use crate::lifecycle::{Lifecycle, label};

const SLICES: &str = "/apis/discovery.k8s.io/v1";

async fn slices_of(cx: &Cx, ns: &str, service: &str) -> Vec<Value> {
    let selector = format!("labelSelector=kubernetes.io/service-name%3D{service}");
    cx.items(&format!("{SLICES}/namespaces/{ns}/endpointslices?{selector}")).await
}

#[test]
fn kubernetes_default_endpoints_and_endpoint_slices() {
    conform(async |cx| {
        let path = "/api/v1/namespaces/default/endpoints/kubernetes";
        let endpoints = cx.until(path, |object| object["subsets"][0]["addresses"].is_array()).await;
        let slices = slices_of(cx, "default", "kubernetes").await;
        assert!(!slices.is_empty());
        let addresses = |list: &Value| list.as_array().map_or(0, Vec::len);
        let of_slices: usize = slices.iter().map(|slice| addresses(&slice["endpoints"])).sum();
        assert_eq!(of_slices, addresses(&endpoints["subsets"][0]["addresses"]));
        assert_eq!(slices[0]["ports"][0]["name"], "https");
    });
}

#[test]
fn kubernetes_service() {
    conform(async |cx| {
        let service = cx.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
        assert_eq!(service["spec"]["ports"][0]["port"], 443);
    });
}

#[test]
fn find_kubernetes_service_in_default_namespace() {
    conform(async |cx| {
        let all = cx.items("/api/v1/services").await;
        let found = |own: &Value| name_of(own) == "kubernetes" && text(&own["metadata"]["namespace"]) == "default";
        assert!(all.iter().any(found));
    });
}

/// Neither endpoints nor slices outlive a service that selects nothing.
async fn empty_service(cx: &Cx) {
    let ns = cx.namespace("empty").await;
    let services = format!("/api/v1/namespaces/{ns}/services");
    let service = json!({"metadata": {"name": "example-empty-selector"}, "spec": {
        "selector": {"does-not-match-anything": "endpoints-and-endpoint-slices-should-still-be-created"},
        "ports": [{"name": "example", "port": 80, "protocol": "TCP"}]}});
    cx.create(&services, &service).await.ok();
    let endpoints = format!("/api/v1/namespaces/{ns}/endpoints/example-empty-selector");
    let made = cx.until(&endpoints, |_| true).await;
    assert!(made["subsets"].is_null() || made["subsets"] == json!([]));
    let slices = cx
        .eventually("one slice", async || {
            let slices = slices_of(cx, &ns, "example-empty-selector").await;
            (slices.len() == 1).then_some(slices)
        })
        .await;
    assert_eq!(slices[0]["endpoints"].as_array().map_or(0, Vec::len), 0);
    let owner = &slices[0]["metadata"]["ownerReferences"][0];
    assert_eq!((text(&owner["kind"]), &owner["controller"]), ("Service", &true.into()));
    assert_eq!(
        slices[0]["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
    cx.delete(&format!("{services}/example-empty-selector")).await.ok();
    cx.gone(&endpoints).await;
    cx.eventually("the end of the slices", async || {
        slices_of(cx, &ns, "example-empty-selector").await.is_empty().then_some(())
    })
    .await;
}

#[test]
fn endpoint_slice_of_an_empty_service() {
    conform(async |cx| empty_service(cx).await);
}

#[test]
fn endpoints_of_an_empty_service() {
    conform(async |cx| empty_service(cx).await);
}

#[test]
fn endpoint_slice_api() {
    conform(async |cx| {
        let namespace = &cx.namespace("slices").await;
        let object = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4", "5.6.7.8"]}]});
        let (group, resource) = ("discovery.k8s.io", "endpointslices");
        Lifecycle { group, resource, namespace, object, status: None }.run(cx).await;
    });
}

#[test]
fn endpoint_slice_mirroring() {
    conform(async |cx| {
        let ns = cx.namespace("mirrored").await;
        let service = json!({"metadata": {"name": "example-custom-endpoints"}, "spec": {
            "ports": [{"name": "example", "port": 80, "protocol": "TCP"}]}});
        cx.create(&format!("/api/v1/namespaces/{ns}/services"), &service).await.ok();
        let path = format!("/api/v1/namespaces/{ns}/endpoints");
        let subsets = |address: &str| json!([{"addresses": [{"ip": address}], "ports": [{"name": "example", "port": 80, "protocol": "TCP"}]}]);
        let endpoints = json!({"metadata": {"name": "example-custom-endpoints"}, "subsets": subsets("10.1.2.3")});
        let mut made = cx.create(&path, &endpoints).await.ok();
        let mirrored = async |address: &str| {
            let slices = slices_of(cx, &ns, "example-custom-endpoints").await;
            let [slice] = slices.as_slice() else { return None };
            (slice["endpoints"][0]["addresses"] == json!([address])).then(|| slice.clone())
        };
        let slice = cx.eventually("the mirror", async || mirrored("10.1.2.3").await).await;
        assert_eq!(slice["ports"][0]["port"], 80);
        assert_eq!(
            slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
            "endpointslicemirroring-controller.k8s.io"
        );
        made["subsets"] = subsets("10.2.3.4");
        cx.replace(&format!("{path}/example-custom-endpoints"), &made).await.ok();
        cx.eventually("the new mirror", async || mirrored("10.2.3.4").await).await;
        cx.delete(&format!("{path}/example-custom-endpoints")).await.ok();
        cx.eventually("the end of the mirror", async || {
            slices_of(cx, &ns, "example-custom-endpoints").await.is_empty().then_some(())
        })
        .await;
    });
}

#[test]
fn endpoint_resource_lifecycle() {
    conform(async |cx| {
        let ns = cx.namespace("endpoints").await;
        let path = format!("/api/v1/namespaces/{ns}/endpoints");
        let selected = format!("{path}?labelSelector=test-endpoint-static%3Dtrue");
        let mut watch = cx.watch(&selected).await;
        let object = json!({"metadata": {"name": "testservice", "labels": {"test-endpoint-static": "true"}},
            "subsets": [{"addresses": [{"ip": "10.0.0.24"}], "ports": [{"name": "http", "port": 80}]}]});
        let mut made = cx.create(&path, &object).await.ok();
        watch.until("ADDED", |object| name_of(object) == "testservice").await;
        made["metadata"]["labels"]["test-service"] = "updated".into();
        cx.replace(&format!("{path}/testservice"), &made).await.ok();
        watch.until("MODIFIED", |object| object["metadata"]["labels"]["test-service"] == "updated").await;
        let body = json!({"metadata": {"labels": {"test-service": "patched"}}, "subsets": [
            {"addresses": [{"ip": "10.0.0.25"}], "ports": [{"name": "http-test", "port": 8080}]}]});
        let patched = cx.patch(&format!("{path}/testservice"), patch::STRATEGIC, &body).await.ok();
        assert_eq!(
            patched["subsets"],
            json!([{"addresses": [{"ip": "10.0.0.25"}],
            "ports": [{"name": "http-test", "port": 8080, "protocol": "TCP"}]}])
        );
        watch.until("MODIFIED", |object| object["metadata"]["labels"]["test-service"] == "patched").await;
        cx.delete(&selected).await.ok();
        watch.until("DELETED", |object| name_of(object) == "testservice").await;
        assert!(!cx.exists(&format!("{path}/testservice")).await);
    });
}

#[test]
fn ingress_api() {
    conform(async |cx| {
        let namespace = &cx.namespace("ingresses").await;
        let backend = json!({"service": {"name": "default-backend", "port": {"number": 80}}});
        let object = json!({"spec": {"defaultBackend": backend, "rules": [{"host": "foo.bar.com", "http": {"paths": [
            {"path": "/", "pathType": "ImplementationSpecific", "backend": {"service":
                {"name": "test-backend", "port": {"number": 8080}}}}]}}]}});
        let status = Some(json!({"loadBalancer": {"ingress": [{"ip": "169.1.1.1"}]}}));
        Lifecycle { group: "networking.k8s.io", resource: "ingresses", namespace, object, status }.run(cx).await;
    });
}

#[test]
fn ingress_class_api() {
    conform(async |cx| {
        let object = json!({"spec": {"controller": "example.com/controller"}});
        let (group, resource) = ("networking.k8s.io", "ingressclasses");
        Lifecycle { group, resource, namespace: "", object, status: None }.run(cx).await;
    });
}

#[test]
fn network_policy_api() {
    conform(async |cx| {
        let namespace = &cx.namespace("policies").await;
        let object = json!({"spec": {"podSelector": {"matchLabels": {"pod": "a"}}, "policyTypes": ["Ingress"]}});
        let (group, resource) = ("networking.k8s.io", "networkpolicies");
        Lifecycle { group, resource, namespace, object, status: None }.run(cx).await;
    });
}

#[test]
fn service_complete_status_lifecycle() {
    conform(async |cx| {
        let ns = cx.namespace("services").await;
        let path = format!("/api/v1/namespaces/{ns}/services");
        let mut watch = cx.watch(&format!("{path}?labelSelector=test-service-static%3Dtrue")).await;
        let object = json!({"metadata": {"name": "test-service", "labels": {"test-service-static": "true"}},
            "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80, "targetPort": 80}]}});
        cx.create(&path, &object).await.ok();
        let own = format!("{path}/test-service");
        watch.until("ADDED", |object| name_of(object) == "test-service").await;
        let body = json!({"metadata": {"annotations": {"patchedstatus": "true"}},
            "status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}});
        let patched = cx.merge(&format!("{own}/status"), &body).await.ok();
        assert_eq!(patched["status"]["loadBalancer"]["ingress"][0]["ip"], "203.0.113.1");
        watch.until("MODIFIED", |object| object["metadata"]["annotations"]["patchedstatus"] == "true").await;
        let mut read = cx.get(&format!("{own}/status")).await.ok();
        read["status"]["conditions"] = json!([{"type": "StatusUpdate", "status": "True", "reason": "E2E",
            "message": "Set from a test", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let updated = cx.replace(&format!("{own}/status"), &read).await.ok();
        assert_eq!(condition(&updated, "StatusUpdate"), "True");
        watch.until("MODIFIED", |object| condition(object, "StatusUpdate") == "True").await;
        label(cx, &own, json!({"test-service": "patched"})).await;
        watch.until("MODIFIED", |object| object["metadata"]["labels"]["test-service"] == "patched").await;
        cx.delete(&own).await.ok();
        watch.until("DELETED", |object| name_of(object) == "test-service").await;
    });
}

#[test]
fn service_deletes_a_collection() {
    conform(async |cx| {
        let ns = cx.namespace("services").await;
        let path = format!("/api/v1/namespaces/{ns}/services");
        for (name, value) in [("a", "true"), ("b", "true"), ("c", "false")] {
            let object = json!({"metadata": {"name": format!("e2e-svc-{name}"), "labels": {"set": value}},
                "spec": {"ports": [{"port": 8091}]}});
            cx.create(&path, &object).await.ok();
        }
        cx.delete(&format!("{path}?labelSelector=set%3Dtrue")).await.ok();
        assert_eq!(cx.names(&path).await, ["e2e-svc-c"]);
    });
}
