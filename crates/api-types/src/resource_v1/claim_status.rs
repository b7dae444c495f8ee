//! What a claim has got.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::Condition;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

use super::constants::allocation_config_source;
use super::resource_claim::{DeviceConfiguration, DeviceToleration};
use crate::core_v1::NodeSelector;

/// Which devices a claim has.
#[api]
pub struct ResourceClaimStatus {
    /// The devices; nothing before they are allocated.
    #[field(1)]
    pub allocation: Option<AllocationResult>,
    /// Who may use the claim, at most 256.
    #[field(2, merge_key = "uid")]
    pub reserved_for: Vec<ResourceClaimConsumerReference>,
    /// State of single devices, as their drivers tell it.
    #[field(4, keys("driver", "device", "pool", "shareID"))]
    pub devices: Vec<AllocatedDeviceStatus>,
}

/// Somebody who uses a claim.
#[api]
pub struct ResourceClaimConsumerReference {
    /// API group of the object.
    #[field(1)]
    pub api_group: String,
    /// Resource of the object, such as pods.
    #[field(3, always, required)]
    pub resource: String,
    /// Name of the object.
    #[field(4, always, required)]
    pub name: String,
    /// UID of the object.
    #[field(5, always, required, go = "types.UID")]
    pub uid: String,
}

/// Devices that a claim got.
#[api]
pub struct AllocationResult {
    /// The devices, and their configuration.
    #[field(1)]
    pub devices: DeviceAllocationResult,
    /// Nodes that can reach all of them; all nodes without it.
    #[field(3)]
    pub node_selector: Option<NodeSelector>,
    /// Time at which they were allocated.
    #[field(5)]
    pub allocation_timestamp: Option<Time>,
}

/// Devices with their configuration.
#[api]
pub struct DeviceAllocationResult {
    /// The devices.
    #[field(1)]
    pub results: Vec<DeviceRequestAllocationResult>,
    /// Configuration from the claim and its classes, at most 64.
    #[field(2)]
    pub config: Vec<DeviceAllocationConfiguration>,
}

/// A device that a request got.
#[api]
pub struct DeviceRequestAllocationResult {
    /// The request, with the alternative after a slash.
    #[field(1, always, required)]
    pub request: String,
    /// Name of the device's driver.
    #[field(2, always, required)]
    pub driver: String,
    /// Pool of the device.
    #[field(3, always, required)]
    pub pool: String,
    /// Name of the device in its pool.
    #[field(4, always, required)]
    pub device: String,
    /// Whether it is to be looked after only.
    #[field(5)]
    pub admin_access: Option<bool>,
    /// Tolerations of the request.
    #[field(6)]
    pub tolerations: Vec<DeviceToleration>,
    /// Conditions that must hold before pods are bound.
    #[field(7)]
    pub binding_conditions: Vec<String>,
    /// Conditions of which any gives the device up.
    #[field(8)]
    pub binding_failure_conditions: Vec<String>,
    /// Which share of the device it is, where it is shared.
    #[field(9, name = "shareID", go = "types.UID")]
    pub share_id: Option<String>,
    /// How much of the device it takes.
    #[field(10, go = "map[v1.QualifiedName]resource.Quantity")]
    pub consumed_capacity: BTreeMap<String, Quantity>,
}

/// Configuration of allocated devices.
#[api]
pub struct DeviceAllocationConfiguration {
    /// Where it is from: FromClass or FromClaim.
    #[field(1, always, required, go = "v1.AllocationConfigSource", values = allocation_config_source::ALL)]
    pub source: String,
    /// Requests that it is for; all if empty.
    #[field(2)]
    pub requests: Vec<String>,
    /// Configuration of devices. Exactly one form is set.
    #[field(3, inline)]
    pub device_configuration: DeviceConfiguration,
}

/// State of one device of a claim.
#[api]
pub struct AllocatedDeviceStatus {
    /// Name of the device's driver.
    #[field(1, always, required)]
    pub driver: String,
    /// Pool of the device.
    #[field(2, always, required)]
    pub pool: String,
    /// Name of the device in its pool.
    #[field(3, always, required)]
    pub device: String,
    /// Which share of the device it is, where it is shared.
    #[field(7, name = "shareID")]
    pub share_id: Option<String>,
    /// Current conditions of the device, at most 8.
    #[field(4, always, keys("type"))]
    pub conditions: Vec<Condition>,
    /// An object of at most 10 KiB that the driver understands.
    #[field(5)]
    pub data: Option<RawJson>,
    /// What a network device has.
    #[field(6)]
    pub network_data: Option<NetworkDeviceData>,
}

/// What a network device has.
#[api]
pub struct NetworkDeviceData {
    /// Name of the interface in the pod.
    #[field(1)]
    pub interface_name: String,
    /// Addresses with their prefix lengths, at most 16.
    #[field(2)]
    pub ips: Vec<String>,
    /// Hardware address of the interface.
    #[field(3)]
    pub hardware_address: String,
}
