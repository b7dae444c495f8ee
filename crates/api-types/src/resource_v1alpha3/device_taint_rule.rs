//! DeviceTaintRule and what it is made of.

use api_machinery::api;
use api_machinery::meta::{Condition, ObjectMeta};

use crate::resource_v1::DeviceTaint;

/// Adds a taint to the devices that it selects.
#[api(watched = "v1beta2", kind = "DeviceTaintRule", resource = "devicetaintrules")]
pub struct DeviceTaintRule {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which devices, and which taint.
    #[field(2, always, required)]
    pub spec: DeviceTaintRuleSpec,
    /// How far the taint took effect.
    #[field(3)]
    pub status: DeviceTaintRuleStatus,
}

/// A taint, and devices that get it.
#[api]
pub struct DeviceTaintRuleSpec {
    /// Devices that get it; none without it, all if it is empty.
    #[field(1)]
    pub device_selector: Option<DeviceTaintSelector>,
    /// The taint.
    #[field(2, required)]
    pub taint: DeviceTaint,
}

/// Selects devices by name.
#[api]
pub struct DeviceTaintSelector {
    /// Driver of the devices; any without it.
    #[field(2)]
    pub driver: Option<String>,
    /// Pool of the devices; any without it.
    #[field(3)]
    pub pool: Option<String>,
    /// Name of the device; any without it.
    #[field(4)]
    pub device: Option<String>,
}

/// How far a taint took effect.
#[api]
pub struct DeviceTaintRuleStatus {
    /// Current conditions of the rule, at most 8.
    #[field(1, merge_key = "type")]
    pub conditions: Vec<Condition>,
}
