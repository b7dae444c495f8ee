//! Names of what containers ask for.

use api_machinery::names;
use api_types::resource_v1::constants::DEVICE_CLASS_RESOURCE_PREFIX;

/// Whether a name belongs to the project rather than to some device.
#[must_use]
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a name stands for something that a device plugin or driver offers.
#[must_use]
pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether devices of a class can stand for a resource of this name (KEP-5004).
#[must_use]
pub fn can_be_devices(name: &str) -> bool {
    is_extended(name) || name.starts_with(DEVICE_CLASS_RESOURCE_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_somebody_elses_domain_is_extended() {
        for (name, expected) in [
            ("example.com/gpu", true),
            ("cpu", false),
            ("gpu", false),
            ("kubernetes.io/gpu", false),
            ("node.kubernetes.io/gpu", false),
            ("requests.example.com/gpu", false),
            ("example.com/g p", false),
        ] {
            assert_eq!((is_extended(name), can_be_devices(name)), (expected, expected), "{name}");
        }
        let implicit = "deviceclass.resource.kubernetes.io/gpu";
        assert_eq!((is_extended(implicit), can_be_devices(implicit)), (false, true));
    }
}
