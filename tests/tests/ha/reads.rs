//! What one server has acknowledged, the other shows.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_types::core_v1::ConfigMap;
use client::Client;
use testing::Part;

use crate::{both, doubled};

const ROUNDS: usize = 60;
/// How often a server crashes under the writer.
const CRASHES: usize = 4;

fn map(name: &str, value: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = name.to_owned();
    map.data.insert("value".into(), value.to_string());
    map
}

fn version(of: &str) -> u64 {
    of.parse().expect("a number")
}

/// The map as a list has it.
async fn listed(client: &Client, name: &str, options: ListOptions) -> (u64, Option<ConfigMap>) {
    let list = client.namespaced::<ConfigMap>("default").list(&options).await.expect("a list");
    let found = list.items.into_iter().find(|map| map.metadata.name == name);
    (version(&list.metadata.resource_version), found)
}

#[test]
fn a_write_is_seen_through_the_other_server() {
    doubled(async |cluster| {
        let servers = both(cluster);
        let mut newest = [0; 2];
        for round in 0..ROUNDS {
            let [writer, reader] = [round % 2, (round + 1) % 2];
            let (name, maps) = (format!("m{}", round % 7), servers[writer].namespaced::<ConfigMap>("default"));
            let written = match maps.get_opt(&name).await.expect("a read") {
                Some(mut now) => {
                    now.data.insert("value".into(), round.to_string());
                    maps.update(&now).await
                }
                None => maps.create(&map(&name, round)).await,
            };
            let revision = version(&written.expect("a write").metadata.resource_version);
            let value = |map: &ConfigMap| map.data["value"] == round.to_string();
            let reads = servers[reader].namespaced::<ConfigMap>("default");
            assert!(value(&reads.get(&name).await.expect("a read")), "round {round}: get");
            let (at, found) = listed(&servers[reader], &name, ListOptions::default()).await;
            assert!(at >= revision && found.is_some_and(|map| value(&map)), "round {round}: list");
            let not_older = ListOptions { resource_version: revision.to_string(), ..ListOptions::default() };
            let (at, found) = listed(&servers[reader], &name, not_older).await;
            assert!(at >= revision && found.is_some_and(|map| value(&map)), "round {round}: not older than {revision}");
            for number in [writer, reader] {
                let any = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
                let (at, _) = listed(&servers[number], &name, any).await;
                assert!(at >= newest[number], "round {round}: server {number} went back");
                newest[number] = at;
            }
        }
    });
}

#[test]
fn what_was_acknowledged_outlives_a_server() {
    doubled(async |cluster| {
        let (written, ends) = (AtomicUsize::new(0), AtomicBool::new(false));
        // Prefers the first server, and goes to the second while that is down.
        let maps = cluster.admin().namespaced::<ConfigMap>("default");
        let write = async {
            let mut acknowledged = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let name = format!("w{}", written.fetch_add(1, Ordering::Relaxed));
                if maps.create(&map(&name, 0)).await.is_ok() {
                    acknowledged.push(name);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            acknowledged
        };
        let crash = async {
            for _ in 0..CRASHES {
                tokio::time::sleep(Duration::from_secs(3)).await;
                cluster.stop(Part::ApiServer(0));
                tokio::time::sleep(Duration::from_secs(3)).await;
                cluster.start(Part::ApiServer(0)).expect("it starts again");
            }
            tokio::time::sleep(Duration::from_secs(3)).await;
            ends.store(true, Ordering::Relaxed);
        };
        let (acknowledged, ()) = tokio::join!(write, crash);
        assert!(acknowledged.len() > 100, "it could write: {}", acknowledged.len());
        for server in both(cluster) {
            let list = server.namespaced::<ConfigMap>("default").list(&ListOptions::default()).await.expect("a list");
            let there: std::collections::BTreeSet<&str> = list.items.iter().map(|map| &*map.metadata.name).collect();
            let lost: Vec<&String> = acknowledged.iter().filter(|name| !there.contains(name.as_str())).collect();
            assert!(lost.is_empty(), "{lost:?}");
        }
    });
}
