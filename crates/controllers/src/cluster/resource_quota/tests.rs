//! What is written of a quota, and the controller against the fake server.

use api_machinery::quantity::Quantity;
use api_types::core_v1::ResourceList;
use serde_json::json;

use super::*;
use crate::workloads::fixtures::{Running, WithDiscovery, run_until_idle};

fn amounts(text: &str) -> ResourceList {
    let pair = |pair: &str| {
        let (name, amount) = pair.split_once('=').unwrap();
        (name.to_owned(), Quantity::parse(amount).unwrap())
    };
    text.split_whitespace().map(pair).collect()
}

fn quota(hard: &str, status: &str, used: &str) -> ResourceQuota {
    let mut quota = ResourceQuota::default();
    quota.spec.hard = amounts(hard);
    quota.status.hard = amounts(status);
    quota.status.used = amounts(used);
    quota
}

#[test]
fn plans() {
    for (name, quota, usage, expected) in [
        ("new", quota("pods=1", "", ""), "pods=0", Some("pods=0")),
        ("steady state", quota("pods=1", "pods=1", "pods=1"), "pods=1", None),
        ("less is used", quota("pods=1", "pods=1", "pods=1"), "pods=0", Some("pods=0")),
        ("a new limit", quota("pods=2", "pods=1", "pods=1"), "pods=1", Some("pods=1")),
        (
            "not counted",
            quota("pods=2 secrets=1", "pods=2 secrets=1", "pods=1 secrets=1"),
            "pods=0",
            Some("pods=0 secrets=1"),
        ),
        ("no longer limited", quota("pods=2", "pods=2 secrets=1", "pods=1 secrets=1"), "pods=1", Some("pods=1")),
    ] {
        let actual = plan(&quota, amounts(usage)).map(|status| status.used);
        assert_eq!(actual, expected.map(amounts), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_as_they_come_to_be_known_and_go() {
    let running = Running::start(&[DESCRIPTOR]);
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}})
    };
    running.server.put("v1/pods", pod("a"));
    running.server.put("v1/pods", pod("b"));
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "5", "cpu": "4"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    assert_eq!(quotas.get("q").await.unwrap().status.used, amounts("cpu=2 pods=2"));
    running.server.remove("v1/pods", "ns", "a");
    run_until_idle().await;
    assert_eq!(quotas.get("q").await.unwrap().status.used, amounts("cpu=1 pods=1"));
}

#[tokio::test(start_paused = true)]
async fn what_discovery_finds_is_counted_without_waiting_for_the_next_round() {
    let running = Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
        std::sync::Arc::new(WithDiscovery(server.transport()))
    });
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "ns"}});
    running.server.put("v1/configmaps", map);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "5", "count/configmaps": "4", "configmaps": "4"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    let used = quotas.get("q").await.unwrap().status.used;
    assert_eq!(used, amounts("pods=0 count/configmaps=1 configmaps=1"));
}

/// What admission does: it books a use without this controller's help.
async fn book(running: &Running, used: &str) {
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    let mut quota = quotas.get("q").await.unwrap();
    quota.status.used = amounts(used);
    quotas.update_status(&quota).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_booked_for_something_that_is_gone_is_released_soon() {
    let running = Running::start(&[DESCRIPTOR]);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "5"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    // The pod has come and gone, and the deletion was counted, before the booking is seen.
    running
        .server
        .put("v1/pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}}));
    running.server.remove("v1/pods", "ns", "a");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    book(&running, "pods=1").await;
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    assert_eq!(quotas.get("q").await.unwrap().status.used, amounts("pods=0"));
    running.assert_steady().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_booked_just_now_is_not_taken_away_before_it_comes() {
    let running = Running::start(&[DESCRIPTOR]);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "50"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    for booked in 1..=10 {
        book(&running, &format!("pods={booked}")).await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(quotas.get("q").await.unwrap().status.used, amounts(&format!("pods={booked}")));
    }
    run_until_idle().await;
    assert_eq!(quotas.get("q").await.unwrap().status.used, amounts("pods=0"), "nothing of it came");
}
