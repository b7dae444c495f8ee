//! What a driver may offer in one slice.

use std::collections::BTreeMap;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::resource_v1::{CounterSet, Device, ResourceSliceSpec};

use super::device_validation::{self as device, is_advanced};
use super::values::{self, Unique, fits};
use crate::field_rules::{self as rules, IMMUTABLE};
use crate::pod_spec::validation::{NodeValues, node_selector};

const DEVICES_MAX: usize = 128;
/// Devices that have more to say take more room.
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const TRUE_OR_UNSET: &str = "must be either unset or set to true";
const ONE_PLACE: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

/// Checks a slice over the stored one, if there is one.
pub(super) fn validate(path: &Path, spec: &ResourceSliceSpec, old: Option<&ResourceSliceSpec>, errors: &mut ErrorList) {
    values::driver(&path.child("driver"), &spec.driver, errors);
    let pool = path.child("pool");
    values::pool(&pool.child("name"), &spec.pool.name, errors);
    if spec.pool.resource_slice_count <= 0 {
        let at = pool.child("resourceSliceCount");
        errors.push(at.invalid(spec.pool.resource_slice_count, rules::POSITIVE));
    }
    if spec.pool.generation < 0 {
        let at = pool.child("generation");
        errors.push(at.invalid(spec.pool.generation, "must be greater than or equal to zero"));
    }
    validate_nodes(path, spec, errors);
    if !spec.shared_counters.is_empty() && !spec.devices.is_empty() {
        errors.push(path.invalid("", "only one of `sharedCounters` or `devices` is allowed"));
    }
    validate_devices(&path.child("devices"), spec, old, errors);
    validate_counters(&path.child("sharedCounters"), &spec.shared_counters, errors);
    if let Some(old) = old {
        immutable(path, spec, old, errors);
    }
}

fn immutable(path: &Path, spec: &ResourceSliceSpec, old: &ResourceSliceSpec, errors: &mut ErrorList) {
    if spec.driver != old.driver {
        errors.push(path.child("driver").invalid(&spec.driver, IMMUTABLE));
    }
    if spec.pool.name != old.pool.name {
        errors.push(path.child("pool").child("name").invalid(&spec.pool.name, IMMUTABLE));
    }
    if spec.node_name != old.node_name {
        let shown = spec.node_name.as_ref().map_or_else(api_machinery::field_path::BadValue::null, Into::into);
        errors.push(path.child("nodeName").invalid(shown, IMMUTABLE));
    }
}

/// Checks where the devices are, and that it is said in one way.
fn validate_nodes(path: &Path, spec: &ResourceSliceSpec, errors: &mut ErrorList) {
    let mut ways = Vec::new();
    if let Some(name) = &spec.node_name {
        let at = path.child("nodeName");
        if name.is_empty() {
            errors.push(at.invalid(name, "must be either unset or set to a non-empty string"));
        } else {
            ways.push("`nodeName`");
            errors.push_invalid(&at, name, names::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = &spec.node_selector {
        ways.push("`nodeSelector`");
        let at = path.child("nodeSelector");
        node_selector(&at, selector, NodeValues::Checked, errors);
        if selector.node_selector_terms.len() != 1 {
            errors.push(device::one_term(&at));
        }
    }
    let truths = [("allNodes", "`allNodes`", spec.all_nodes)];
    let truths = truths.into_iter().chain([(
        "perDeviceNodeSelection",
        "`perDeviceNodeSelection`",
        spec.per_device_node_selection,
    )]);
    for (name, shown, value) in truths {
        match value {
            Some(true) => ways.push(shown),
            Some(false) => errors.push(path.child(name).invalid(false, TRUE_OR_UNSET)),
            None => {}
        }
    }
    match ways.as_slice() {
        [] => errors.push(path.required(ONE_PLACE)),
        [_] => {}
        several => {
            let detail = format!("{ONE_PLACE}, but multiple fields are set");
            errors.push(path.invalid(format!("{{{}}}", several.join(", ")), detail));
        }
    }
}

fn validate_devices(path: &Path, spec: &ResourceSliceSpec, old: Option<&ResourceSliceSpec>, errors: &mut ErrorList) {
    let max = if spec.devices.iter().any(is_advanced) { ADVANCED_DEVICES_MAX } else { DEVICES_MAX };
    if !fits(path, &spec.devices, max, errors) {
        return;
    }
    let stored = old.iter().flat_map(|old| &old.devices);
    let stored: BTreeMap<&str, &Device> = stored.map(|own| (own.name.as_str(), own)).collect();
    let (mut seen, per_device) = (Unique::new(), spec.per_device_node_selection == Some(true));
    for (index, own) in spec.devices.iter().enumerate() {
        let path = path.index(index);
        device::validate(&path, own, per_device, stored.get(own.name.as_str()).copied(), errors);
        seen.note(&path, &own.name, &own.name, errors);
    }
}

fn validate_counters(path: &Path, sets: &[CounterSet], errors: &mut ErrorList) {
    if !fits(path, sets, COUNTER_SETS_MAX, errors) {
        return;
    }
    let mut seen = Unique::new();
    for (index, set) in sets.iter().enumerate() {
        let path = path.index(index);
        if rules::required(&path.child("name"), &set.name, errors) {
            values::label(&path.child("name"), &set.name, errors);
        }
        device::validate_counters(&path.child("counters"), &set.counters, errors);
        seen.note(&path, &set.name, &set.name, errors);
    }
}
