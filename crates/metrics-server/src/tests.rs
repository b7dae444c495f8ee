//! The server as its clients see it: kubelets that tell, and an API server that is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Object;
use api_types::core_v1::{Node, Pod};
use client::fake::FakeServer;
use client::{InformerOptions, Informers, ResourceInfo};
use component_base::serving::Query;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::endpoint::Api;
use crate::exposition::Scrape;
use crate::query::Asked;
use crate::usage::{PodName, Point, Usages};

const SECOND: i64 = 1_000_000_000;
/// 2026-01-01T00:00:00Z.
const AT: i64 = 1_767_225_600;

fn labelled(object: &mut dyn Object, namespace: &str, name: &str, app: &str) {
    let meta = object.meta_mut();
    (meta.namespace, meta.name) = (namespace.into(), name.into());
    meta.labels.insert("app".into(), app.into());
}

fn point(at_seconds: i64, cpu_ms: i64) -> Point {
    Point { at_ns: at_seconds * SECOND, cpu_ns: cpu_ms * 1_000_000, memory_bytes: 64 << 20, started_ns: SECOND }
}

/// A node `n` and pods `a/web`, `b/web` and `b/db`, of which the last is not told of.
async fn api() -> Api {
    let server = FakeServer::new();
    let mut node = Node::default();
    labelled(&mut node, "", "n", "node");
    server.put("v1/nodes", (&node as &dyn Object).to_value());
    for (namespace, name) in [("a", "web"), ("b", "web"), ("b", "db")] {
        let mut pod = Pod::default();
        labelled(&mut pod, namespace, name, name);
        server.put("v1/pods", (&pod as &dyn Object).to_value());
    }
    let client = server.client();
    let informers = Informers::new(&client, InformerOptions::default());
    let (nodes, pods) = (informers.of::<Node>(), informers.metadata(&ResourceInfo::of::<Pod>()));
    informers.start();
    nodes.wait_synced().await;
    pods.wait_synced().await;
    let usages = Arc::new(Usages::default());
    for (at, cpu_ms) in [(AT, 1000), (AT + 60, 7000)] {
        let containers =
            || BTreeMap::from([("c".to_owned(), point(at, cpu_ms)), ("s".to_owned(), point(at, cpu_ms / 2))]);
        let pods = [("a", "web"), ("b", "web")].map(|(namespace, name)| (PodName::new(namespace, name), containers()));
        let told = Scrape { node: Some(point(at, cpu_ms * 2)), pods: pods.into() };
        usages.take(vec![("n".to_owned(), told)], Duration::from_secs(60));
    }
    Api { nodes, pods, usages, clock: Arc::clone(client.clock()) }
}

async fn told(api: &Api, path: &str, query: &str, accept: &str) -> Result<Value, String> {
    let (asked, query) = (Asked::read(path).unwrap(), Query::parse(query).unwrap());
    let answer = api.tell(&asked, &query).map_err(|error| error.message)?;
    let body = answer.write(accept).into_body().collect().await.unwrap().to_bytes();
    Ok(serde_json::from_slice(&body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn nodes_and_pods_are_told_of() {
    let api = api().await;
    let node = told(&api, "nodes/n", "", "application/json").await.unwrap();
    assert_eq!(node["kind"], "NodeMetrics");
    assert_eq!(node["apiVersion"], "metrics.k8s.io/v1beta1");
    assert_eq!((&node["timestamp"], &node["window"]), (&"2026-01-01T00:01:00Z".into(), &"1m0s".into()));
    assert_eq!(node["usage"], serde_json::json!({"cpu": "200m", "memory": "64Mi"}));
    assert_eq!(node["metadata"]["labels"]["app"], "node");
    let pod = told(&api, "namespaces/a/pods/web", "", "").await.unwrap();
    let containers = serde_json::json!([
        {"name": "c", "usage": {"cpu": "100m", "memory": "64Mi"}},
        {"name": "s", "usage": {"cpu": "50m", "memory": "64Mi"}},
    ]);
    assert_eq!(pod["containers"], containers);
    let names = |list: Value| {
        let name = |item: &Value| format!("{}/{}", item["metadata"]["namespace"], item["metadata"]["name"]);
        list["items"].as_array().unwrap().iter().map(name).collect::<Vec<_>>().join(" ").replace('"', "")
    };
    for (path, query, expected) in [
        ("pods", "", "a/web b/web"),
        ("namespaces/b/pods", "", "b/web"),
        ("namespaces/c/pods", "", ""),
        ("pods", "labelSelector=app%3Dweb", "a/web b/web"),
        ("pods", "labelSelector=app%3Ddb", ""),
        ("pods", "fieldSelector=metadata.namespace%3Da", "a/web"),
        ("nodes", "labelSelector=app%3Dnode", "null/n"),
        ("nodes", "labelSelector=app%21%3Dnode", ""),
    ] {
        assert_eq!(names(told(&api, path, query, "").await.unwrap()), expected, "{path}?{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_is_not_found() {
    let api = api().await;
    for (path, expected) in [
        ("nodes/x", "nodemetrics.metrics.k8s.io \"x\" not found"),
        ("namespaces/b/pods/db", "podmetrics.metrics.k8s.io \"b/db\" not found"),
    ] {
        assert_eq!(told(&api, path, "", "").await, Err(expected.to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn people_get_tables() {
    let api = api().await;
    let table =
        told(&api, "namespaces/a/pods", "", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").await;
    let table = table.unwrap();
    assert_eq!(table["kind"], "Table");
    let names: Vec<_> = table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "cpu", "memory", "Window"]);
    assert_eq!(table["rows"][0]["cells"], serde_json::json!(["web", "150m", "128Mi", "1m0s"]));
}

#[test]
fn the_manifest_asks_for_what_there_is() {
    let text = include_str!("../../../manifests/addons/metrics-server.yaml");
    let documents = api_machinery::yaml::documents(text);
    let parsed: Vec<_> = documents.into_iter().map(|text| api_machinery::yaml::parse(text).unwrap().value).collect();
    let deployment = parsed.iter().find(|value| value["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let arguments: Vec<_> =
        container["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect();
    let options = component_base::flags::parse(crate::options::FLAGS, arguments).unwrap();
    assert_eq!(options.int("secure-port"), container["ports"][0]["containerPort"].as_i64().unwrap());
    assert!(options.bool("kubelet-use-node-status-port"));
    let service = parsed.iter().find(|value| value["kind"] == "Service").unwrap();
    let api = parsed.iter().find(|value| value["kind"] == "APIService").unwrap();
    assert_eq!(api["spec"]["service"]["name"], service["metadata"]["name"]);
    assert_eq!(service["spec"]["selector"], deployment["spec"]["template"]["metadata"]["labels"]);
}
