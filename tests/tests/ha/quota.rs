//! A quota that both servers charge.

use std::time::Duration;

use api_machinery::object::from_value;
use api_types::core_v1::{ConfigMap, Namespace, ResourceQuota};
use client::Client;
use serde_json::json;
use testing::Cluster;

use crate::{both, doubled, until};

const NAMESPACE: &str = "bounded";
const QUOTA: &str = "maps";
const COUNT: &str = "count/configmaps";
/// The certificates that every namespace is given are the first of them.
const HARD: &str = "4";
/// How late the second server hears of what the first has written; longer than the quota's controller takes to count.
const LAG: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(60);

async fn make(client: &Client, name: &str) -> Result<ConfigMap, client::ClientError> {
    let mut map = ConfigMap::default();
    map.metadata.name = name.to_owned();
    client.namespaced(NAMESPACE).create(&map).await
}

async fn used(client: &Client) -> String {
    let quota = client.namespaced::<ResourceQuota>(NAMESPACE).get(QUOTA).await.expect("the quota");
    quota.status.used.get(COUNT).map(ToString::to_string).unwrap_or_default()
}

/// A namespace in which so many maps may be, and one is.
async fn bounded(cluster: &Cluster, servers: &[std::sync::Arc<Client>; 2]) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.to_owned();
    cluster.admin().all::<Namespace>().create(&namespace).await.expect("a namespace");
    let quota = json!({"metadata": {"name": QUOTA}, "spec": {"hard": {COUNT: HARD}}});
    let quota: ResourceQuota = from_value(&quota).expect("a quota");
    cluster.admin().namespaced(NAMESPACE).create(&quota).await.expect("a quota");
    for server in servers {
        until("it is counted", LIMIT, async || used(server).await == "1").await;
    }
}

#[test]
fn a_server_that_hears_late_charges_what_is_there() {
    doubled(async |cluster| {
        let servers = both(cluster);
        bounded(cluster, &servers).await;
        cluster.set_lag(1, LAG);
        for name in ["first", "second"] {
            make(&servers[0], name).await.expect("there is room for it");
        }
        make(&servers[1], "third").await.expect("there is room for it, and nobody else writes");
        assert_eq!(used(&servers[0]).await, HARD);

        let refused = make(&servers[1], "fourth").await.expect_err("no more may be there");
        assert!(refused.to_string().contains("exceeded quota: maps"), "{refused}");
    });
}
