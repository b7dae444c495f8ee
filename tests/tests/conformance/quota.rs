//! Resource quotas: what is counted, and what is refused.

use api_machinery::value::Value;
use serde_json::json;

use crate::garbage_collection::{replication_controller, template};
use crate::harness::{Cx, conform, name_of, patch};
use crate::lifecycle::contains;

pub(crate) struct Quotas {
    pub(crate) ns: String,
    pub(crate) quotas: String,
}

impl Quotas {
    pub(crate) async fn new(cx: &Cx) -> Self {
        let ns = cx.namespace("quota").await;
        let quotas = format!("/api/v1/namespaces/{ns}/resourcequotas");
        Self { ns, quotas }
    }

    /// Creates a quota and waits until its status says so.
    pub(crate) async fn set(&self, cx: &Cx, name: &str, spec: &Value) {
        cx.create(&self.quotas, &json!({"metadata": {"name": name}, "spec": spec})).await.ok();
        let hard = spec["hard"].clone();
        cx.until(&format!("{}/{name}", self.quotas), |quota| {
            contains(&quota["status"]["hard"], &hard) && quota["status"]["used"].is_object()
        })
        .await;
    }

    pub(crate) async fn used(&self, cx: &Cx, name: &str, used: &Value) {
        cx.until(&format!("{}/{name}", self.quotas), |quota| contains(&quota["status"]["used"], used)).await;
    }

    /// An object is counted when it is made, and no longer when it is gone.
    async fn counts(&self, cx: &Cx, collection: &str, object: &Value, before: Value, with: Value) {
        self.used(cx, "test-quota", &before).await;
        let made = cx.create(collection, object).await.ok();
        self.used(cx, "test-quota", &with).await;
        cx.delete(&format!("{collection}/{}", name_of(&made))).await.ok();
        self.used(cx, "test-quota", &before).await;
    }
}

fn hard() -> Value {
    json!({"hard": {
        "pods": "5", "services": "10", "services.nodeports": "1", "services.loadbalancers": "1",
        "replicationcontrollers": "10", "resourcequotas": "1", "configmaps": "10", "secrets": "10",
        "persistentvolumeclaims": "10", "requests.storage": "10Gi", "cpu": "1", "memory": "500Mi",
        "requests.ephemeral-storage": "50Gi", "requests.example.com/dongle": "3", "count/replicasets.apps": "5",
    }})
}

#[test]
fn changes_to_the_status_of_a_quota() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "e2e", &json!({"hard": {"cpu": "500m", "memory": "500Mi"}})).await;
        let path = format!("{}/e2e", own.quotas);
        let mut watch = cx.watch(&format!("{}?fieldSelector=metadata.name%3De2e", own.quotas)).await;
        let mut read = cx.get(&path).await.ok();
        read["spec"]["hard"] = json!({"cpu": "1", "memory": "1Gi"});
        cx.replace(&path, &read).await.ok();
        watch
            .until("MODIFIED", |quota| contains(&quota["status"]["hard"], &json!({"cpu": "1", "memory": "1Gi"})))
            .await;
        let mut read = cx.get(&format!("{path}/status")).await.ok();
        read["status"]["hard"] = json!({"cpu": "2", "memory": "2Gi"});
        let updated = cx.replace(&format!("{path}/status"), &read).await.ok();
        assert_eq!(updated["status"]["hard"]["cpu"], "2");
        watch.until("MODIFIED", |quota| quota["status"]["hard"]["cpu"] == "2").await;
        // The controller puts it right when it counts everything anew.
        cx.until(&path, |quota| quota["status"]["hard"]["cpu"] == "1").await;
        let body = json!({"status": {"hard": {"cpu": "3"}}});
        let patched = cx.merge(&format!("{path}/status"), &body).await.ok();
        assert_eq!(patched["status"]["hard"]["cpu"], "3");
        assert_eq!(patched["spec"]["hard"]["cpu"], "1");
    });
}

#[test]
fn update_and_delete_a_quota() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "e2e", &json!({"hard": {"cpu": "1", "memory": "500Mi"}})).await;
        let path = format!("{}/e2e", own.quotas);
        let mut read = cx.get(&path).await.ok();
        read["spec"]["hard"] = json!({"cpu": "2", "memory": "1Gi"});
        cx.replace(&path, &read).await.ok();
        assert_eq!(cx.get(&path).await.ok()["spec"]["hard"]["cpu"], "2");
        cx.delete(&path).await.ok();
        assert!(!cx.exists(&path).await);
    });
}

#[test]
fn object_count_quota_of_config_maps_and_secrets() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        let root = format!("/api/v1/namespaces/{}", own.ns);
        cx.until(&format!("{root}/configmaps/kube-root-ca.crt"), |_| true).await;
        own.set(cx, "test-quota", &hard()).await;
        let object = json!({"metadata": {"name": "test"}});
        let (maps, secrets) = (format!("{root}/configmaps"), format!("{root}/secrets"));
        own.counts(cx, &maps, &object, json!({"configmaps": "1"}), json!({"configmaps": "2"})).await;
        own.counts(cx, &secrets, &object, json!({"secrets": "0"}), json!({"secrets": "1"})).await;
    });
}

#[test]
fn object_count_quota_of_workloads() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "test-quota", &hard()).await;
        let sets = format!("/apis/apps/v1/namespaces/{}/replicasets", own.ns);
        let set = json!({"metadata": {"name": "test-rs"}, "spec": {"replicas": 0,
            "selector": {"matchLabels": {"app": "x"}}, "template": template("x")}});
        let count = |count: &str| json!({"count/replicasets.apps": count});
        own.counts(cx, &sets, &set, count("0"), count("1")).await;
        let controllers = format!("/api/v1/namespaces/{}/replicationcontrollers", own.ns);
        let count = |count: &str| json!({"replicationcontrollers": count});
        own.counts(cx, &controllers, &replication_controller("test-rc", 0), count("0"), count("1")).await;
    });
}

#[test]
fn object_count_quota_of_services() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "test-quota", &hard()).await;
        let services = format!("/api/v1/namespaces/{}/services", own.ns);
        let service = |name: &str, kind: &str| json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"port": 80, "targetPort": 80}]}});
        cx.create(&services, &service("test-service", "ClusterIP")).await.ok();
        cx.create(&services, &service("test-service-np", "NodePort")).await.ok();
        let refused = cx.create(&services, &service("test-service-lb", "LoadBalancer")).await.refused(403);
        assert!(refused.contains("exceeded quota: test-quota"), "{refused}");
        let used = |services: &str, ports: &str| json!({"services": services, "services.nodeports": ports});
        own.used(cx, "test-quota", &used("2", "1")).await;
        cx.delete(&format!("{services}/test-service")).await.ok();
        cx.delete(&format!("{services}/test-service-np")).await.ok();
        own.used(cx, "test-quota", &used("0", "0")).await;
    });
}

fn pod(name: &str, requests: &Value) -> Value {
    let limits = json!({"example.com/dongle": requests["example.com/dongle"]});
    let limits = if limits["example.com/dongle"].is_null() { json!({}) } else { limits };
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "pause:1",
        "resources": {"requests": requests, "limits": limits}}]}})
}

#[test]
fn object_count_quota_of_pods() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "test-quota", &hard()).await;
        let pods = format!("/api/v1/namespaces/{}/pods", own.ns);
        let fits = json!({"cpu": "500m", "memory": "252Mi", "ephemeral-storage": "30Gi", "example.com/dongle": "2"});
        cx.create(&pods, &pod("test-pod", &fits)).await.ok();
        let used = json!({"pods": "1", "cpu": "500m", "memory": "252Mi", "requests.ephemeral-storage": "30Gi",
            "requests.example.com/dongle": "2"});
        own.used(cx, "test-quota", &used).await;
        let too_much = json!({"cpu": "600m", "memory": "100Mi"});
        let refused = cx.create(&pods, &pod("fail-pod", &too_much)).await.refused(403);
        assert!(
            refused.contains("exceeded quota: test-quota, requested: cpu=600m, used: cpu=500m, limited: cpu=1"),
            "{refused}"
        );
        let dongles = json!({"cpu": "500m", "memory": "100Mi", "ephemeral-storage": "20Gi", "example.com/dongle": "2"});
        cx.create(&pods, &pod("fail-pod", &dongles)).await.refused(403);
        let without = cx.create(&pods, &pod("fail-pod", &json!({}))).await.refused(403);
        assert!(
            without.contains("failed quota: test-quota: must specify cpu for: main; memory for: main"),
            "{without}"
        );
        let body = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "900m"}}}]}});
        let grown = cx.patch(&format!("{pods}/test-pod"), patch::STRATEGIC, &body).await;
        assert!(grown.code >= 400, "{}", grown.body);
        own.used(cx, "test-quota", &used).await;
        cx.delete_with(&format!("{pods}/test-pod"), &json!({"gracePeriodSeconds": 0})).await.ok();
        own.used(cx, "test-quota", &json!({"pods": "0", "cpu": "0", "memory": "0"})).await;
    });
}

#[test]
fn object_count_quota_of_quotas() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        own.set(cx, "test-quota", &hard()).await;
        own.used(cx, "test-quota", &json!({"resourcequotas": "1", "pods": "0", "services": "0"})).await;
    });
}

#[test]
fn manage_the_lifecycle_of_a_quota() {
    conform(async |cx| {
        let own = Quotas::new(cx).await;
        let quota = json!({"metadata": {"name": "e2e", "labels": {"e2e": "yes"}}, "spec": {"hard": {"cpu": "500m"}}});
        cx.create(&own.quotas, &quota).await.ok();
        assert_eq!(cx.names("/api/v1/resourcequotas?labelSelector=e2e%3Dyes").await, ["e2e"]);
        let body = json!({"metadata": {"labels": {"e2e": "patched"}}, "spec": {"hard": {"memory": "750Mi"}}});
        let patched = cx.patch(&format!("{}/e2e", own.quotas), patch::STRATEGIC, &body).await.ok();
        assert_eq!(patched["spec"]["hard"], json!({"cpu": "500m", "memory": "750Mi"}));
        cx.delete(&format!("{}?labelSelector=e2e%3Dpatched", own.quotas)).await.ok();
        cx.gone(&format!("{}/e2e", own.quotas)).await;
    });
}
