//! Autoscalers at work.

use std::time::Duration;

use api_machinery::object::from_value;
use api_machinery::value::Value;
use bytes::Bytes;
use client::fake::FakeServer;
use client::{Transport, TransportError};
use component_base::Gates;
use component_base::serving::Body;
use serde_json::json;

use super::*;
use crate::workloads::fixtures::{Running, WithDiscovery, pod, ready};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

fn scaler(spec: Value) -> HorizontalPodAutoscaler {
    let body = json!({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec});
    from_value(&body).expect("an autoscaler")
}

/// A scaler of the replica set `web` from `min` to `max` by these metrics.
fn by(min: i32, max: i32, metrics: Value) -> HorizontalPodAutoscaler {
    let target = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"});
    scaler(json!({"scaleTargetRef": target, "minReplicas": min, "maxReplicas": max, "metrics": metrics}))
}

fn memory(percent: i32) -> Value {
    json!([{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization",
        "averageUtilization": percent}}}])
}

fn external(name: &str, value: &str) -> Value {
    json!({"type": "External", "external": {"metric": {"name": name}, "target": {"type": "Value", "value": value}}})
}

/// A running pod that asks for 100 MiB.
pub(super) fn asking(name: &str) -> Pod {
    let mut pod = ready(pod(name, "Running", None), 1);
    let body = json!({"name": "c", "resources": {"requests": {"memory": "100Mi"}}});
    pod.spec.containers.push(from_value(&body).expect("a container"));
    pod
}

/// A workload whose kind is at hand, which its scale can be read from, too.
fn workload(name: &str, replicas: i32, selector: &str) -> Value {
    let parts = selector.split_once('=');
    let labels: Value = parts.map(|(key, value)| json!({"matchLabels": {key: value}})).unwrap_or_default();
    json!({"metadata": {"name": name, "namespace": "ns"}, "spec": {"replicas": replicas, "selector": labels},
        "status": {"replicas": replicas, "selector": selector}})
}

/// What the next request of a method and a path finds in place of the replica set `web`.
type Meantime = Arc<Mutex<Option<(&'static str, &'static str, Value)>>>;

/// Notes the events that are told. Those of one moment have the same name, so the server keeps only the first of them.
struct Overheard {
    inner: Arc<dyn Transport>,
    server: FakeServer,
    events: Arc<Mutex<Vec<String>>>,
    meantime: Meantime,
}

impl Overheard {
    fn change(&self, request: &http::Request<Bytes>) {
        let is_it = |(method, path, _): &mut (&str, &str, Value)| {
            request.method() == *method && request.uri().path().ends_with(*path)
        };
        match self.meantime.lock().take_if(is_it) {
            Some((.., Value::Null)) => self.server.remove("apps/v1/replicasets", "ns", "web"),
            Some((.., object)) => self.server.put("apps/v1/replicasets", object),
            None => {}
        }
    }
}

#[async_trait::async_trait]
impl Transport for Overheard {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Body>, TransportError> {
        if request.method() == http::Method::POST && request.uri().path().ends_with("/events") {
            let event: Value = serde_json::from_slice(request.body()).expect("JSON");
            let text = |member: &str| event[member].as_str().unwrap_or_default().to_owned();
            self.events.lock().push(format!("{} {}: {}", text("type"), text("reason"), text("message")));
        }
        self.change(&request);
        self.inner.send(request).await
    }

    fn server(&self) -> &str {
        self.inner.server()
    }
}

struct World(Running, Arc<Mutex<Vec<String>>>, Meantime);

impl World {
    fn start() -> Self {
        Self::start_gated(Gates::default())
    }

    fn start_gated(gates: Gates) -> Self {
        let events = Arc::<Mutex<Vec<String>>>::default();
        let (told, meantime) = (Arc::clone(&events), Meantime::default());
        let changing = Arc::clone(&meantime);
        let transport = |server: &FakeServer| -> Arc<dyn Transport> {
            let (inner, server) = (server.transport(), server.clone());
            Arc::new(WithDiscovery(Arc::new(Overheard { inner, server, events: told, meantime: changing })))
        };
        Self(Running::start_all(KNOWN, gates, Settings::default(), transport), events, meantime)
    }

    /// The replica set becomes this, or goes, right before the next such request is answered.
    fn change_before(&self, method: &'static str, path: &'static str, object: Value) {
        *self.2.lock() = Some((method, path, object));
    }

    fn put_scale(&self, replicas: i32, selector: &str) {
        self.0.server.put("apps/v1/replicasets", workload("web", replicas, selector));
    }

    /// Pods `p0`, `p1` ... with what each uses.
    fn put_pods(&self, used: &[&str]) {
        for (index, used) in used.iter().enumerate() {
            let name = format!("p{index}");
            self.0.put("v1/pods", &asking(&name));
            let metrics = json!({"metadata": {"name": name, "namespace": "ns", "labels": {"app": "web"}},
                "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
                "containers": [{"name": "c", "usage": {"memory": used}}]});
            self.0.server.put("metrics.k8s.io/v1beta1/pods", metrics);
        }
    }

    fn put_scaler(&self, scaler: &HorizontalPodAutoscaler) {
        self.0.put("autoscaling/v2/horizontalpodautoscalers", scaler);
    }

    fn put_external(&self, name: &str, values: &[&str]) {
        for (index, value) in values.iter().enumerate() {
            let item = json!({"metadata": {"name": index.to_string(), "namespace": "ns"}, "metricName": name,
                "timestamp": "2026-01-01T00:00:00Z", "value": value});
            self.0.server.put(&format!("external.metrics.k8s.io/v1beta1/{name}"), item);
        }
    }

    fn replicas(&self) -> i64 {
        self.0.server.objects("apps/v1/replicasets")[0]["spec"]["replicas"].as_i64().unwrap()
    }

    fn status(&self) -> HorizontalPodAutoscalerStatus {
        let object = &self.0.server.objects("autoscaling/v2/horizontalpodautoscalers")[0];
        from_value::<HorizontalPodAutoscaler>(object).unwrap().status
    }

    fn condition(&self, type_: &str) -> (String, String, String) {
        let status = self.status();
        let found = status.conditions.into_iter().find(|condition| condition.type_ == type_);
        let found = found.unwrap_or_else(|| panic!("{type_} is not told"));
        (found.status, found.reason, found.message)
    }

    fn events(&self) -> Vec<String> {
        let mut events = self.1.lock().clone();
        events.sort_unstable();
        events
    }
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn told(status: &str, reason: &str, message: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), message.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_workload_grows_at_once_and_shrinks_after_a_while() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi", "100Mi"]);
    world.put_scaler(&by(1, 10, memory(50)));
    seconds(14).await;
    assert_eq!(world.0.requests("GET", "/scale"), 0, "the first look is a period after the beginning");
    seconds(5).await;
    assert_eq!(world.replicas(), 4);
    let status = world.status();
    assert_eq!((status.current_replicas, status.desired_replicas), (2, 4));
    assert!(status.last_scale_time.is_some());
    let current = &status.current_metrics[0].resource.as_ref().unwrap().current;
    assert_eq!(current.average_utilization, Some(100));
    assert_eq!(current.average_value.as_ref().unwrap().to_string(), "100Mi");
    let rescaled = "the HPA controller was able to update the target scale to 4";
    assert_eq!(world.condition(ABLE), told("True", "SucceededRescale", rescaled));
    let name = "memory resource utilization (percentage of request)";
    let found = format!("the HPA was able to successfully calculate a replica count from {name}");
    assert_eq!(world.condition(ACTIVE), told("True", "ValidMetricFound", &found));
    assert_eq!(world.events(), [format!("Normal SuccessfulRescale: New size: 4; reason: {name} above target")]);
    world.put_pods(&["10Mi", "10Mi", "10Mi", "10Mi"]);
    seconds(270).await;
    assert_eq!(world.replicas(), 4, "it was to have four a while ago");
    let message = "recent recommendations were higher than current one, applying the highest recent recommendation";
    assert_eq!(world.condition(ABLE), told("True", "ScaleDownStabilized", message));
    seconds(60).await;
    assert_eq!(world.replicas(), 1);
    assert!(
        world.events().contains(&"Normal SuccessfulRescale: New size: 1; reason: All metrics below target".to_owned())
    );
    world.0.assert_shows("horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 1");
    let line = "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"scale_up\",error=\"none\"} 1";
    world.0.assert_shows(line);
    let line = "horizontal_pod_autoscaler_controller_desired_replicas{hpa_name=\"web\",namespace=\"ns\"} 1";
    world.0.assert_shows(line);
}

#[tokio::test(start_paused = true)]
async fn a_steady_workload_is_read_and_left_alone() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["50Mi", "50Mi"]);
    world.put_scaler(&by(1, 10, memory(50)));
    seconds(20).await;
    let writes = world.0.requests("PUT", "/");
    assert_eq!(writes, 1, "the first status");
    seconds(150).await;
    assert_eq!(world.0.requests("PUT", "/"), writes);
    assert_eq!(world.0.requests("GET", "/scale"), 0, "its size is at hand");
    assert_eq!(world.events(), [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_at_hand_is_asked_for() {
    let world = World::start();
    world.0.server.put("v1/configmaps", workload("web", 2, "app=web"));
    world.put_pods(&["50Mi", "50Mi"]);
    let mut scaler = by(1, 10, memory(50));
    scaler.spec.scale_target_ref =
        from_value(&json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "web"})).unwrap();
    world.put_scaler(&scaler);
    seconds(170).await;
    assert_eq!(world.condition(ACTIVE).1, "ValidMetricFound");
    assert_eq!(world.0.requests("GET", "/scale"), 10, "once a period, and what asking for kinds takes");
}

#[tokio::test(start_paused = true)]
async fn every_workload_that_everybody_has_is_at_hand() {
    for (resource, version, kind) in [
        ("apps/v1/deployments", "apps/v1", "Deployment"),
        ("apps/v1/replicasets", "apps/v1", "ReplicaSet"),
        ("apps/v1/statefulsets", "apps/v1", "StatefulSet"),
        ("v1/replicationcontrollers", "v1", "ReplicationController"),
    ] {
        let world = World::start();
        let mut own = workload("web", 2, "app=web");
        if kind == "ReplicationController" {
            own["spec"]["selector"] = json!({"app": "web"});
        }
        world.0.server.put(resource, own);
        world.put_pods(&["50Mi", "50Mi"]);
        let mut scaler = by(1, 10, memory(50));
        let target = json!({"apiVersion": version, "kind": kind, "name": "web"});
        scaler.spec.scale_target_ref = from_value(&target).unwrap();
        world.put_scaler(&scaler);
        seconds(20).await;
        let status = world.status();
        assert_eq!((status.current_replicas, status.desired_replicas), (2, 2), "{kind}");
        assert_eq!(world.condition(ACTIVE).1, "ValidMetricFound", "{kind}");
        let found = "the HPA controller was able to get the target's current scale";
        assert!(world.condition(ABLE).2 != found && world.0.requests("GET", "/scale") == 0, "{kind}");
    }
}

/// Somebody changes the size of the workload at the moment at which the autoscaler asks the server for it.
#[tokio::test(start_paused = true)]
async fn what_is_at_hand_may_be_old() {
    for (replicas, expected, reason) in [
        // Four are wanted, but there were more a moment ago.
        (6, 6, "ScaleDownStabilized"),
        // As many as are wanted are there already.
        (4, 4, "ReadyForNewScale"),
        (3, 4, "SucceededRescale"),
        // Whoever left nothing wants nothing.
        (0, 0, "SucceededGetScale"),
    ] {
        let world = World::start();
        world.put_scale(2, "app=web");
        world.put_pods(&["100Mi", "100Mi"]);
        world.put_scaler(&by(1, 10, memory(50)));
        world.change_before("GET", "/replicasets/web/scale", workload("web", replicas, "app=web"));
        seconds(20).await;
        assert_eq!(world.replicas(), i64::from(expected), "{replicas}");
        let status = world.status();
        assert_eq!((status.current_replicas, status.desired_replicas), (replicas, expected), "{replicas}");
        assert_eq!(world.condition(ABLE).1, reason, "{replicas}");
        let writes = world.0.requests("PUT", "/scale");
        assert_eq!(writes, usize::from(replicas != expected), "{replicas}: what others did is not undone");
        if replicas == 0 {
            assert_eq!(world.condition(ACTIVE).1, "ScalingDisabled");
            assert_eq!(status.conditions.len(), 2, "what was decided on what is old is not told: {status:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_goes_before_it_is_scaled_is_not_found() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi", "100Mi"]);
    world.put_scaler(&by(1, 10, memory(50)));
    world.change_before("GET", "/replicasets/web/scale", Value::Null);
    seconds(20).await;
    let why = "replicasets.apps \"web\" not found";
    let message = format!("the HPA controller was unable to get the target's current scale: {why}");
    assert_eq!(world.condition(ABLE), told("False", "FailedGetScale", &message));
    assert_eq!(world.status().conditions.len(), 1, "nothing else is known");
    assert_eq!(world.events(), [format!("Warning FailedGetScale: {why}")]);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_no_obstacle() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi", "100Mi"]);
    world.put_scaler(&by(1, 10, memory(50)));
    world.0.server.fail_next("PUT", &[409, 409]);
    seconds(20).await;
    assert_eq!(world.replicas(), 4);
    assert_eq!(world.condition(ABLE).1, "SucceededRescale");
}

#[tokio::test(start_paused = true)]
async fn what_keeps_from_scaling_is_told() {
    let unable = |why: &str| format!("the HPA controller was unable to get the target's current scale: {why}");
    let failed = |why: &str| format!("the HPA was unable to compute the replica count: {why}");
    let fetch = "failed to get memory utilization: unable to get metrics for resource memory: no metrics returned from \
                 resource metrics API";
    let disabled = "scaling is disabled since the replica count of the target is zero";
    let missing = "replicasets.apps \"web\" not found";
    let unknown = "no matches for kind \"Gadget\" in group \"example.com\"";
    let gadget = scaler(json!({"maxReplicas": 3, "metrics": memory(50), "scaleTargetRef":
        {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "web"}}));
    let usual = || by(1, 10, memory(50));
    let invalid = format!(
        "invalid metrics (1 invalid out of 1), first error is: failed to get memory resource metric value: {fetch}"
    );
    let cases = [
        (
            usual(),
            None,
            ABLE,
            told("False", "FailedGetScale", &unable(missing)),
            vec![("FailedGetScale", missing.to_owned())],
        ),
        (
            gadget,
            None,
            ABLE,
            told("False", "FailedGetScale", &unable(unknown)),
            vec![("FailedGetScale", unknown.to_owned())],
        ),
        (usual(), Some((0, "app=web")), ACTIVE, told("False", "ScalingDisabled", disabled), vec![]),
        (
            usual(),
            Some((2, "")),
            ACTIVE,
            told("False", "InvalidSelector", "the HPA target's scale is missing a selector"),
            vec![
                ("FailedComputeMetricsReplicas", "selector is required".to_owned()),
                ("SelectorRequired", "selector is required".to_owned()),
            ],
        ),
        (
            usual(),
            Some((2, "app=web")),
            ACTIVE,
            told("False", "FailedGetResourceMetric", &failed(fetch)),
            vec![("FailedComputeMetricsReplicas", invalid), ("FailedGetResourceMetric", fetch.to_owned())],
        ),
    ];
    for (scaler, scale, type_, expected, events) in cases {
        let world = World::start();
        if let Some((replicas, selector)) = scale {
            world.put_scale(replicas, selector);
        }
        world.put_scaler(&scaler);
        seconds(20).await;
        assert_eq!(world.condition(type_), expected);
        let events: Vec<_> = events.iter().map(|(reason, text)| format!("Warning {reason}: {text}")).collect();
        assert_eq!(world.events(), events, "{expected:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_workload_is_put_into_its_range_without_metrics() {
    for (replicas, expected, reason) in [
        (12, 10, "Current number of replicas above Spec.MaxReplicas"),
        (1, 3, "Current number of replicas below Spec.MinReplicas"),
    ] {
        let world = World::start();
        world.put_scale(replicas, "app=web");
        world.put_scaler(&by(3, 10, memory(50)));
        seconds(20).await;
        assert_eq!(world.replicas(), expected);
        assert_eq!(world.events(), [format!("Normal SuccessfulRescale: New size: {expected}; reason: {reason}")]);
        assert_eq!(world.status().current_metrics, []);
        assert_eq!(world.0.requests("GET", "metrics.k8s.io"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_metric_keeps_from_shrinking_not_from_growing() {
    // Six are wanted, but no more than twice as many at once.
    for (load, expected, active) in [("300", 4, "True"), ("10", 2, "False")] {
        let world = World::start();
        world.put_scale(2, "app=web");
        world.put_pods(&["50Mi", "50Mi"]);
        world.put_external("load", &[load]);
        world.put_scaler(&by(1, 10, json!([external("load", "100"), external("silent", "1")])));
        seconds(20).await;
        assert_eq!(world.replicas(), expected, "{load}");
        assert_eq!(world.condition(ACTIVE).0, active, "{load}");
        let metrics = world.status().current_metrics;
        assert_eq!(metrics.len(), 2);
        assert_eq!((metrics[0].type_.as_str(), metrics[1].type_.as_str()), ("External", ""));
    }
}

#[tokio::test(start_paused = true)]
async fn what_pods_ask_for_as_a_whole_counts_by_its_gate() {
    for (on, expected) in [(true, 2), (false, 4)] {
        let world = World::start_gated(Gates::default().with(POD_LEVEL_RESOURCES, on));
        world.put_scale(2, "app=web");
        world.put_pods(&["100Mi", "100Mi"]);
        for name in ["p0", "p1"] {
            let mut pod = asking(name);
            pod.spec.resources = Some(from_value(&json!({"requests": {"memory": "200Mi"}})).expect("resources"));
            world.0.put("v1/pods", &pod);
        }
        world.put_scaler(&by(1, 10, memory(50)));
        seconds(20).await;
        assert_eq!(world.replicas(), expected, "{on}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_scalers_of_the_same_pods_do_nothing() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi", "100Mi"]);
    let mut second = by(1, 10, memory(50));
    second.metadata.name = "other".into();
    world.put_scaler(&second);
    seconds(20).await;
    world.put_scaler(&by(1, 10, memory(50)));
    seconds(45).await;
    let message = "pods by selector app=web are controlled by multiple HPAs: [ns/other ns/web]";
    assert_eq!(world.condition(ACTIVE), told("False", "AmbiguousSelector", message));
    assert_eq!(world.0.requests("PUT", "/scale"), 1, "only what the first did while it was alone");
}

/// What an object of an older version may carry (CVE-2024-0793) is a failure of that object alone.
#[tokio::test(start_paused = true)]
async fn an_odd_scaler_holds_up_no_other() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi", "100Mi"]);
    world.0.server.put("apps/v1/replicasets", workload("odd", 2, "app=odd"));
    let odd = [
        json!([]),
        json!([{}]),
        json!([{"type": "Resource"}, {"type": "Pods"}, {"type": "Object"}, {"type": "External"}, {"type": "Other"}]),
        json!([{"type": "Resource", "resource": {"name": "", "target": {"type": "Utilization"}}}]),
        json!([{"type": "ContainerResource", "containerResource": {"target": {"averageUtilization": -1}}}]),
        json!([{"type": "Object", "object": {"target": {"type": "Value", "value": "0"}}}]),
    ];
    for (number, metrics) in odd.into_iter().enumerate() {
        let mut scaler = by(1, 10, metrics);
        scaler.metadata.name = format!("odd-{number}");
        scaler.spec.scale_target_ref.name = "odd".to_owned();
        world.put_scaler(&scaler);
    }
    world.put_scaler(&by(1, 10, memory(50)));
    seconds(45).await;
    let sizes = world.0.server.objects("apps/v1/replicasets");
    let size = |name: &str| {
        let found = sizes.iter().find(|scale| scale["metadata"]["name"] == name);
        found.and_then(|scale| scale["spec"]["replicas"].as_i64())
    };
    assert_eq!((size("web"), size("odd")), (Some(4), Some(2)));
}

/// Autoscalers that have most of a namespace between them ask once for all of it.
#[tokio::test(start_paused = true)]
async fn many_scalers_of_a_namespace_read_together() {
    let world = World::start();
    for (number, used) in [(0, "100Mi"), (1, "50Mi"), (2, "25Mi"), (3, "100Mi"), (4, "50Mi")] {
        let (name, label) = (format!("w{number}"), json!({"app": format!("w{number}")}));
        world.0.server.put("apps/v1/replicasets", workload(&name, 1, &format!("app={name}")));
        let mut pod = asking(&format!("p{number}"));
        pod.metadata.labels = [("app".to_owned(), name.clone())].into();
        world.0.put("v1/pods", &pod);
        // Some servers of metrics tell no labels.
        let labels = if number < 3 { label } else { json!({}) };
        let metrics = json!({"metadata": {"name": format!("p{number}"), "namespace": "ns", "labels": labels},
            "timestamp": "2026-01-01T00:00:00Z", "window": "15s", "containers": [{"name": "c", "usage": {"memory": used}}]});
        world.0.server.put("metrics.k8s.io/v1beta1/pods", metrics);
        let mut scaler = by(1, 10, memory(50));
        (scaler.metadata.name, scaler.spec.scale_target_ref.name) = (name.clone(), name);
        world.put_scaler(&scaler);
    }
    // The first looks find out how many they are.
    seconds(20).await;
    let before = world.0.requests("GET", "metrics.k8s.io/v1beta1/namespaces/ns/pods");
    seconds(15).await;
    assert_eq!(world.0.requests("GET", "metrics.k8s.io/v1beta1/namespaces/ns/pods") - before, 1);
    let sizes = world.0.server.objects("apps/v1/replicasets");
    let size = |name: &str| {
        let found = sizes.iter().find(|scale| scale["metadata"]["name"] == name);
        found.and_then(|scale| scale["spec"]["replicas"].as_i64())
    };
    let sizes = ["w0", "w1", "w2", "w3", "w4"].map(size);
    assert_eq!(sizes, [Some(2), Some(1), Some(1), Some(2), Some(1)], "each by what its own pods use");
}

#[tokio::test(start_paused = true)]
async fn metrics_come_from_their_apis() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["50Mi", "50Mi"]);
    let object = json!({"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject":
        {"apiVersion": "v1", "kind": "Pod", "name": "p0"}, "target": {"type": "Value", "value": "10"}}});
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"type": "AverageValue",
        "averageValue": "10"}}});
    world.put_scaler(&by(1, 10, json!([object, pods, external("load", "1")])));
    seconds(20).await;
    let not_there = "no custom metrics API (custom.metrics.k8s.io) registered";
    let events = world.events();
    let object = format!(
        "Warning FailedGetObjectMetric: unable to get metric hits: Pod on ns p0/unable to fetch metrics from custom metrics \
         API: {not_there}"
    );
    assert!(events.contains(&object), "{events:#?}");
    let pods = format!(
        "Warning FailedGetPodsMetric: unable to get metric hits: unable to fetch metrics from custom metrics API: {not_there}"
    );
    assert!(events.contains(&pods), "{events:#?}");
    let load = "Warning FailedGetExternalMetric: failed to get external metric load: unable to get external metric \
                ns/load/nil: no metrics returned from external metrics API";
    assert!(events.contains(&load.to_owned()), "{events:#?}");
    assert_eq!(world.0.requests("GET", "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/load"), 1);
}

#[test]
fn courses() {
    let spec = |min, metrics| by(min, 10, metrics).spec;
    let load = || json!([external("load", "1")]);
    for (case, spec, current, scaled_to_zero, expected) in [
        ("nothing", spec(1, memory(50)), 0, false, Course::Suspended),
        ("nothing, by itself, and no way back", spec(0, memory(50)), 0, true, Course::Suspended),
        ("nothing, by itself", spec(0, load()), 0, true, Course::Compute),
        ("nothing, by somebody else", spec(0, load()), 0, false, Course::Suspended),
        (
            "nothing, and that is too few by now",
            spec(2, load()),
            0,
            true,
            Course::Into(2, "Current number of replicas below Spec.MinReplicas"),
        ),
        ("between", spec(1, memory(50)), 10, false, Course::Compute),
    ] {
        assert_eq!(course(&spec, current, scaled_to_zero), expected, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_told_though_the_status_cannot_be_written() {
    let world = World::start();
    world.put_scale(2, "app=web");
    world.put_pods(&["100Mi"]);
    world.put_scaler(&by(
        1,
        10,
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization",
        "averageUtilization": 50}}}]),
    ));
    world.0.server.fail_next("PUT", &[403]);
    seconds(20).await;
    let events = world.events();
    let is_told = |reason: &str| events.iter().any(|event| event.starts_with(&format!("Warning {reason}: ")));
    assert!(is_told("FailedUpdateStatus"), "{events:?}");
    assert!(is_told("FailedComputeMetricsReplicas"), "{events:?}");
}
