//! ResourceClaim as it was first: a request had one form only.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::resource_v1::constants::device_allocation_mode;
use crate::resource_v1::{
    CapacityRequirements, DeviceClaimConfiguration, DeviceConstraint, DeviceSelector, DeviceToleration,
    ResourceClaimStatus,
};

/// Asks for devices, and says which it got.
#[api(kind = "ResourceClaim", resource = "resourceclaims", namespaced)]
pub struct ResourceClaim {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What is asked for. It never changes.
    #[field(2, always, required)]
    pub spec: ResourceClaimSpec,
    /// Which devices it has, and who uses them.
    #[field(3)]
    pub status: ResourceClaimStatus,
}

/// What a claim asks for.
#[api]
pub struct ResourceClaimSpec {
    /// The devices that are asked for.
    #[field(1, always)]
    pub devices: DeviceClaim,
}

/// Devices that are asked for together.
#[api]
pub struct DeviceClaim {
    /// The single requests, at most 32. Each must be satisfied.
    #[field(1, always)]
    pub requests: Vec<DeviceRequest>,
    /// What devices must have in common, at most 32.
    #[field(2)]
    pub constraints: Vec<DeviceConstraint>,
    /// Configuration for drivers, at most 32.
    #[field(3)]
    pub config: Vec<DeviceClaimConfiguration>,
}

/// Asks for devices of one kind, or for the first of several kinds.
#[api]
pub struct DeviceRequest {
    /// Name of the request, unique in its claim.
    #[field(1, always, required)]
    pub name: String,
    /// Class that the devices are of.
    #[field(2, always)]
    pub device_class_name: String,
    /// What devices must be, beside what the class demands; at most 32.
    #[field(3)]
    pub selectors: Vec<DeviceSelector>,
    /// How many: ExactCount (default) or All that fit.
    #[field(4, go = "v1beta1.DeviceAllocationMode", values = device_allocation_mode::ALL)]
    pub allocation_mode: String,
    /// Number of devices for ExactCount. Default 1.
    #[field(5)]
    pub count: i64,
    /// Whether devices that others use are wanted as well, to look after them. Needs a label on the namespace.
    #[field(6)]
    pub admin_access: Option<bool>,
    /// Alternatives in the order of preference, at most 8. Excludes all else but the name.
    #[field(7)]
    pub first_available: Vec<DeviceSubRequest>,
    /// Taints of devices that do not matter.
    #[field(8)]
    pub tolerations: Vec<DeviceToleration>,
    /// How much of each device is needed.
    #[field(9)]
    pub capacity: Option<CapacityRequirements>,
}

/// One of several alternatives.
#[api]
pub struct DeviceSubRequest {
    /// Name of the alternative, unique in its request.
    #[field(1, always, required)]
    pub name: String,
    /// Class that the devices are of.
    #[field(2, always, required)]
    pub device_class_name: String,
    /// What devices must be, beside what the class demands; at most 32.
    #[field(3)]
    pub selectors: Vec<DeviceSelector>,
    /// How many: ExactCount (default) or All that fit.
    #[field(4, go = "v1beta1.DeviceAllocationMode", values = device_allocation_mode::ALL, fill = "\"ExactCount\"")]
    pub allocation_mode: String,
    /// Number of devices for ExactCount. Default 1.
    #[field(5, fill = "1")]
    pub count: i64,
    /// Taints of devices that do not matter.
    #[field(7)]
    pub tolerations: Vec<DeviceToleration>,
    /// How much of each device is needed.
    #[field(8)]
    pub capacity: Option<CapacityRequirements>,
}
