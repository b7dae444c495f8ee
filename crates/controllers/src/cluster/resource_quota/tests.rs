//! What is written of a quota, and the controller against the fake server.

use api_machinery::quantity::Quantity;
use api_types::core_v1::ResourceList;
use bytes::Bytes;
use client::fake::FakeServer;
use client::{NoMetrics, RateLimit, Transport, TransportError, WorkQueue};
use component_base::Gates;
use component_base::serving::{Body, full};
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

/// A pod that asks for a core.
fn pod(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ns"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}})
}

#[tokio::test(start_paused = true)]
async fn pods_are_counted_as_they_come_to_be_known_and_go() {
    let running = Running::start(&[DESCRIPTOR]);
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
async fn what_pods_ask_for_as_a_whole_counts_by_its_gate() {
    for (on, expected, left) in [(true, "cpu=6 pods=2", "cpu=3 pods=1"), (false, "cpu=2 pods=2", "cpu=1 pods=1")] {
        let gates = Gates::default().with(POD_LEVEL_RESOURCES, on);
        let running = Running::start_all(&[DESCRIPTOR], gates, Settings::default(), FakeServer::transport);
        for name in ["a", "b"] {
            let mut pod = pod(name);
            pod["spec"]["resources"] = json!({"requests": {"cpu": "3"}});
            running.server.put("v1/pods", pod);
        }
        let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
            "spec": {"hard": {"pods": "5", "cpu": "9"}}});
        running.server.put("v1/resourcequotas", quota);
        run_until_idle().await;
        let quotas = running.client.namespaced::<ResourceQuota>("ns");
        assert_eq!(quotas.get("q").await.unwrap().status.used, amounts(expected), "{on}");
        running.server.remove("v1/pods", "ns", "a");
        run_until_idle().await;
        assert_eq!(quotas.get("q").await.unwrap().status.used, amounts(left), "{on}");
    }
}

/// Of a release that is told of, as much is given back as was counted.
#[test]
fn a_pod_as_a_whole_is_chosen_and_counted_by_its_gate() {
    use api_machinery::object::from_value;
    use component_helpers::quota::{Circumstances, Evaluator};
    let mut quota = quota("cpu=9 pods=9", "", "");
    quota.spec.scopes = vec!["BestEffort".into()];
    let pod = json!({"metadata": {"name": "p"}, "spec": {"resources": {"requests": {"cpu": "3"}}, "containers": [{"name": "c"}]}});
    let pod: api_types::core_v1::Pod = from_value(&pod).unwrap();
    let at = Circumstances { now: api_machinery::time::Time::from_unix_seconds(0), devices: None };
    let chosen = |pod_level: PodLevel| pod_level.usage(&Evaluator::Pods, &quota.spec, &pod, at).is_some();
    assert_eq!((chosen(PodLevel::Counts), chosen(PodLevel::Ignored)), (false, true));
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

const CLAIMS: &str = "resource.k8s.io/v1/resourceclaims";
const OF_CLASS: &str = "requests.deviceclass.resource.kubernetes.io/gpu";

/// A claim for two devices of a class, made by the scheduler where `owner` is the uid of a pod.
fn device_claim(name: &str, class: &str, owner: Option<&str>) -> serde_json::Value {
    let request =
        json!({"name": "r", "exactly": {"deviceClassName": class, "allocationMode": "ExactCount", "count": 2}});
    let mut claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"devices": {"requests": [request]}}});
    if let Some(uid) = owner {
        claim["metadata"]["annotations"] = json!({"resource.kubernetes.io/extended-resource-claim": "true"});
        claim["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, "controller": true}]);
    }
    claim
}

/// A server that offers claims for devices, or does not.
struct DeviceApi {
    server: Arc<dyn Transport>,
    is_there: bool,
}

impl DeviceApi {
    fn running(is_there: bool) -> Running {
        Running::start_over(&[DESCRIPTOR], Settings::default(), |server| {
            Arc::new(Self { server: server.transport(), is_there })
        })
    }

    fn discovery(&self) -> String {
        let claims = json!({"resource": "resourceclaims", "scope": "Namespaced", "responseKind": {"kind": "ResourceClaim"},
            "verbs": ["create", "delete", "get", "list", "watch"]});
        let group = json!({"metadata": {"name": "resource.k8s.io"},
            "versions": [{"version": "v1", "freshness": "Current", "resources": [claims]}]});
        let groups = if self.is_there { vec![group] } else { Vec::new() };
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups}).to_string()
    }
}

#[async_trait::async_trait]
impl Transport for DeviceApi {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        let path = request.uri().path();
        let mut response = http::Response::new(full(self.discovery()));
        if path == "/apis" {
            let json = http::HeaderValue::from_static("application/json");
            response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        } else if path.starts_with("/apis/resource.k8s.io/") && !self.is_there {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        } else {
            return self.server.send(request).await;
        }
        Ok(response)
    }

    fn server(&self) -> &str {
        self.server.server()
    }
}

#[tokio::test(start_paused = true)]
async fn devices_are_counted_by_every_name_and_once_for_a_pod() {
    let running = DeviceApi::running(true);
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"extendedResourceName": "example.com/gpu"}});
    running.server.put("resource.k8s.io/v1/deviceclasses", class);
    running.server.put(CLAIMS, device_claim("own", "gpu", None));
    running.server.put(CLAIMS, device_claim("other", "big", None));
    let container = json!({"name": "c", "resources": {"requests": {"example.com/gpu": "2", "example.com/nic": "1"}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [container]}});
    running.server.put("v1/pods", pod);
    let hard = json!({"count/resourceclaims.resource.k8s.io": "9", "gpu.deviceclass.resource.k8s.io/devices": "9",
        "requests.example.com/gpu": "9", "requests.example.com/nic": "9", OF_CLASS: "9"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": hard}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    let used = async |claims: u8, of_class: u8, extended: u8, nics: u8| {
        let expected = amounts(&format!(
            "count/resourceclaims.resource.k8s.io={claims} gpu.deviceclass.resource.k8s.io/devices={of_class} \
             {OF_CLASS}={of_class} requests.example.com/gpu={extended} requests.example.com/nic={nics}"
        ));
        assert_eq!(quotas.get("q").await.unwrap().status.used, expected);
    };
    used(2, 2, 4, 1).await;
    running.server.put(CLAIMS, device_claim("made", "gpu", Some("u")));
    // What is made, admission books; this is the count of every few minutes.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    used(3, 4, 4, 1).await;
    // Without the pod that was charged for them, the devices are the claim's.
    running.server.remove("v1/pods", "ns", "a");
    run_until_idle().await;
    used(3, 4, 4, 0).await;
    running.server.remove(CLAIMS, "ns", "made");
    run_until_idle().await;
    used(2, 2, 2, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_without_claims_for_devices_holds_up_no_other_count() {
    let running = DeviceApi::running(false);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "5", "requests.example.com/gpu": "4"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    assert_eq!(quotas.get("q").await.unwrap().status.used, amounts("pods=0 requests.example.com/gpu=0"));
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

#[tokio::test(start_paused = true)]
async fn what_goes_is_released_at_once_and_leaves_what_is_on_its_way_booked() {
    let running = Running::start(&[DESCRIPTOR]);
    running.server.put("v1/pods", pod("a"));
    running.server.put("v1/pods", pod("b"));
    // Another controller has counted this one; what was booked since is not known.
    let amounts_of_three = json!({"pods": "3", "cpu": "3"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": amounts_of_three}, "status": {"hard": amounts_of_three, "used": amounts_of_three}});
    running.server.put("v1/resourcequotas", quota);
    let quotas = running.client.namespaced::<ResourceQuota>("ns");
    let used = async |after_ms: u64, expected: &str| {
        tokio::time::sleep(std::time::Duration::from_millis(after_ms)).await;
        assert_eq!(quotas.get("q").await.unwrap().status.used, amounts(expected), "after {after_ms} ms");
    };
    used(100, "pods=3 cpu=3").await;
    running.server.remove("v1/pods", "ns", "a");
    used(100, "pods=2 cpu=2").await;
    used(2000, "pods=1 cpu=1").await;
    book(&running, "pods=2 cpu=2").await;
    running.server.put("v1/pods", pod("c"));
    used(5000, "pods=2 cpu=2").await;
    running.server.remove("v1/pods", "ns", "b");
    used(100, "pods=1 cpu=1").await;
    book(&running, "pods=2 cpu=2").await;
    // What had been counted as gone is not taken from a booking that comes later.
    running.server.remove("v1/pods", "ns", "c");
    used(1000, "pods=1 cpu=1").await;
    running.server.put("v1/pods", pod("d"));
    used(5000, "pods=1 cpu=1").await;
}

#[tokio::test(start_paused = true)]
async fn what_never_came_is_released_while_more_is_booked() {
    let running = Running::start(&[DESCRIPTOR]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ns"}});
    running.server.put("v1/pods", pod);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "ns"},
        "spec": {"hard": {"pods": "500"}}});
    running.server.put("v1/resourcequotas", quota);
    run_until_idle().await;
    for booked in 2..=100 {
        book(&running, &format!("pods={booked}")).await;
        tokio::time::sleep(std::time::Duration::from_millis(90)).await;
    }
    running.server.remove("v1/pods", "ns", "a");
    tokio::time::sleep(std::time::Duration::from_millis(90)).await;
    let used = running.client.namespaced::<ResourceQuota>("ns").get("q").await.unwrap().status.used;
    let pods = used["pods"].value();
    // Two seconds, and what is gathered with the first of them.
    assert!((20..=25).contains(&pods), "{pods} may still be on their way");
}

#[tokio::test(start_paused = true)]
async fn what_a_whole_count_may_have_seen_go_is_not_released_from_a_later_booking() {
    let clock = base::TokioClock::shared();
    let queue = WorkQueue::new("q", RateLimit::default(), Arc::clone(&clock), Arc::new(NoMetrics));
    let booked = Booked::new(&clock, &queue);
    let versioned = |version: &str, used: &str| {
        let mut quota = quota("pods=5", "pods=5", used);
        quota.metadata.resource_version = version.into();
        Arc::new(quota)
    };
    let [found, written, later] =
        [("1", "pods=1"), ("2", "pods=0"), ("3", "pods=1")].map(|own| versioned(own.0, own.1));
    let key = ObjectKey::of(&found.metadata);
    booked.notice(&Change::Added { object: Arc::clone(&found), initial: true });
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let since = booked.begin(&key, &found);
    booked.note_released(&key, &amounts("pods=1"));
    booked.note_own(&key, "2");
    booked.finish(&key, since, true);
    booked.notice(&Change::Updated { old: found, new: Arc::clone(&written) });
    booked.notice(&Change::Updated { old: written, new: Arc::clone(&later) });
    let mut usage = amounts("pods=0");
    booked.begin(&key, &later).raise(&later, &mut usage);
    assert_eq!(usage, amounts("pods=1"));
}
