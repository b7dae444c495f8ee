//! A runtime that tells its events: pods are looked after as they happen, and with few questions.

use std::sync::Arc;
use std::time::Duration;

use client::fake::FakeServer;
use node_api::cri::fake::Script;

use super::PodNews;
use super::api_tests::{Bench, pod, start, start_as};
use super::test_node::settings;
use crate::interfaces::PodSettings;

const SECOND: Duration = Duration::from_secs(1);

async fn evented() -> Bench {
    let root = tempfile::tempdir().unwrap();
    let settings = PodSettings { evented_pleg: true, ..settings(root.path()) };
    start_as(settings, root, FakeServer::new(), Arc::default()).await
}

#[tokio::test(start_paused = true)]
async fn pods_live_and_end_by_what_the_runtime_tells() {
    let bench = evented().await;
    bench.runtime.script("main", [Script::exits(SECOND * 60, 1), Script::exits(SECOND * 60, 0)]);
    let mut web = pod("web", "node1");
    web["spec"]["restartPolicy"] = "OnFailure".into();
    bench.server.put("v1/pods", web);
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    drop(bench.runtime.take_calls());
    tokio::time::sleep(SECOND * 50).await;
    let lists = || bench.runtime.take_calls().iter().filter(|call| call.operation == "list_containers").count();
    assert!(lists() < 10, "each second without events");
    let restarted = |bench: &Bench| {
        bench.object("web").is_some_and(|pod| pod["status"]["containerStatuses"][0]["restartCount"] == 1)
    };
    bench.wait("restarted", restarted).await;
    bench.wait("done", |bench| bench.phase("web") == "Succeeded").await;
    let mut going = bench.object("web").unwrap();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z".into();
    going["metadata"]["deletionGracePeriodSeconds"] = 2.into();
    bench.server.put("v1/pods", going);
    let deleted =
        |bench: &Bench| bench.server.requests().iter().any(|it| it.starts_with("DELETE") && it.contains("/pods/web"));
    bench.wait("deleted", deleted).await;
    assert!(bench.engine.running_pods().await.is_empty());
    bench.tasks.shutdown(SECOND * 5).await;
}

#[tokio::test(start_paused = true)]
async fn who_follows_pods_hears_of_their_statuses_and_of_their_end() {
    let bench = start().await;
    let mut news = bench.engine.follow_pods();
    let mut seen = Vec::new();
    bench.server.put("v1/pods", pod("web", "node1"));
    bench.wait("running", |bench| bench.phase("web") == "Running").await;
    while let Ok(PodNews::Changed(uid)) = news.try_recv() {
        assert_eq!(uid, "uid-web");
        seen.push(bench.engine.pod_by_uid(&uid).is_some());
    }
    assert!(seen.len() > 1 && seen.iter().all(|is_there| *is_there), "{seen:?}");
    bench.server.remove("v1/pods", "default", "web");
    let gone = async {
        loop {
            if let PodNews::Removed { uid, namespace, name } = news.recv().await.unwrap() {
                break (uid, namespace, name);
            }
        }
    };
    let gone = tokio::time::timeout(SECOND * 60, gone).await.unwrap();
    assert_eq!(gone, ("uid-web".to_owned(), "default".to_owned(), "web".to_owned()));
    bench.tasks.shutdown(SECOND * 5).await;
}
