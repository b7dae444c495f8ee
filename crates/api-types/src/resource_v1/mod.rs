//! resource.k8s.io/v1: one file per kind, with what it is made of.

mod claim_status;
pub mod constants;
mod device;
mod device_class;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;

pub use claim_status::{
    AllocatedDeviceStatus, AllocationResult, DeviceAllocationConfiguration, DeviceAllocationResult,
    DeviceRequestAllocationResult, NetworkDeviceData, ResourceClaimConsumerReference, ResourceClaimStatus,
};
pub use device::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, Device, DeviceAttribute, DeviceCapacity,
    DeviceCounterConsumption, DeviceTaint, NodeAllocatableResourceMapping,
};
pub use device_class::{DeviceClass, DeviceClassConfiguration, DeviceClassSpec};
pub use resource_claim::{
    CELDeviceSelector, CapacityRequirements, DeviceClaim, DeviceClaimConfiguration, DeviceConfiguration,
    DeviceConstraint, DeviceRequest, DeviceSelector, DeviceSubRequest, DeviceToleration, ExactDeviceRequest,
    OpaqueDeviceConfiguration, ResourceClaim, ResourceClaimSpec,
};
pub use resource_claim_template::{ResourceClaimTemplate, ResourceClaimTemplateSpec};
pub use resource_slice::{Counter, CounterSet, ResourcePool, ResourceSlice, ResourceSliceSpec};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.resource.v1";
/// The API group.
pub const GROUP: &str = "resource.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
