//! apps/v1: one file per kind, with what it is made of.

pub mod constants;
mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

pub use controller_revision::ControllerRevision;
pub use daemon_set::{
    DaemonSet, DaemonSetCondition, DaemonSetSpec, DaemonSetStatus, DaemonSetUpdateStrategy, RollingUpdateDaemonSet,
};
pub use deployment::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, DeploymentStrategy, RollingUpdateDeployment,
};
pub use replica_set::{ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus};
pub use stateful_set::{
    RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetCondition, StatefulSetOrdinals,
    StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.apps.v1";
/// The API group.
pub const GROUP: &str = "apps";
/// The version.
pub const VERSION: &str = "v1";
