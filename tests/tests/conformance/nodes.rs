//! Nodes, leases, and classes of the cluster.

use serde_json::json;

use crate::harness::{conform, patch, text};
use crate::lifecycle::Lifecycle;

#[test]
fn minimum_number_of_nodes() {
    conform(async |cx| {
        let nodes = cx.items("/api/v1/nodes").await;
        let usable = nodes.iter().filter(|node| {
            let conditions = node["status"]["conditions"].as_array();
            let ready = conditions.into_iter().flatten().any(|own| own["type"] == "Ready" && own["status"] == "True");
            ready && node["spec"]["taints"].is_null() && node["spec"]["unschedulable"].is_null()
        });
        assert!(usable.count() >= 2);
    });
}

#[test]
fn lease_api_is_available() {
    conform(async |cx| {
        let namespace = &cx.namespace("leases").await;
        let spec = json!({"holderIdentity": "holder", "leaseDurationSeconds": 30, "leaseTransitions": 0,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:05.000000Z"});
        let leases = Lifecycle {
            group: "coordination.k8s.io",
            resource: "leases",
            namespace,
            object: json!({"spec": spec}),
            status: None,
        };
        leases.run(cx).await;
        let path = leases.collection();
        let made = cx.create(&path, &json!({"metadata": {"name": "lease"}, "spec": spec})).await.ok();
        assert_eq!(made["spec"], spec);
        let mut changed = made;
        changed["spec"] = json!({"holderIdentity": "holder2", "leaseDurationSeconds": 60, "leaseTransitions": 1,
            "acquireTime": "2026-01-01T01:00:00.000000Z", "renewTime": "2026-01-01T01:00:05.000000Z"});
        cx.replace(&format!("{path}/lease"), &changed).await.ok();
        assert_eq!(cx.get(&format!("{path}/lease")).await.ok()["spec"], changed["spec"]);
        let body = json!({"spec": {"leaseDurationSeconds": 61}});
        let patched = cx.patch(&format!("{path}/lease"), patch::STRATEGIC, &body).await.ok();
        assert_eq!(patched["spec"]["leaseDurationSeconds"], 61);
        assert_eq!(patched["spec"]["holderIdentity"], "holder2");
    });
}

#[test]
fn node_resource_lifecycle() {
    conform(async |cx| {
        let object = json!({"metadata": {}, "status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": "Unknown"}]}});
        let status = Some(json!({"conditions": [{"type": "Ready", "status": "Unknown", "reason": "E2E"}]}));
        Lifecycle { group: "", resource: "nodes", namespace: "", object, status }.run(cx).await;
    });
}

#[test]
fn verify_priority_class_endpoints() {
    conform(async |cx| {
        let object = json!({"value": 100});
        let (group, resource) = ("scheduling.k8s.io", "priorityclasses");
        let classes = Lifecycle { group, resource, namespace: "", object, status: None };
        classes.run(cx).await;
        let path = classes.collection();
        let mut made = cx.create(&path, &json!({"metadata": {"name": "p1"}, "value": 1})).await.ok();
        made["value"] = 2.into();
        let refused = cx.replace(&format!("{path}/p1"), &made).await.refused(422);
        assert!(refused.contains("may not be changed in an update"), "{refused}");
        cx.merge(&format!("{path}/p1"), &json!({"value": 10})).await.refused(422);
        let described = cx.merge(&format!("{path}/p1"), &json!({"description": "d"})).await.ok();
        assert_eq!(text(&described["description"]), "d");
    });
}
