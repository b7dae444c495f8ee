//! Well-known names and the values of string types.

pub const CONTROLLER_REVISION_HASH_LABEL_KEY: &str = "controller-revision-hash";
pub const DEFAULT_DAEMON_SET_UNIQUE_LABEL_KEY: &str = "controller-revision-hash";
pub const DEFAULT_DEPLOYMENT_UNIQUE_LABEL_KEY: &str = "pod-template-hash";
pub const DEPRECATED_ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
pub const DEPRECATED_TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
pub const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";
pub const STATEFUL_SET_POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";

/// Values of `PodManagementPolicyType`.
pub mod pod_management_policy_type {
    values! { ORDERED_READY = "OrderedReady", PARALLEL = "Parallel" }
}

/// Values of `StatefulSetUpdateStrategyType`.
pub mod stateful_set_update_strategy_type {
    values! { ROLLING_UPDATE = "RollingUpdate", ON_DELETE = "OnDelete" }
}

/// Values of `PersistentVolumeClaimRetentionPolicyType`.
pub mod persistent_volume_claim_retention_policy_type {
    values! { RETAIN = "Retain", DELETE = "Delete" }
}

/// Values of `DeploymentStrategyType`.
pub mod deployment_strategy_type {
    values! { RECREATE = "Recreate", ROLLING_UPDATE = "RollingUpdate" }
}

/// Values of `DeploymentConditionType`.
pub mod deployment_condition_type {
    pub const AVAILABLE: &str = "Available";
    pub const PROGRESSING: &str = "Progressing";
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
}

/// Values of `DaemonSetUpdateStrategyType`.
pub mod daemon_set_update_strategy_type {
    values! { ROLLING_UPDATE = "RollingUpdate", ON_DELETE = "OnDelete" }
}

/// Values of `ReplicaSetConditionType`.
pub mod replica_set_condition_type {
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
}
