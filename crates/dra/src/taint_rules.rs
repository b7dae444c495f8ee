//! Taints that DeviceTaintRules add to devices (KEP-5055, gate `DRADeviceTaintRules`).

use std::sync::Arc;

use api_types::resource_v1::ResourceSlice;
use api_types::resource_v1alpha3::DeviceTaintRule;
use component_helpers::resource_claims::selects;

/// Slices whose devices have the taints of these rules, too. For allocation, and as upstream has it there, a rule without a
/// selector is about all devices.
#[must_use]
pub fn tainted(slices: &[Arc<ResourceSlice>], rules: &[Arc<DeviceTaintRule>]) -> Vec<Arc<ResourceSlice>> {
    slices.iter().map(|slice| of_slice(slice, rules)).collect()
}

fn of_slice(slice: &Arc<ResourceSlice>, rules: &[Arc<DeviceTaintRule>]) -> Arc<ResourceSlice> {
    let (driver, pool) = (&slice.spec.driver, &slice.spec.pool.name);
    let is_about = |rule: &DeviceTaintRule, device: &str| {
        rule.spec.device_selector.as_ref().is_none_or(|own| selects(own, driver, pool, device))
    };
    let mut changed = Arc::clone(slice);
    for (place, device) in slice.spec.devices.iter().enumerate() {
        let taints = rules.iter().filter(|rule| is_about(rule, &device.name)).map(|rule| rule.spec.taint.clone());
        for taint in taints {
            // Most slices have no such device, and are not copied.
            if let Some(device) = Arc::make_mut(&mut changed).spec.devices.get_mut(place) {
                device.taints.push(taint);
            }
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use api_machinery::object::from_value;
    use serde_json::{Value, json};

    use super::*;

    fn slice(driver: &str, pool: &str) -> Arc<ResourceSlice> {
        let devices = json!([{"name": "a"}, {"name": "b", "taints": [{"key": "own", "effect": "NoSchedule"}]}]);
        let spec = json!({"driver": driver, "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": devices});
        Arc::new(from_value(&json!({"metadata": {"name": "s"}, "spec": spec})).unwrap())
    }

    #[test]
    fn devices_that_a_rule_selects_have_its_taint() {
        let slices = [slice("d", "p"), slice("d", "q"), slice("e", "p")];
        for (selector, expected) in [
            (Value::Null, ["a b", "a b", "a b"]),
            (json!({}), ["a b", "a b", "a b"]),
            (json!({"driver": "d"}), ["a b", "a b", ""]),
            (json!({"pool": "p", "device": "b"}), ["b", "", "b"]),
            (json!({"driver": "d", "pool": "q", "device": "c"}), ["", "", ""]),
        ] {
            let spec = json!({"deviceSelector": selector, "taint": {"key": "k", "effect": "NoExecute"}});
            let rule: Arc<DeviceTaintRule> =
                Arc::new(from_value(&json!({"metadata": {"name": "r"}, "spec": spec})).unwrap());
            let now = tainted(&slices, &[rule]);
            for ((before, now), expected) in slices.iter().zip(&now).zip(expected) {
                let devices = now.spec.devices.iter();
                let has = devices.filter(|device| device.taints.last().is_some_and(|taint| taint.key == "k"));
                let names: Vec<_> = has.map(|device| device.name.as_str()).collect();
                assert_eq!(names.join(" "), expected, "{selector}");
                assert_eq!(Arc::ptr_eq(before, now), expected.is_empty(), "only what changes is copied");
                assert_eq!(now.spec.devices[1].taints[0].key, "own");
            }
        }
    }
}
