//! A server that reaches its store no more, and the other one.

use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_types::apps_v1::Deployment;
use api_types::core_v1::{ConfigMap, Pod};
use client::{Client, Request};
use tokio::time::Instant;

use crate::{both, deployment, doubled, until};

const ROLLOUT: Duration = Duration::from_secs(120);
/// What a request may take, and a little more.
const TIMEOUT: Duration = Duration::from_secs(65);

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = name.to_owned();
    map
}

async fn is_ready(client: &Client) -> bool {
    client.send(Request::get("/readyz")).await.is_ok_and(|answer| answer.status == http::StatusCode::OK)
}

#[test]
fn a_server_without_a_store_says_so_and_comes_back() {
    doubled(async |cluster| {
        let [cut, whole] = both(cluster);
        let maps = |client: &Client| client.namespaced::<ConfigMap>("default");
        maps(&cut).create(&map("before")).await.expect("a write");
        until("it is ready", ROLLOUT, async || is_ready(&cut).await).await;
        cluster.cut_off(0, true);
        let begun = Instant::now();
        let write = maps(&cut).create(&map("during")).await.expect_err("nobody has stored it");
        let read = maps(&cut).get("before").await;
        assert!(read.is_err(), "a consistent read waits for the store");
        assert!(begun.elapsed() <= TIMEOUT * 2, "{:?}", begun.elapsed());
        assert!(write.api().is_some_and(|error| error.code >= 500), "{write}");
        assert!(!is_ready(&cut).await && is_ready(&whole).await);

        // What a balancer does then; work goes on through the other server.
        cluster.drain(0, true);
        cluster.admin().namespaced::<Deployment>("default").create(&deployment("web", 3)).await.expect("a deployment");
        let all_run = async || {
            let pods = whole.namespaced::<Pod>("default").list(&ListOptions::default()).await.expect("a list").items;
            pods.iter().filter(|pod| pod.status.phase == "Running").count() == 3
        };
        until("the pods run", ROLLOUT, all_run).await;
        maps(&whole).create(&map("meanwhile")).await.expect("a write");

        cluster.cut_off(0, false);
        cluster.drain(0, false);
        until("it is ready again", Duration::from_secs(30), async || is_ready(&cut).await).await;
        assert!(maps(&cut).get_opt("meanwhile").await.expect("a read").is_some());
        maps(&cut).create(&map("after")).await.expect("a write");
        assert!(maps(&whole).get_opt("after").await.expect("a read").is_some());
    });
}

/// Follows maps by watches as a client does that goes on where a watch ended.
async fn follow(client: &Client, from: String, last: &str) -> Vec<String> {
    let (mut version, mut seen) = (from, Vec::new());
    let deadline = Instant::now() + ROLLOUT * 2;
    while !seen.iter().any(|name| name == last) {
        assert!(Instant::now() < deadline, "only {seen:?} came");
        let options = ListOptions { resource_version: version.clone(), ..ListOptions::default() };
        let Ok(mut watch) = client.namespaced::<ConfigMap>("default").watch(&options).await else {
            tokio::time::sleep(Duration::from_secs(1)).await;
            continue;
        };
        while let Ok(Some(Ok(event))) = tokio::time::timeout_at(deadline, watch.next()).await {
            let client::WatchEvent::Added(map) = event else { continue };
            version.clone_from(&map.metadata.resource_version);
            seen.push(map.metadata.name.clone());
            if map.metadata.name == last {
                break;
            }
        }
    }
    seen
}

#[test]
fn a_watch_leaves_nothing_out_and_tells_nothing_twice() {
    doubled(async |cluster| {
        let [cut, whole] = both(cluster);
        let maps = whole.namespaced::<ConfigMap>("default");
        let from = maps.list(&ListOptions::default()).await.expect("a list").metadata.resource_version;
        let write = async {
            for number in 0..30 {
                maps.create(&map(&format!("m{number:02}"))).await.expect("a write");
                match number {
                    5 | 15 => cluster.cut_off(0, true),
                    10 | 25 => cluster.cut_off(0, false),
                    _ => {}
                }
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
        };
        let (seen, ()) = tokio::join!(follow(&cut, from, "m29"), write);
        let expected: Vec<String> = (0..30).map(|number| format!("m{number:02}")).collect();
        let own: Vec<String> = seen.into_iter().filter(|name| name.starts_with('m')).collect();
        assert_eq!(own, expected);
    });
}
