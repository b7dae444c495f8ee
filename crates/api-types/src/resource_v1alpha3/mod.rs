//! resource.k8s.io/v1alpha3: one file per kind, with what it is made of.

mod device_taint_rule;
mod resource_pool_status_request;

pub use device_taint_rule::{DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintRuleStatus, DeviceTaintSelector};
pub use resource_pool_status_request::{
    PoolStatus, ResourcePoolStatusRequest, ResourcePoolStatusRequestSpec, ResourcePoolStatusRequestStatus,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.resource.v1alpha3";
/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// The version.
pub const VERSION: &str = "v1alpha3";
