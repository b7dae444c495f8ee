//! The scheduler on live nodes: what fits where, and who makes room for whom. The resource that is fought for is one
//! that only these pods want.

use serde_json::{Value, json};

use super::check::Check;
use super::live::Place;
use super::object::{condition_of, echo, is_true, name_of, pause, pod, text, with};
use super::workloads::{pods_until, workload};

const RESOURCE: &str = "example.com/fakecpu";
const NODE: &str = "node-2";

pub(crate) fn checks() -> Vec<Check> {
    vec![predicates(), host_ports(), preemption()]
}

fn unschedulable(pod: &Value) -> bool {
    condition_of(pod, "PodScheduled")["reason"] == "Unschedulable"
}

fn predicates() -> Check {
    const ITEMS: &[&str] = &[
        "SchedulerPredicates validates resource limits of pods that are allowed to run",
        "SchedulerPredicates validates that NodeSelector is respected if matching",
    ];
    Check::new("predicates", ITEMS, async |place: Place| {
        let asks = |name: &str, cpu: &str| {
            pod(name, &[with(pause("main"), json!({"resources": {"requests": {"cpu": cpu}}}))], json!({}))
        };
        place.create("pods", &asks("too-large", "100")).await.ok();
        let pod_of = place.until(&place.path("pods/too-large"), unschedulable).await;
        let message = text(&condition_of(&pod_of, "PodScheduled")["message"]).to_owned();
        assert!(message.contains("0/2 nodes are available: 2 Insufficient cpu."), "{message}");
        let label = |value: Value| json!({"metadata": {"labels": {"conformance-chosen": value}}});
        place.merge(&format!("/api/v1/nodes/{NODE}"), &label(json!("42"))).await.ok();
        let chosen = pod("chosen", &[pause("main")], json!({"nodeSelector": {"conformance-chosen": "42"}}));
        assert_eq!(place.ready(&chosen).await["spec"]["nodeName"], NODE);
        place.merge(&format!("/api/v1/nodes/{NODE}"), &label(Value::Null)).await.ok();
    })
}

fn host_ports() -> Check {
    const ITEM: &str = "SchedulerPredicates validates that there exists conflict between pods with same hostPort and protocol but one using 0.0.0.0 hostIP";
    Check::new("port-conflict", &[ITEM], async |place: Place| {
        let server = |name: &str, port: Value| {
            let port = with(json!({"containerPort": 8080, "hostPort": 54_322, "protocol": "TCP"}), port);
            let spec = json!({"nodeSelector": {"kubernetes.io/hostname": NODE}});
            pod(name, &[with(echo("main", 8080), json!({"ports": [port]}))], spec)
        };
        place.ready(&server("any-address", json!({}))).await;
        place.create("pods", &server("one-address", json!({"hostIP": "127.0.0.1"}))).await.ok();
        let refused = place.until(&place.path("pods/one-address"), unschedulable).await;
        let message = text(&condition_of(&refused, "PodScheduled")["message"]).to_owned();
        assert!(message.contains("didn't have free ports for the requested pod ports"), "{message}");
    })
}

/// Sets how much of the resource a node has; `None` takes it away.
async fn offer(place: &Place, node: &str, amount: Option<u32>) {
    let amount = amount.map_or(Value::Null, |amount| json!(amount.to_string()));
    let status = json!({"status": {"capacity": {RESOURCE: amount}, "allocatable": {RESOURCE: amount}}});
    place.strategic(&format!("/api/v1/nodes/{node}/status"), &status).await.ok();
}

fn wants(amount: u32) -> Value {
    let amount = json!({RESOURCE: amount.to_string()});
    with(pause("main"), json!({"resources": {"requests": amount, "limits": amount}}))
}

async fn classes(place: &Place) {
    for (name, value) in [("conformance-p1", 1), ("conformance-p2", 2), ("conformance-p3", 3), ("conformance-p4", 4)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let made = place.post("/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
        assert!(made.code == 201 || made.code == 409, "{}", made.text);
    }
}

fn preemption() -> Check {
    const ITEMS: &[&str] = &[
        "SchedulerPreemption validates basic preemption works",
        "SchedulerPreemption validates lower priority pod preemption by critical pod",
        "SchedulerPreemption validates pod disruption condition is added to the preempted pod",
        "SchedulerPreemption PreemptionExecutionPath runs ReplicaSets to verify preemption running path",
    ];
    Check::new("preemption", ITEMS, async |place: Place| {
        classes(&place).await;
        for node in ["node-1", NODE] {
            offer(&place, node, Some(5)).await;
        }
        basic(&place).await;
        condition(&place).await;
        replica_sets(&place).await;
        for node in ["node-1", NODE] {
            offer(&place, node, None).await;
        }
        let classes = ["conformance-p1", "conformance-p2", "conformance-p3", "conformance-p4"];
        for class in classes {
            place.delete(&format!("/apis/scheduling.k8s.io/v1/priorityclasses/{class}")).await.ok();
        }
    })
}

/// A low one and a middle one hold all; what is more important takes the low one's place.
async fn basic(place: &Place) {
    let of = |name: &str, amount: u32, class: &str| pod(name, &[wants(amount)], json!({"priorityClassName": class}));
    let low = place.ready(&of("low", 3, "conformance-p1")).await;
    place.ready(&of("middle", 3, "conformance-p2")).await;
    let high = place.ready(&of("high", 4, "conformance-p3")).await;
    assert_eq!(high["spec"]["nodeName"], low["spec"]["nodeName"]);
    place.gone(&place.path("pods/low")).await;
    assert_eq!(place.get(&place.path("pods/middle")).await.code, 200);
    // Those of the system come before all.
    let critical =
        with(of("critical", 3, "system-cluster-critical"), json!({"metadata": {"namespace": "kube-system"}}));
    place.post("/api/v1/namespaces/kube-system/pods", &critical).await.ok();
    let path = "/api/v1/namespaces/kube-system/pods/critical";
    place.until(path, |pod| is_true(pod, "Ready")).await;
    place.gone(&place.path("pods/middle")).await;
    place.delete(path).await.ok();
    place.delete(&place.path("pods/high")).await.ok();
    place.gone(path).await;
    place.gone(&place.path("pods/high")).await;
}

async fn condition(place: &Place) {
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    let spec = |class: &str| json!({"priorityClassName": class, "nodeName": null, "nodeSelector": {"kubernetes.io/hostname": NODE}});
    place.ready(&with(pod("victim", &[wants(5)], spec("conformance-p1")), hold)).await;
    place.create("pods", &pod("preemptor", &[wants(5)], spec("conformance-p3"))).await.ok();
    let path = place.path("pods/victim");
    let victim = place.until(&path, |pod| is_true(pod, "DisruptionTarget")).await;
    assert_eq!(condition_of(&victim, "DisruptionTarget")["reason"], "PreemptionByScheduler");
    place.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    let preemptor = place.path("pods/preemptor");
    place.until(&preemptor, |pod| is_true(pod, "Ready")).await;
    place.delete(&preemptor).await.ok();
    place.gone(&preemptor).await;
}

/// Of four, in the order of their priorities, each one's pods push out those of lesser ones, the least first.
async fn replica_sets(place: &Place) {
    let sets = [("rs-1", "conformance-p1", 1, 5), ("rs-2", "conformance-p2", 2, 2), ("rs-3", "conformance-p3", 1, 4)];
    for (name, class, replicas, amount) in sets {
        let mut set = workload(name, &[wants(amount)], json!({"replicas": replicas}));
        set["spec"]["template"]["spec"]["priorityClassName"] = json!(class);
        set["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": NODE});
        place.create("replicasets", &set).await.ok();
        let running = |pods: &[Value]| pods.iter().filter(|pod| is_true(pod, "Ready")).count() == replicas;
        pods_until(place, name, running).await;
    }
    for name in ["rs-1", "rs-2"] {
        let waiting = pods_until(place, name, |pods| pods.iter().all(unschedulable)).await;
        assert!(waiting.iter().all(|pod| !name_of(pod).is_empty()));
    }
    for (name, ..) in sets {
        let gone = json!({"propagationPolicy": "Foreground"});
        place.delete_with(&place.path(&format!("replicasets/{name}")), &gone).await.ok();
    }
}
