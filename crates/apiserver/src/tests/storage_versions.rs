//! Servers tell which versions they store, and what they store waits until they have told.

use std::sync::Arc;
use std::time::Duration;

use base::{Rng, TokioClock};
use component_base::Gates;
use component_base::lifecycle::Lifecycle;
use kinds::gates::STORAGE_VERSION_API;
use serde_json::{Value, json};
use storage::{Backend, Memory, MemoryOptions};

use super::harness::Api;
use crate::config::{BuiltInResource, ServerConfig};
use crate::server::Server;
use crate::server_id::server_id;

const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MAP: &str = r#"{"metadata":{"name":"m"}}"#;

/// A server that tells, and has not begun yet.
fn server(host: &str, backend: &Arc<dyn Backend>, without: &[BuiltInResource]) -> Api {
    let mut config = ServerConfig::in_memory(vec![super::harness::token("root", &["system:masters"])]);
    config.host = Some(host.to_owned());
    config.disabled.extend(without.iter().copied());
    let gates = Gates::default().with(STORAGE_VERSION_API, true);
    let lifecycle = Lifecycle::new("kube-apiserver", TokioClock::shared(), Rng::seeded(7)).with_gates(gates);
    Api { server: Server::build_over(config, lifecycle, Arc::clone(backend)).expect("the server starts") }
}

fn memory(api_tasks: &base::TaskGroup) -> Arc<dyn Backend> {
    Memory::new(MemoryOptions::default(), TokioClock::shared(), api_tasks)
}

async fn status(api: &Api, name: &str) -> Value {
    api.get(&format!("{VERSIONS}/{name}")).await.json()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn writes_wait_until_it_is_told_what_they_are_stored_as() {
    let tasks = base::TaskGroup::new("store");
    let api = server("one", &memory(&tasks), &[("autoscaling", "v1", "horizontalpodautoscalers")]);
    let waits = |resource: &str| {
        let text = "wait for storage version registration to complete for resource: ";
        (503, format!("{text}{resource}, last seen error: <nil>"))
    };
    assert_eq!(api.post(MAPS, MAP).await.refusal(), waits("configmaps"));
    let policies = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    assert_eq!(api.delete(policies).await.refusal(), waits("networkpolicies.networking.k8s.io"));
    assert_eq!(api.get(MAPS).await.code, 200, "who reads waits for nothing");
    let review = r#"{"spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}}"#;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(api.post(reviews, review).await.code, 201, "what is not stored waits for nothing");

    api.server.start();
    api.wait_until_ready().await;
    assert_eq!(api.post(MAPS, MAP).await.code, 201);
    assert_eq!(api.get("/healthz/poststarthook/built-in-resources-storage-version-updater").await.code, 200);
    let told = |encoding: &str, decodable: &[&str], served: &[&str]| {
        json!([{
            "apiServerID": server_id("one"),
            "encodingVersion": encoding,
            "decodableVersions": decodable,
            "servedVersions": served,
        }])
    };
    for (name, expected) in [
        ("core.pods", told("v1", &["v1"], &["v1"])),
        // The events of both groups are kept as those of core.
        ("core.events", told("v1", &["v1", "events.k8s.io/v1beta1", "events.k8s.io/v1"], &["v1"])),
        // What is not served can be read, as can what is served nowhere any more.
        (
            "autoscaling.horizontalpodautoscalers",
            told("autoscaling/v2", &["autoscaling/v2", "autoscaling/v1", "autoscaling/v2beta2"], &["autoscaling/v2"]),
        ),
    ] {
        let status = status(&api, name).await;
        assert_eq!(status["storageVersions"], expected, "{name}");
        assert_eq!(status["commonEncodingVersion"], expected[0]["encodingVersion"], "{name}");
        let condition = &status["conditions"][0];
        let said = [&condition["type"], &condition["status"], &condition["reason"], &condition["message"]];
        let all = ["AllEncodingVersionsEqual", "True", "CommonEncodingVersionSet", "Common encoding version set"];
        assert_eq!(said, all, "{name}");
    }
    assert_eq!(api.get(&format!("{VERSIONS}/events.k8s.io.events")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn each_server_has_its_word_and_what_is_lost_comes_back() {
    let tasks = base::TaskGroup::new("store");
    let backend = memory(&tasks);
    let (one, two) = (server("one", &backend, &[]), server("two", &backend, &[]));
    for api in [&one, &two] {
        api.server.start();
        api.wait_until_ready().await;
    }
    let ids = |status: &Value| -> Vec<String> {
        let all = status["storageVersions"].as_array().expect("a list");
        all.iter().map(|own| own["apiServerID"].as_str().expect("a text").to_owned()).collect()
    };
    let both = [server_id("one"), server_id("two")];
    assert_eq!(ids(&status(&two, "core.pods").await), both);
    let before = one.get(&format!("{VERSIONS}/core.pods")).await.json();

    assert_eq!(one.delete(&format!("{VERSIONS}/core.secrets")).await.code, 200);
    tokio::time::sleep(Duration::from_secs(11 * 60)).await;
    let mut again = ids(&status(&one, "core.secrets").await);
    again.sort_unstable();
    let mut sorted = both.to_vec();
    sorted.sort_unstable();
    assert_eq!(again, sorted);
    assert_eq!(one.get(&format!("{VERSIONS}/core.pods")).await.json(), before, "what is there is not written again");
}

#[tokio::test(start_paused = true)]
async fn writes_do_not_wait_for_what_cannot_be_told() {
    let tasks = base::TaskGroup::new("store");
    let api = server("one", &memory(&tasks), &[("internal.apiserver.k8s.io", "v1alpha1", "storageversions")]);
    api.server.start();
    api.wait_until_ready().await;
    assert_eq!(api.post(MAPS, MAP).await.code, 201);
}
