//! What gates change in the life of pods: each with its gate on and off.

use std::time::Duration;

use client::fake::FakeServer;
use kubelet_node::node::DeclaredFeatures;
use node_api::cri::v1::RuntimeFeatures;
use serde_json::json;

use super::api_tests::{restarted_as, start, start_as};
use super::test_node::settings;
use crate::interfaces::PodSettings;

#[tokio::test(start_paused = true)]
async fn containers_that_were_ready_are_so_after_a_restart_unless_the_gate_says_otherwise() {
    for keeps_readiness in [true, false] {
        let bench = start().await;
        let probe = json!({"exec": {"command": ["true"]}, "periodSeconds": 100});
        let container = json!({"name": "main", "image": "docker.io/library/app:1", "readinessProbe": probe});
        bench.put("web", json!({"containers": [container]}));
        bench.wait("ready", |bench| bench.is_on("web", "Ready") == "True").await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        let settings = PodSettings { keeps_readiness, ..settings(bench.root.path()) };
        let bench = restarted_as(settings, bench).await;
        // The first probe of a new kubelet comes at a random moment of its period.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let expected = if keeps_readiness { "True" } else { "False" };
        assert_eq!(bench.is_on("web", "Ready"), expected);
        bench.wait("ready again", |bench| bench.is_on("web", "Ready") == "True").await;
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pods_with_their_own_users_are_on_the_hosts_network_where_gate_and_runtime_allow_it() {
    let refused = "Pod requires node features that are not available: UserNamespacesHostNetworkSupport";
    for (host_network_users, can, expected) in [(true, true, ""), (true, false, refused), (false, true, refused)] {
        let root = tempfile::tempdir().unwrap();
        let declared_features = Some(DeclaredFeatures { host_network_users, ..DeclaredFeatures::default() });
        let settings = PodSettings { declared_features, ..settings(root.path()) };
        let bench = start_as(settings, root, FakeServer::new(), Default::default()).await;
        let features = RuntimeFeatures { user_namespaces_host_network: can, ..RuntimeFeatures::default() };
        bench.runtime.set_features(features);
        tokio::time::sleep(Duration::from_secs(30)).await;
        let container = json!({"name": "main", "image": "docker.io/library/app:1"});
        bench.put("web", json!({"hostNetwork": true, "hostUsers": false, "containers": [container]}));
        let phase = if expected.is_empty() { "Running" } else { "Failed" };
        bench.wait("decided", |bench| bench.phase("web") == phase).await;
        let message = bench.object("web").unwrap()["status"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(expected), "{message}");
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pods_are_looked_at_as_soon_as_something_is_done_about_them_where_the_gate_says_so() {
    for on_demand_relists in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let settings = PodSettings { on_demand_relists, ..settings(root.path()) };
        let bench = start_as(settings, root, FakeServer::new(), Default::default()).await;
        tokio::time::sleep(Duration::from_secs(30)).await;
        // Pods come between two complete looks, whenever those are.
        let mut soon = 0;
        let names = ["a", "b", "c", "d", "e"];
        for name in names {
            bench.put(name, json!({"containers": [{"name": "main", "image": "docker.io/library/app:1"}]}));
            tokio::time::sleep(Duration::from_millis(100)).await;
            soon += usize::from(bench.phase(name) == "Running");
            tokio::time::sleep(Duration::from_millis(900)).await;
        }
        assert_eq!(soon == names.len(), on_demand_relists, "{soon}");
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(names.iter().all(|name| bench.phase(name) == "Running"));
        bench.tasks.shutdown(Duration::from_secs(5)).await;
    }
}

/// A pod of which the runtime has nothing is known by what its worker makes: nobody lists it, or reads its sandbox again.
#[tokio::test(start_paused = true)]
async fn a_new_pod_asks_the_runtime_for_no_more_than_is_needed() {
    let root = tempfile::tempdir().unwrap();
    let bench = start_as(settings(root.path()), root, FakeServer::new(), Default::default()).await;
    // A probe that succeeds wakes the worker once more.
    let probe = json!({"exec": {"command": ["true"]}, "periodSeconds": 60});
    let container = json!({"name": "main", "image": "docker.io/library/app:1", "readinessProbe": probe});
    tokio::time::sleep(Duration::from_secs(30)).await;
    drop(bench.runtime.take_calls());
    let since = tokio::time::Instant::now();
    bench.put("web", json!({"containers": [container]}));
    bench.wait("it is ready", |bench| bench.is_on("web", "Ready") == "True").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let calls = bench.runtime.take_calls();
    let of = |operation: &str| calls.iter().filter(|call| call.operation == operation).count();
    let once = ["run_podsandbox", "podsandbox_status", "create_container", "start_container", "container_status"];
    assert_eq!(once.map(of), [1; 5], "{calls:?}");
    let complete_looks = usize::try_from(since.elapsed().as_secs()).unwrap() + 1;
    assert!(of("list_podsandbox") <= complete_looks && of("list_containers") <= complete_looks, "{calls:?}");
    bench.tasks.shutdown(Duration::from_secs(5)).await;
}
