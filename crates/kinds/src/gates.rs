//! The feature gates that fields and whole kinds are behind, and those of them that a process which serves the kinds can
//! switch (`docs/adr/0006-gates.md`).

use feature_gates::Feature;
pub(crate) use feature_gates::shared::API_SERVER_IDENTITY;
pub use feature_gates::shared::{
    ADMIN_ACCESS, BINDING_CONDITIONS, CLUSTER_TRUST_BUNDLE, CLUSTER_TRUST_BUNDLE_PROJECTION, COMPARING_TOLERATIONS,
    CONSUMABLE_CAPACITY, CONTAINER_RESTART_RULES, COORDINATED_ELECTION, DEVICE_STATUS, DEVICE_TAINTS, ENV_FILES,
    EXTENDED_RESOURCE, GENERIC_WORKLOAD, GROUP_CLAIMS, GROUP_PREEMPTION, HOST_NETWORK_USERS, HOSTNAME_OVERRIDE,
    IMAGE_VOLUME_DIGESTS, LIST_ATTRIBUTES, NODE_ALLOCATABLE, PARTITIONABLE_DEVICES, POD_CERTIFICATE_REQUEST,
    POD_DELETION_COST, POD_LEVEL_RESIZE, POD_LEVEL_RESOURCES, PRIORITIZED_LIST, RESIZE_INIT_CONTAINERS,
    RESOURCE_HEALTH, RESOURCE_HEALTH_MESSAGE, RESTART_ALL_CONTAINERS, SELINUX_MOUNT, SPREAD_BY_LABEL_KEYS,
    SPREAD_SELECTORS_BY_LABEL_KEYS, STATEFUL_SET_MAX_UNAVAILABLE, STOP_SIGNALS, STORAGE_VERSION_API,
    STORAGE_VERSION_MIGRATOR, STRICT_ADDRESSES, SUSPENDED_JOB_PLACING, TERMINATING_REPLICAS, TOPOLOGY_AWARE_GROUPS,
    VOLUME_LIMIT_SCALING,
};

/// Admission is configured by files, too, whose names nothing else may have. It is switched by those who read the files.
pub const MANIFEST_BASED_ADMISSION: Feature = Feature::named("ManifestBasedAdmissionControlConfig");
/// Autoscalers may scale to nothing. It is no field, and switched by those who serve autoscalers or act for them.
pub const SCALE_TO_ZERO: Feature = Feature::named("HPAScaleToZero");
/// Autoscalers say how far from its goal a metric may be.
pub const SCALING_TOLERANCE: Feature = Feature::named("HPAConfigurableTolerance");
/// Claims may take their contents from another namespace (KEP-3294).
pub const CROSS_NAMESPACE_SOURCE: Feature = Feature::named("CrossNamespaceVolumeDataSource");
/// Volumes may come to be reached from other nodes (KEP-5381). It is no field.
pub const MUTABLE_NODE_AFFINITY: Feature = Feature::named("MutablePVNodeAffinity");
/// With what the pods of a job run can be changed while it is suspended (KEP-5440). It is no field.
pub const SUSPENDED_JOB_RESOURCES: Feature = Feature::named("MutablePodResourcesForSuspendedJobs");
/// Names of Services may begin with a digit (KEP-5311). It is no field.
pub const RELAXED_SERVICE_NAMES: Feature = Feature::named("RelaxedServiceNameValidation");
/// Definitions of custom resources say of which generation their status is.
pub const DEFINITION_GENERATIONS: Feature = Feature::named("CRDObservedGenerationTracking");
/// The status of a network of Services is written through its own endpoint only. It is no field.
pub const SERVICE_CIDR_STATUS: Feature = Feature::named("ServiceCIDRStatusFieldWiping");

/// All that can be switched.
pub const SWITCHED: &[Feature] = &[
    ADMIN_ACCESS,
    BINDING_CONDITIONS,
    CLUSTER_TRUST_BUNDLE,
    CLUSTER_TRUST_BUNDLE_PROJECTION,
    CONSUMABLE_CAPACITY,
    CONTAINER_RESTART_RULES,
    CROSS_NAMESPACE_SOURCE,
    DEFINITION_GENERATIONS,
    DEVICE_STATUS,
    DEVICE_TAINTS,
    ENV_FILES,
    EXTENDED_RESOURCE,
    GENERIC_WORKLOAD,
    GROUP_CLAIMS,
    GROUP_PREEMPTION,
    HOSTNAME_OVERRIDE,
    IMAGE_VOLUME_DIGESTS,
    LIST_ATTRIBUTES,
    NODE_ALLOCATABLE,
    PARTITIONABLE_DEVICES,
    POD_CERTIFICATE_REQUEST,
    POD_LEVEL_RESIZE,
    POD_LEVEL_RESOURCES,
    PRIORITIZED_LIST,
    RESOURCE_HEALTH,
    RESOURCE_HEALTH_MESSAGE,
    SCALING_TOLERANCE,
    SPREAD_BY_LABEL_KEYS,
    STATEFUL_SET_MAX_UNAVAILABLE,
    STOP_SIGNALS,
    STORAGE_VERSION_API,
    STORAGE_VERSION_MIGRATOR,
    TERMINATING_REPLICAS,
    TOPOLOGY_AWARE_GROUPS,
    VOLUME_LIMIT_SCALING,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_switched_is_what_kinds_are_behind() {
        for rules in crate::all() {
            let info = rules.info();
            let switched = |own: &&Feature| **own != API_SERVER_IDENTITY;
            for feature in rules.gates().iter().chain(info.gates).filter(switched) {
                assert!(SWITCHED.contains(feature), "{} of {}/{}", feature.name(), info.group, info.resource);
            }
        }
        let behind: Vec<Feature> =
            crate::all().flat_map(|rules| [rules.gates(), rules.info().gates.to_vec()].concat()).collect();
        let of_pods: Vec<Feature> =
            crate::pod_spec::disabled::GATED.iter().flat_map(|own| own.features).copied().collect();
        assert!(SWITCHED.iter().all(|feature| behind.contains(feature) || of_pods.contains(feature)));
    }
}
