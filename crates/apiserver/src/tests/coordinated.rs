//! Coordinated leader election: instances that say what they are of, and the server that decides who of them leads.

use std::time::Duration;

use api_types::coordination_v1::Lease;
use api_types::coordination_v1beta1::LeaseCandidate;
use base::{CancellationToken, Rng};
use client::{Candidacy, Client, LeaderConfig, LeaderElector, LeaderEnd};
use component_base::Gates;

use super::harness::Api;
use crate::gates::COORDINATED;

/// An instance that acts as some version, and the token that ends it.
fn instance(client: &Client, seed: u64, emulation_version: &str) -> (LeaderElector, CancellationToken) {
    let candidacy = Candidacy { binary_version: "1.36.0".to_owned(), emulation_version: emulation_version.to_owned() };
    let config = LeaderConfig::new("kube-system", "component", &format!("host{seed}"), &Rng::seeded(seed));
    let config = LeaderConfig { coordinated: Some(candidacy), ..config };
    let elector = LeaderElector::new(client, config, None).unwrap();
    let (own, stop) = (elector.clone(), CancellationToken::new());
    let stopped = stop.clone();
    client.tasks().spawn_cancellable("instance", async move {
        // As a process that is started again whenever it has lost.
        while own.run(stopped.clone(), |_| std::future::pending()).await == LeaderEnd::Lost {}
    });
    (elector, stop)
}

async fn leads(elector: &LeaderElector) {
    for _ in 0..600 {
        if elector.is_leader() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it does not lead");
}

#[tokio::test(start_paused = true)]
async fn the_instance_of_the_oldest_emulation_leads_and_another_follows() {
    let on = Gates::default().with(COORDINATED, true);
    let api = Api::as_process(|lifecycle| lifecycle.with_gates(on), |_| {}).await;
    api.wait_until_ready().await;
    let client = api.server.cx().loopback();
    let (newer, _stop) = instance(client, 1, "1.36.0");
    leads(&newer).await;
    let (older, stop_older) = instance(client, 2, "1.35.0");
    leads(&older).await;
    assert!(!newer.is_leader());
    let leases = client.namespaced::<Lease>("kube-system");
    let lease = leases.get("component").await.unwrap();
    assert_eq!(lease.spec.strategy.as_deref(), Some("OldestEmulationVersion"));
    assert_eq!(lease.spec.preferred_holder, None);
    let deciding = leases.get("leader-election-controller").await.unwrap();
    assert_eq!(deciding.spec.lease_duration_seconds, Some(15));

    stop_older.cancel();
    leads(&newer).await;
    let candidates = client.namespaced::<LeaseCandidate>("kube-system");
    assert_eq!(candidates.list(&Default::default()).await.unwrap().items.len(), 2);
    tokio::time::sleep(Duration::from_secs(61 * 60)).await;
    let left = candidates.list(&Default::default()).await.unwrap().items;
    assert_eq!(left.len(), 1, "who is gone is forgotten");
    assert!(newer.is_leader());
}

#[tokio::test(start_paused = true)]
async fn without_the_gate_nobody_decides() {
    let api = Api::start().await;
    let (elector, _stop) = instance(api.server.cx().loopback(), 1, "1.36.0");
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(!elector.is_leader());
}
