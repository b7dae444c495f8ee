//! resource.k8s.io/v1beta1, as far as it has another form than v1: one file per kind, with what it is made of.

mod resource_claim;
mod resource_claim_template;
mod resource_slice;

pub use resource_claim::{DeviceClaim, DeviceRequest, DeviceSubRequest, ResourceClaim, ResourceClaimSpec};
pub use resource_claim_template::{ResourceClaimTemplate, ResourceClaimTemplateSpec};
pub use resource_slice::{BasicDevice, Device, ResourceSlice, ResourceSliceSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.resource.v1beta1";
/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
