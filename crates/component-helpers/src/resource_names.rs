//! Names of what containers ask for.

use api_machinery::names;

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
            assert_eq!(is_extended(name), expected, "{name}");
        }
    }
}
