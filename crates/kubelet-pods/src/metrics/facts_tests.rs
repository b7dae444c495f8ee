//! The families compared with those that upstream's kubelet declares.

use std::collections::BTreeSet;

use component_base::metrics::{Metrics, MetricsOptions};

use super::KubeletMetrics;

/// Families that upstream registers and that never have a series on such a node, or that another part of this kubelet serves.
const ELSEWHERE: [&str; 5] = [
    // Of other systems.
    "kubelet_started_host_process_containers_errors_total",
    "kubelet_started_host_process_containers_total",
    // A label is put together from what the API server has let through: that does not fail.
    "volume_manager_selinux_container_errors_total",
    "volume_manager_selinux_container_warnings_total",
    // Only provisioners count by it.
    "volume_operation_total_seconds",
];

/// Names of upstream's that the kubelet alone has at an endpoint.
fn upstreams(endpoint: &str) -> BTreeSet<String> {
    let facts = test_facts::facts("metrics.json");
    let own = serde_json::json!([{"component": "kubelet", "endpoint": endpoint}]);
    let metrics = facts["metrics"].as_array().unwrap().iter().filter(|metric| metric["components"] == own);
    metrics.map(|metric| metric["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn all_of_upstreams_families_are_there() {
    let (own, probes) = (Metrics::new(MetricsOptions::default()), Metrics::new(MetricsOptions::default()));
    drop(KubeletMetrics::new(&own, &probes));
    for (endpoint, declared) in [("/metrics", own.declared()), ("/metrics/probes", probes.declared())] {
        let expected = upstreams(endpoint);
        assert!(!expected.is_empty());
        let known: BTreeSet<String> = declared.into_iter().chain(ELSEWHERE).map(ToOwned::to_owned).collect();
        let missing: Vec<&String> = expected.difference(&known).collect();
        assert!(missing.is_empty(), "{endpoint}: {missing:?}");
    }
    let served = own.declared();
    assert!(ELSEWHERE.iter().all(|name| !served.contains(name)), "what is served is not listed");
}
