//! A scheduler stands still while it binds a pod, is deposed, and its successor gives the room to another pod: what was under
//! way lands when it goes on, and only the node can refuse it.

use std::time::Duration;

use api_types::coordination_v1::Lease;
use api_types::core_v1::Pod;
use client::Faults;
use serde_json::{Value, json};
use testing::{CORES_PER_NODE, Cluster, NODES, Part, Shape, Store};
use tokio::time::Instant;

use crate::simulate;
use crate::workloads::{NAMESPACE, create, is_ready, is_refused};

const SEED: u64 = 2;
/// Where pods have to go: no other node has room.
const NODE: Part = Part::Node(0);
/// How long a request of the scheduler may be under way.
const UNDER_WAY: Duration = Duration::from_secs(8);
/// Soon enough for that.
const SOON: Duration = Duration::from_millis(20);
/// What the successor needs to lead and bind, and the node to run a pod.
const SUCCESSION: Duration = Duration::from_secs(60);

fn pod(name: &str, spec: Value) -> Value {
    let cpu = (CORES_PER_NODE / 2 + 1).to_string();
    let container = json!({"name": "main", "image": "main:1", "resources": {"requests": {"cpu": cpu}}});
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [container]}});
    pod["spec"].as_object_mut().expect("a spec").extend(spec.as_object().expect("fields").clone());
    pod
}

async fn get(cluster: &Cluster, name: &str) -> Pod {
    cluster.admin().namespaced::<Pod>(NAMESPACE).get(name).await.expect("the pod is there")
}

/// The scheduler that leads, once there is one.
async fn leader(cluster: &Cluster) -> Part {
    let (leases, end) = (cluster.admin().namespaced::<Lease>("kube-system"), Instant::now() + SUCCESSION);
    loop {
        let lease = leases.get_opt("kube-scheduler").await.expect("leases can be read");
        let holder = lease.and_then(|lease| lease.spec.holder_identity).unwrap_or_default();
        let leads = |part: &Part| matches!(part, Part::Scheduler(_)) && holder.starts_with(&part.to_string());
        if let Some(part) = cluster.parts().into_iter().find(leads) {
            return part;
        }
        assert!(Instant::now() < end, "nobody leads, but {holder:?}");
        tokio::time::sleep(SOON).await;
    }
}

/// The pod whose binding comes late, and the one that has its room.
async fn bound_late() -> [Pod; 2] {
    let shape = Shape { schedulers: 2, ..Shape::SINGLE };
    let cluster = Cluster::over(&Store::Memory, shape, SEED, |_| {}).await.expect("the cluster starts");
    for node in (0..NODES).map(Part::Node).filter(|node| *node != NODE) {
        let name = node.to_string();
        create::<Pod>(cluster.admin(), NAMESPACE, &pod(&name, json!({"nodeName": name}))).await;
    }
    let deposed = leader(&cluster).await;
    cluster.set_faults_of(deposed, &Faults { outlive: 1.0, delay_limit: UNDER_WAY, ..Faults::default() });
    create::<Pod>(cluster.admin(), NAMESPACE, &pod("late", json!({}))).await;
    tokio::time::sleep(SOON).await;
    cluster.stall(deposed, true);
    create::<Pod>(cluster.admin(), NAMESPACE, &pod("first", json!({"priorityClassName": "system-cluster-critical"})))
        .await;
    tokio::time::sleep(SUCCESSION).await;
    assert_eq!(get(&cluster, "late").await.spec.node_name, "", "it is not bound yet");
    assert_ne!(leader(&cluster).await, deposed);
    cluster.stall(deposed, false);
    tokio::time::sleep(UNDER_WAY).await;
    let both = [get(&cluster, "late").await, get(&cluster, "first").await];
    assert!(cluster.may_bind_late());
    cluster.shutdown().await;
    both
}

#[test]
fn a_node_refuses_what_a_deposed_scheduler_binds_late() {
    let [late, first] = simulate(bound_late());
    assert!(is_ready(&first) && first.spec.node_name == NODE.to_string(), "{:?}", first.status);
    assert_eq!(late.spec.node_name, NODE.to_string(), "the binding came all the same");
    assert!(is_refused(&late), "{:?}", late.status);
}
