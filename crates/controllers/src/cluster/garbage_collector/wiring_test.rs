//! The collector at work on a server in memory that also answers discovery.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::Pod;
use base::{CancellationToken, TaskGroup};
use bytes::Bytes;
use client::fake::FakeServer;
use client::{Transport, TransportError};
use component_base::serving::{Body, full};
use controller::{ControllerSet, Descriptor, Environment, Selection};

use super::DESCRIPTOR;
use crate::Settings;
use crate::workloads::fixtures::{meta, stored};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

/// Answers discovery and hands everything else on.
struct WithDiscovery(Arc<dyn Transport>);

#[async_trait::async_trait]
impl Transport for WithDiscovery {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let (group, resource, kind) = match request.uri().path() {
            "/api" => ("", "pods", "Pod"),
            "/apis" => ("apps", "replicasets", "ReplicaSet"),
            _ => return self.0.send(request).await,
        };
        let verbs = r#"["get","list","watch","delete"]"#;
        let list = format!(
            r#"{{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{{"metadata":
            {{"name":"{group}"}},"versions":[{{"version":"v1","freshness":"Current","resources":[{{"resource":
            "{resource}","scope":"Namespaced","responseKind":{{"kind":"{kind}"}},"verbs":{verbs}}}]}}]}}]}}"#
        );
        let mut response = http::Response::new(full(list));
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        Ok(response)
    }

    fn server(&self) -> &str {
        self.0.server()
    }
}

fn owned(name: &str, by: &str) -> ObjectMeta {
    let mut meta = meta(name);
    meta.owner_references.push(OwnerReference {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: by.into(),
        uid: format!("{by}-uid"),
        ..OwnerReference::default()
    });
    meta
}

#[tokio::test(start_paused = true)]
async fn pods_go_with_their_owner() {
    let server = FakeServer::new();
    let client = server.client_over(Arc::new(WithDiscovery(server.transport())));
    let mut env = Environment::new(&client);
    env.settings = Arc::new(Settings::default());
    let set = ControllerSet::new(KNOWN, &Selection::all(), &env.gates);
    let group = TaskGroup::new("test");
    group.spawn_cancellable("controllers", async move {
        set.run(&env, CancellationToken::new()).await.unwrap();
    });
    server.put("apps/v1/replicasets", stored(&ReplicaSet { metadata: meta("rs"), ..ReplicaSet::default() }));
    for metadata in [owned("mine", "rs"), owned("lost", "gone"), meta("free")] {
        server.put("v1/pods", stored(&Pod { metadata, ..Pod::default() }));
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    let names = || {
        let pods = server.objects("v1/pods");
        pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["free", "mine"], "what belongs to nobody that exists goes");
    server.remove("apps/v1/replicasets", "ns", "rs");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(names(), ["free"], "what is free stays");
}
