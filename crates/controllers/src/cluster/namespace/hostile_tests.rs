//! A namespace that is emptied while its pods still run (CVE-2024-7598): what guards them goes after them.

use std::sync::Arc;

use api_types::core_v1::{ConfigMap, Pod};

use super::tests::going;
use super::*;
use crate::Settings;
use crate::workloads::fixtures::{Running, WithDiscovery, meta, run_until_idle};

const KNOWN: &[Descriptor] = &[DESCRIPTOR];

#[tokio::test(start_paused = true)]
async fn what_guards_pods_goes_after_them() {
    let running = Running::start_over(KNOWN, Settings::default(), |server| Arc::new(WithDiscovery(server.transport())));
    let mut pod = Pod { metadata: meta("p"), ..Pod::default() };
    pod.metadata.finalizers.push("example.com/ends-later".into());
    pod.status.phase = "Running".into();
    running.put("v1/pods", &pod);
    // Stands for a policy: of the kinds that are known here it is any but pods.
    running.put("v1/configmaps", &ConfigMap { metadata: meta("guard"), ..ConfigMap::default() });
    running.put("v1/namespaces", &going());
    for _ in 0..20 {
        run_until_idle().await;
        assert_eq!((running.count("v1/pods"), running.count("v1/configmaps")), (1, 1), "the guard went first");
    }
    assert!(running.requests("DELETE", "pods") > 0, "the pod was asked to end");
    running.server.remove("v1/pods", "ns", "p");
    for _ in 0..20 {
        run_until_idle().await;
    }
    assert_eq!(
        running.count("v1/configmaps"),
        0,
        "the guard goes when nothing is left to guard: {:?}",
        running.server.requests()
    );
}
