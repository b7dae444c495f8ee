//! The plugins in the order in which they run. The order is upstream's: what sets a service account comes before what
//! checks its pods, quota comes last of what most clusters have.

mod always;
mod always_pull_images;
mod certificate_subject_restriction;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod event_rate_limit;
mod extended_resource_toleration;
mod hard_anti_affinity_topology;
mod image_policy_webhook;
mod job_validation;
mod limit_ranger;
mod mutating_admission_policy;
mod mutating_webhook;
mod namespace_auto_provision;
mod namespace_exists;
mod namespace_lifecycle;
mod node_audiences;
mod node_declared_features;
mod node_labels;
mod node_pod_certificates;
mod node_references;
mod node_restriction;
mod owner_references;
mod persistent_volume_claim_resize;
mod pod_group_protection;
mod pod_group_workload;
mod pod_node_selector;
mod pod_resize_validator;
mod pod_security;
mod pod_toleration_restriction;
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
pub use image_policy_webhook::{ImagePolicyConfig, ImageReviewer};

/// Every plugin, in order.
pub const ALL: &[PluginEntry] = &[
    always::ADMIT,
    namespace_auto_provision::ENTRY,
    namespace_lifecycle::ENTRY,
    namespace_exists::ENTRY,
    hard_anti_affinity_topology::ENTRY,
    limit_ranger::ENTRY,
    service_account::ENTRY,
    node_restriction::ENTRY,
    taint_nodes_by_condition::ENTRY,
    always_pull_images::ENTRY,
    image_policy_webhook::ENTRY,
    pod_security::ENTRY,
    pod_node_selector::ENTRY,
    priority::ENTRY,
    default_toleration_seconds::ENTRY,
    pod_toleration_restriction::ENTRY,
    event_rate_limit::ENTRY,
    extended_resource_toleration::ENTRY,
    default_storage_class::ENTRY,
    storage_in_use::ENTRY,
    pod_group_protection::ENTRY,
    owner_references::ENTRY,
    persistent_volume_claim_resize::ENTRY,
    runtime_class::ENTRY,
    signers::APPROVAL,
    signers::SIGNING,
    signers::ATTEST,
    certificate_subject_restriction::ENTRY,
    default_ingress_class::ENTRY,
    deny_service_external_ips::ENTRY,
    pod_topology_labels::ENTRY,
    pod_group_workload::ENTRY,
    node_declared_features::ENTRY,
    job_validation::ENTRY,
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

    /// Upstream's names, order and defaults; what is the project's own stands between them, and is off by default.
    #[test]
    fn the_list_is_upstreams() {
        let list = test_facts::facts("admission-plugins.json");
        let upstream: Vec<(&str, bool)> = list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|own| (own["name"].as_str().unwrap(), own["enabledByDefault"].as_bool().unwrap()))
            .collect();
        let is_upstreams = |name: &str| upstream.iter().any(|(own, _)| *own == name);
        let (ours, own): (Vec<_>, Vec<_>) =
            ALL.iter().map(|entry| (entry.name, entry.enabled_by_default)).partition(|(name, _)| is_upstreams(name));
        assert_eq!(ours, upstream);
        assert_eq!(own.iter().find(|(_, by_default)| *by_default), None);
    }
}
