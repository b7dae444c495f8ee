//! The server over real etcds that cannot do everything, or not all of which are there. Skipped where there is none.

use std::time::Duration;

use base::{Rng, TaskGroup};
use storage::{Etcd, EtcdOptions};

use super::harness::{Api, frame};
use crate::config::BackendConfig;
use test_facts::etcd::EtcdServer;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITION: &str = r#"{
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "apples.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "apples", "kind": "Apple"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

async fn over(urls: Vec<String>) -> Api {
    let options = EtcdOptions::new(urls);
    Api::with(|config| config.storage.backend = BackendConfig::Etcd(Box::new(options))).await
}

/// Roles and definitions come to life, and reads show what was written.
async fn works(api: &Api) {
    api.wait_until_ready().await;
    let role = r#"{"metadata":{"name":"r"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]}"#;
    assert_eq!(api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await.code, 201);
    let binding = r#"{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"alice"}]}"#;
    assert_eq!(api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await.code, 201);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(api.post(definitions, DEFINITION).await.code, 201);
    let mut served = (403, 404);
    for _ in 0..100 {
        let alices = api.send(&format!("GET {MAPS}"), &[("authorization", "Bearer alice")], "").await.code;
        served = (alices, api.get("/apis/example.com/v1/apples").await.code);
        if served == (200, 200) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(served, (200, 200));
    for name in ["x", "y", "z"] {
        api.config_map(name).await;
        let list = api.get(MAPS).await.json();
        let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
        assert!(names.contains(&&name.into()), "{name} was written before the list: {names:?}");
    }
}

#[tokio::test]
async fn an_etcd_whose_progress_cannot_be_trusted_will_do() {
    let Some(etcd) = EtcdServer::start_old() else { return };
    let api = over(vec![etcd.url.clone()]).await;
    works(&api).await;
    // A client that can do without is told so, one that takes any state is served.
    let stream = |version: &str| {
        format!(
            "GET {MAPS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion={version}"
        )
    };
    let mut refused = api.open(&stream(""), &[], "").await.into_body();
    let text = frame(&mut refused).await.unwrap();
    assert!(text.contains("the required storage feature RequestWatchProgress is disabled"), "{text}");
    for line in [stream("0"), format!("GET {MAPS}?watch=1&allowWatchBookmarks=true")] {
        let mut served = api.open(&line, &[], "").await.into_body();
        assert!(frame(&mut served).await.unwrap().contains("ADDED"), "{line}");
    }
}

#[tokio::test]
async fn a_cluster_of_etcd_with_a_member_down_will_do() {
    let Some(mut servers) = EtcdServer::start_cluster(3) else { return };
    let urls: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
    let group = TaskGroup::new("until there is a quorum");
    Etcd::connect(EtcdOptions::new(urls.clone()), Rng::seeded(1), &group).await.expect("a quorum");
    group.cancel();
    servers[0].stop();
    works(&over(urls).await).await;
}
