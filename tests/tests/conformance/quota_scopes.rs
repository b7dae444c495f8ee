//! Resource quotas that count some pods only.

use api_machinery::value::Value;
use serde_json::json;

use crate::harness::{Cx, conform};
use crate::quota::Quotas;

fn pod(name: &str, resources: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "main", "image": "pause:1", "resources": resources}]}})
}

/// Each pod is counted by the quota that it belongs to and by no other.
async fn split(cx: &Cx, own: &Quotas, quotas: [(&str, &str); 2], pods: [Value; 2], limits: &Value) {
    for (name, scope) in quotas {
        let hard = if limits.is_null() || name.contains("besteffort") && !name.contains("not") {
            json!({"pods": "5"})
        } else {
            limits.clone()
        };
        own.set(cx, name, &json!({"hard": hard, "scopes": [scope]})).await;
    }
    let path = format!("/api/v1/namespaces/{}/pods", own.ns);
    for (index, pod) in pods.iter().enumerate() {
        let made = cx.create(&path, pod).await.ok();
        let (counted, not) = (quotas[index].0, quotas[1 - index].0);
        own.used(cx, counted, &json!({"pods": "1"})).await;
        own.used(cx, not, &json!({"pods": "0"})).await;
        let own_path = format!("{path}/{}", made["metadata"]["name"].as_str().expect("a name"));
        cx.delete_with(&own_path, &json!({"gracePeriodSeconds": 0})).await.ok();
        own.used(cx, counted, &json!({"pods": "0"})).await;
    }
}

#[test]
fn best_effort_and_not_best_effort_scopes() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        let resources = json!({"requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "500m", "memory": "200Mi"}});
        let pods = [pod("besteffort-pod", &json!({})), pod("burstable-pod", &resources)];
        let quotas = [("quota-besteffort", "BestEffort"), ("quota-not-besteffort", "NotBestEffort")];
        split(cx, &own, quotas, pods, &json!({"pods": "5"})).await;
    });
}

#[test]
fn terminating_and_not_terminating_scopes() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        let resources = json!({"requests": {"cpu": "500m", "memory": "200Mi"},
            "limits": {"cpu": "1", "memory": "400Mi"}});
        let mut ending = pod("terminating-pod", &resources);
        ending["spec"]["activeDeadlineSeconds"] = 3600.into();
        let pods = [ending, pod("test-pod", &resources)];
        let quotas = [("quota-terminating", "Terminating"), ("quota-not-terminating", "NotTerminating")];
        let limits = json!({"pods": "5", "requests.cpu": "1", "requests.memory": "500Mi", "limits.cpu": "2",
            "limits.memory": "1Gi"});
        split(cx, &own, quotas, pods, &limits).await;
    });
}
