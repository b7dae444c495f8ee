//! The collector at work on a server in memory that also answers discovery.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_types::apps_v1::ReplicaSet;
use api_types::core_v1::{Node, Pod};
use base::{CancellationToken, TaskGroup};
use client::fake::FakeServer;
use component_base::metrics::{Metrics, MetricsOptions};
use controller::{ControllerSet, Descriptor, Environment, Selection};

use super::DESCRIPTOR;
use crate::Settings;
use crate::workloads::fixtures::{WithDiscovery, meta, stored};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

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

/// Starts the collector on a server.
fn start(server: &FakeServer) -> (TaskGroup, Arc<Metrics>) {
    let client = server.client_over(Arc::new(WithDiscovery(server.transport())));
    let mut env = Environment::new(&client);
    env.settings = Arc::new(Settings::default());
    let metrics = Metrics::new(MetricsOptions::default());
    env.metrics = Some(Arc::clone(&metrics));
    let set = ControllerSet::new(KNOWN, &Selection::all(), &env.gates);
    let group = TaskGroup::new("test");
    group.spawn_cancellable("controllers", async move {
        set.run(&env, CancellationToken::new()).await.unwrap();
    });
    (group, metrics)
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_cannot_be_looked_for_is_not_taken_for_gone() {
    let server = FakeServer::new();
    let mut metadata = owned("outside", "gone");
    metadata.namespace.clear();
    server.put("v1/nodes", stored(&Node { metadata, ..Node::default() }));
    server.put("v1/pods", stored(&Pod { metadata: owned("lost", "gone"), ..Pod::default() }));
    let running = start(&server);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(server.objects("v1/nodes").len(), 1, "a cluster-scoped object cannot have a namespaced owner");
    assert!(server.objects("v1/pods").is_empty(), "from within the namespace the owner is seen to be gone");
    let text = running.1.text();
    assert!(text.contains("garbagecollector_controller_resources_sync_error_total 0"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn pods_go_with_their_owner() {
    let server = FakeServer::new();
    let _running = start(&server);
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

#[tokio::test(start_paused = true)]
async fn each_dependent_of_an_owner_elsewhere_is_told_of() {
    let server = FakeServer::new();
    let mut elsewhere = ReplicaSet { metadata: meta("rs"), ..ReplicaSet::default() };
    elsewhere.metadata.namespace = "other".into();
    server.put("apps/v1/replicasets", stored(&elsewhere));
    let _running = start(&server);
    tokio::time::sleep(Duration::from_secs(60)).await;
    for name in ["a", "b"] {
        server.put("v1/pods", stored(&Pod { metadata: owned(name, "rs"), ..Pod::default() }));
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    assert!(server.objects("v1/pods").is_empty(), "the owner is not where they are");
    let told = server.objects("v1/events");
    let about = |name: &str| told.iter().filter(|event| event["involvedObject"]["name"] == name).count();
    assert_eq!((about("a"), about("b")), (1, 1), "{told:?}");
    let message =
        "ownerRef [apps/v1/ReplicaSet, namespace: ns, name: rs, uid: rs-uid] does not exist in namespace \"ns\"";
    assert_eq!((&told[0]["reason"], &told[0]["message"]), (&"OwnerRefInvalidNamespace".into(), &message.into()));
}
