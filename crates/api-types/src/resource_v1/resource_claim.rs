//! ResourceClaim, and what it asks for.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;

use super::claim_status::ResourceClaimStatus;
use super::constants::{device_allocation_mode, device_taint_effect, device_toleration_operator};

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
    /// What is asked for. Excludes firstAvailable.
    #[field(2)]
    pub exactly: Option<ExactDeviceRequest>,
    /// Alternatives in the order of preference, at most 8. Excludes exactly.
    #[field(3)]
    pub first_available: Vec<DeviceSubRequest>,
}

/// Asks for devices of one kind.
#[api]
pub struct ExactDeviceRequest {
    /// Class that the devices are of.
    #[field(1, always, required)]
    pub device_class_name: String,
    /// What devices must be, beside what the class demands; at most 32.
    #[field(2)]
    pub selectors: Vec<DeviceSelector>,
    /// How many: ExactCount (default) or All that fit.
    #[field(3, go = "v1.DeviceAllocationMode", values = device_allocation_mode::ALL, fill = "\"ExactCount\"")]
    pub allocation_mode: String,
    /// Number of devices for ExactCount. Default 1.
    #[field(4)]
    pub count: i64,
    /// Whether devices that others use are wanted as well, to look after them. Needs a label on the namespace.
    #[field(5)]
    pub admin_access: Option<bool>,
    /// Taints of devices that do not matter.
    #[field(6)]
    pub tolerations: Vec<DeviceToleration>,
    /// How much of each device is needed.
    #[field(7)]
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
    #[field(4, go = "v1.DeviceAllocationMode", values = device_allocation_mode::ALL, fill = "\"ExactCount\"")]
    pub allocation_mode: String,
    /// Number of devices for ExactCount. Default 1.
    #[field(5)]
    pub count: i64,
    /// Taints of devices that do not matter.
    #[field(6)]
    pub tolerations: Vec<DeviceToleration>,
    /// How much of each device is needed.
    #[field(7)]
    pub capacity: Option<CapacityRequirements>,
}

/// How much of a device is needed.
#[api]
pub struct CapacityRequirements {
    /// Amounts by the name of the capacity.
    #[field(1, go = "map[v1.QualifiedName]resource.Quantity")]
    pub requests: BTreeMap<String, Quantity>,
}

/// Decides which devices fit.
#[api]
pub struct DeviceSelector {
    /// Decides by an expression.
    #[field(1)]
    pub cel: Option<CELDeviceSelector>,
}

/// An expression over a device.
#[api]
pub struct CELDeviceSelector {
    /// Expression over device that is true for devices that fit. At most 10 KiB, and bounded in cost.
    #[field(1, always, required)]
    pub expression: String,
}

/// Tolerates taints of devices.
#[api]
pub struct DeviceToleration {
    /// Taint that is tolerated; all if empty.
    #[field(1)]
    pub key: String,
    /// How values are compared: Equal (default) or Exists.
    #[field(2, go = "v1.DeviceTolerationOperator", values = device_toleration_operator::ALL, default = "\"Equal\"", fill = "\"Equal\"")]
    pub operator: String,
    /// Value for Equal.
    #[field(3)]
    pub value: String,
    /// Effect that is tolerated; all if empty.
    #[field(4, go = "v1.DeviceTaintEffect", values = device_taint_effect::ALL)]
    pub effect: String,
    /// For how long NoExecute is tolerated; for ever without it.
    #[field(5)]
    pub toleration_seconds: Option<i64>,
}

/// What devices of a claim must have in common, or must not.
#[api]
pub struct DeviceConstraint {
    /// Requests that it holds for; all if empty.
    #[field(1)]
    pub requests: Vec<String>,
    /// Attribute whose value must be the same, with its domain.
    #[field(2, go = "v1.FullyQualifiedName")]
    pub match_attribute: Option<String>,
    /// Attribute whose value must differ, with its domain.
    #[field(3, go = "v1.FullyQualifiedName")]
    pub distinct_attribute: Option<String>,
}

/// Configuration of a claim for the drivers of its devices.
#[api]
pub struct DeviceClaimConfiguration {
    /// Requests that it is for; all if empty.
    #[field(1)]
    pub requests: Vec<String>,
    /// Configuration of devices. Exactly one form is set.
    #[field(2, inline)]
    pub device_configuration: DeviceConfiguration,
}

/// Configuration of devices. Exactly one form is set.
#[api]
pub struct DeviceConfiguration {
    /// Parameters that only the driver understands.
    #[field(1)]
    pub opaque: Option<OpaqueDeviceConfiguration>,
}

/// Parameters for a driver.
#[api]
pub struct OpaqueDeviceConfiguration {
    /// Name of the driver.
    #[field(1, always, required)]
    pub driver: String,
    /// An object of at most 10 KiB that the driver understands.
    #[field(2, always, required)]
    pub parameters: RawJson,
}
