//! The plugins in the order in which they run. The order is upstream's: what sets a service account comes before what
//! checks its pods, quota comes last of what most clusters have.

mod always;
mod always_pull_images;
mod certificate_subject_restriction;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod hard_anti_affinity_topology;
mod limit_ranger;
mod mutating_admission_policy;
mod mutating_webhook;
mod namespace_exists;
mod namespace_lifecycle;
mod node_labels;
mod node_pod_certificates;
mod node_references;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_resize_validator;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod resource_quota;
mod runtime_class;
mod service_account;
mod signers;
mod storage_in_use;
mod taint_nodes_by_condition;
#[cfg(test)]
pub(crate) mod testing;
mod tolerations;
mod validating_admission_policy;
mod validating_webhook;

use crate::PluginEntry;
pub use pod_security::PodSecurityConfig;

/// Every plugin, in order.
pub const ALL: &[PluginEntry] = &[
    always::ADMIT,
    namespace_lifecycle::ENTRY,
    namespace_exists::ENTRY,
    hard_anti_affinity_topology::ENTRY,
    limit_ranger::ENTRY,
    service_account::ENTRY,
    node_restriction::ENTRY,
    taint_nodes_by_condition::ENTRY,
    always_pull_images::ENTRY,
    pod_security::ENTRY,
    priority::ENTRY,
    default_toleration_seconds::ENTRY,
    default_storage_class::ENTRY,
    storage_in_use::ENTRY,
    persistent_volume_claim_resize::ENTRY,
    runtime_class::ENTRY,
    signers::APPROVAL,
    signers::SIGNING,
    signers::ATTEST,
    certificate_subject_restriction::ENTRY,
    default_ingress_class::ENTRY,
    deny_service_external_ips::ENTRY,
    pod_topology_labels::ENTRY,
    pod_resize_validator::ENTRY,
    mutating_admission_policy::ENTRY,
    mutating_webhook::ENTRY,
    validating_admission_policy::ENTRY,
    validating_webhook::ENTRY,
    resource_quota::ENTRY,
    always::DENY,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of upstream's list, of which every plugin here is one.
    #[test]
    fn the_order_is_upstreams() {
        let list = test_facts::facts("admission-plugins.json");
        let upstream: Vec<(String, bool)> = list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| (own["name"].as_str().unwrap().to_owned(), own["enabledByDefault"].as_bool().unwrap()))
            .collect();
        let ours: Vec<(String, bool)> =
            ALL.iter().map(|entry| (entry.name.to_owned(), entry.enabled_by_default)).collect();
        let shared: Vec<_> =
            upstream.iter().filter(|own| ours.iter().any(|(name, _)| *name == own.0)).cloned().collect();
        assert_eq!(ours, shared);
        let names: Vec<&str> = upstream.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, crate::chain::UPSTREAM, "those that are not here are known, too");
    }
}
