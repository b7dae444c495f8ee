//! DeviceClass and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::resource_claim::{DeviceConfiguration, DeviceSelector};

/// A kind of devices that claims ask for by name.
#[api(kind = "DeviceClass", resource = "deviceclasses")]
pub struct DeviceClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which devices are of the class, and how they are configured.
    #[field(2, always, required)]
    pub spec: DeviceClassSpec,
}

/// Which devices are of a class.
#[api]
pub struct DeviceClassSpec {
    /// What devices of the class must be, at most 32.
    #[field(1)]
    pub selectors: Vec<DeviceSelector>,
    /// Configuration of devices of the class, at most 32.
    #[field(2)]
    pub config: Vec<DeviceClassConfiguration>,
    /// Extended resource that containers get devices of the class by.
    #[field(4)]
    pub extended_resource_name: Option<String>,
}

/// Configuration of the devices of a class.
#[api]
pub struct DeviceClassConfiguration {
    /// Configuration of devices. Exactly one form is set.
    #[field(1, inline)]
    pub device_configuration: DeviceConfiguration,
}
