//! One of two controller managers and schedulers works at a time.

use std::time::Duration;

use api_types::apps_v1::Deployment;
use api_types::coordination_v1::Lease;
use api_types::core_v1::Pod;
use client::Faults;
use testing::{Cluster, Exchange, Part};
use tokio::time::Instant;

use crate::{deployment, doubled, until};

const REPLICAS: usize = 6;
/// The longest that a leader who is gone keeps its office, and a candidate waits between two tries.
const SUCCESSION: Duration = Duration::from_secs(15 + 5);
const ROLLOUT: Duration = Duration::from_secs(60);

async fn leader(cluster: &Cluster, lease: &str) -> String {
    let lease = cluster.admin().namespaced::<Lease>("kube-system").get_opt(lease).await.expect("a read");
    let holder = lease.and_then(|lease| lease.spec.holder_identity).unwrap_or_default();
    holder.split('_').next().unwrap_or_default().to_owned()
}

/// The part that leads, and the other one.
async fn parts(cluster: &Cluster, lease: &str, part: fn(u8) -> Part) -> [Part; 2] {
    let mut all = [part(0), part(1)];
    until("somebody leads", SUCCESSION, async || !leader(cluster, lease).await.is_empty()).await;
    if leader(cluster, lease).await != all[0].to_string() {
        all.swap(0, 1);
    }
    assert_eq!(leader(cluster, lease).await, all[0].to_string());
    all
}

async fn running(cluster: &Cluster) -> usize {
    let pods = cluster.admin().namespaced::<Pod>("default").list(&Default::default()).await.expect("a list").items;
    pods.iter().filter(|pod| pod.status.phase == "Running").count()
}

async fn scale(cluster: &Cluster, replicas: usize) {
    let deployments = cluster.admin().namespaced::<Deployment>("default");
    let patch = serde_json::json!({"spec": {"replicas": replicas}});
    deployments.patch("web", &client::Patch::Merge(patch)).await.expect("it is scaled");
}

fn pods_made(cluster: &Cluster) -> usize {
    let made = |own: &Exchange| own.method == "POST" && own.path.contains("/pods") && own.status == Some(201);
    let exchanges = cluster.trace().exchanges();
    exchanges
        .iter()
        .filter(|own| made(own) && !own.path.contains("/binding") && !own.path.contains("/eviction"))
        .count()
}

#[test]
fn another_goes_on_where_a_leader_was_killed() {
    doubled(async |cluster| {
        let [first, second] = parts(cluster, "kube-controller-manager", Part::Controllers).await;
        let [scheduling, _] = parts(cluster, "kube-scheduler", Part::Scheduler).await;
        let deployments = cluster.admin().namespaced::<Deployment>("default");
        deployments.create(&deployment("web", 2)).await.expect("a deployment");
        until("two run", ROLLOUT, async || running(cluster).await == 2).await;
        // In the middle of its work, and before more.
        scale(cluster, REPLICAS - 2).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        cluster.stop(first);
        cluster.stop(scheduling);
        scale(cluster, REPLICAS).await;
        until("all run", SUCCESSION + ROLLOUT, async || running(cluster).await == REPLICAS).await;
        assert_eq!(leader(cluster, "kube-controller-manager").await, second.to_string());
        tokio::time::sleep(ROLLOUT).await;
        assert_eq!((running(cluster).await, pods_made(cluster)), (REPLICAS, REPLICAS), "none was made twice");
        cluster.start(first).expect("it starts again");
        tokio::time::sleep(ROLLOUT).await;
        assert_eq!(leader(cluster, "kube-controller-manager").await, second.to_string(), "who came back waits");
    });
}

#[test]
fn nothing_of_a_deposed_leader_lands_late() {
    doubled(async |cluster| {
        let [first, second] = parts(cluster, "kube-controller-manager", Part::Controllers).await;
        cluster.admin().namespaced::<Deployment>("default").create(&deployment("web", 2)).await.expect("a deployment");
        until("two run", ROLLOUT, async || running(cluster).await == 2).await;
        // All it asks arrives, but up to a minute later: its leases, too.
        let slow = Faults { delay: 1.0, delay_limit: Duration::from_secs(60), ..Faults::default() };
        cluster.set_faults_of(first, &slow);
        let start = Instant::now();
        scale(cluster, REPLICAS).await;
        let successor = async || leader(cluster, "kube-controller-manager").await == second.to_string();
        until("another leads", SUCCESSION * 2 + Duration::from_secs(60), successor).await;
        until("all run", ROLLOUT, async || running(cluster).await == REPLICAS).await;
        scale(cluster, REPLICAS + 2).await;
        until("two more run", ROLLOUT, async || running(cluster).await == REPLICAS + 2).await;
        tokio::time::sleep(Duration::from_secs(120).saturating_sub(start.elapsed())).await;

        let exchanges = cluster.trace().exchanges();
        let of = |part: Part| {
            let name = part.to_string();
            exchanges.iter().filter(move |own| *own.who == name && own.status.is_some_and(|code| code < 300))
        };
        let lease = |own: &&Exchange| own.method != "GET" && own.path.contains("/leases/kube-controller-manager");
        let taken = of(second).find(lease).expect("it took the lease").answered;
        let writes = of(first).filter(|own| own.method != "GET");
        let last = writes.map(|own| own.answered).max().expect("it has written");
        assert!(last <= taken, "a write landed at {last:?}, after the lease was taken at {taken:?}");
        assert!(of(second).any(|own| own.method == "POST" && own.answered > taken), "the other one works");
    });
}
