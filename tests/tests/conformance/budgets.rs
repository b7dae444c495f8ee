//! Pod disruption budgets.

use serde_json::json;

use crate::garbage_collection::template;
use crate::harness::{conform, patch};

fn budget(name: &str, label: &str) -> api_machinery::value::Value {
    json!({"metadata": {"name": name, "labels": {"testing": label}},
        "spec": {"minAvailable": "1%", "selector": {"matchLabels": {"app": "web"}}}})
}

#[test]
fn pod_disruption_budget_list_and_delete_collection() {
    conform(async |cx| {
        let (one, two) = (cx.namespace("budgets-1").await, cx.namespace("budgets-2").await);
        let path = |ns: &str| format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
        for (ns, name) in [(&one, "foo"), (&one, "foo2"), (&two, "foo")] {
            cx.create(&path(ns), &budget(name, "yes")).await.ok();
        }
        let everywhere = "/apis/policy/v1/poddisruptionbudgets?labelSelector=testing%3Dyes";
        assert_eq!(cx.items(everywhere).await.len(), 3);
        assert_eq!(cx.names(&path(&one)).await, ["foo", "foo2"]);
        cx.delete(&format!("{}?labelSelector=testing%3Dyes", path(&one))).await.ok();
        assert!(cx.items(&path(&one)).await.is_empty());
        assert_eq!(cx.items(&path(&two)).await.len(), 1);
    });
}

#[test]
fn pod_disruption_budget_create_update_patch_and_delete() {
    conform(async |cx| {
        let ns = cx.namespace("budgets").await;
        let path = format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
        let own = format!("{path}/foo");
        let observed = |object: &api_machinery::value::Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
        };
        cx.create(&path, &budget("foo", "yes")).await.ok();
        let mut read = cx.until(&own, observed).await;
        read["spec"]["minAvailable"] = "2%".into();
        cx.replace(&own, &read).await.ok();
        let read = cx.until(&own, observed).await;
        assert_eq!(read["spec"]["minAvailable"], "2%");
        let body = json!({"spec": {"minAvailable": "3%"}});
        cx.patch(&own, patch::STRATEGIC, &body).await.ok();
        let read = cx.until(&own, observed).await;
        assert_eq!(read["spec"]["minAvailable"], "3%");
        cx.delete(&own).await.ok();
        assert!(!cx.exists(&own).await);
    });
}

#[test]
fn a_budget_counts_healthy_pods_and_bounds_evictions() {
    conform(async |cx| {
        let ns = cx.namespace("budgets").await;
        let path = format!("/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets");
        let sets = format!("/apis/apps/v1/namespaces/{ns}/replicasets");
        let set = json!({"metadata": {"name": "web"}, "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")}});
        cx.create(&sets, &set).await.ok();
        let mut object = budget("foo", "yes");
        object["spec"]["minAvailable"] = 2.into();
        cx.create(&path, &object).await.ok();
        let own = format!("{path}/foo");
        let read = cx.until(&own, |object| object["status"]["currentHealthy"] == 3).await;
        assert_eq!(read["status"]["disruptionsAllowed"], 1);
        assert_eq!((&read["status"]["desiredHealthy"], &read["status"]["expectedPods"]), (&2.into(), &3.into()));
        let pods = format!("/api/v1/namespaces/{ns}/pods");
        let names = cx.names(&pods).await;
        let evict = |name: &str| {
            (
                format!("{pods}/{name}/eviction"),
                json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": name, "namespace": ns}}),
            )
        };
        let (first, body) = evict(&names[0]);
        cx.create(&first, &body).await.ok();
        let (second, body) = evict(&names[1]);
        let refused = cx.create(&second, &body).await.refused(429);
        assert!(refused.contains("Cannot evict pod as it would violate the pod's disruption budget."), "{refused}");
        cx.until(&own, |object| object["status"]["disruptionsAllowed"] == 1).await;
    });
}
