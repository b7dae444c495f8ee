//! What a driver may say of a device.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::{Reflect, equal};
use api_types::resource_v1::{Counter, Device, DeviceAttribute, DeviceTaint, NodeAllocatableResourceMapping};
use cel::kubernetes::SemverValue;

use super::capacity_validation;
use super::values::{self, Unique, entry, fits};
use crate::pod_spec::node_allocatable::{NOT_ALLOCATABLE, is_allocatable};
use crate::pod_spec::validation::{NodeValues, node_selector};
use crate::{field_rules as rules, internal_json};

/// Most conditions of either sort.
pub(super) const CONDITIONS_MAX: usize = 4;
/// Most counters of a set, and most that a device takes from.
const COUNTERS_MAX: usize = 32;
const CONSUMED_SETS_MAX: usize = 2;
const NAMES_MAX: usize = 32;
const VALUES_MAX: usize = 48;
const VALUE_MAX_BYTES: usize = 64;
const TAINTS_MAX: usize = 16;
const TRUE_OR_UNSET: &str = "must be either unset or set to true";
const EACH_ITS_NODES: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                              `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
const NODES_OF_ALL: &str = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set \
                            to true in the ResourceSlice spec";

/// Checks a device; `per_device` where each says which nodes can reach it, `old` the stored one of its name.
pub(super) fn validate(path: &Path, device: &Device, per_device: bool, old: Option<&Device>, errors: &mut ErrorList) {
    values::label(&path.child("name"), &device.name, errors);
    let entries = device.attributes.len() + device.capacity.len();
    if entries > NAMES_MAX {
        let detail = format!("the total number of attributes and capacities must not exceed {NAMES_MAX}");
        errors.push(path.invalid(count(entries), detail));
    }
    let all = device.attributes.values().map(|attribute| size(attribute).max(1)).sum::<usize>();
    if all > VALUES_MAX {
        let detail = format!("the total number of attribute values must not exceed {VALUES_MAX}");
        errors.push(path.invalid(count(all), detail));
    }
    let at = path.child("attributes");
    for (name, attribute) in &device.attributes {
        values::qualified_name(&at, name, errors);
        validate_attribute(&entry(&at, name), attribute, errors);
    }
    let (at, shared) = (path.child("capacity"), device.allow_multiple_allocations == Some(true));
    for (name, capacity) in &device.capacity {
        values::qualified_name(&at, name, errors);
        capacity_validation::validate(&entry(&at, name), capacity, shared, errors);
    }
    if !old.is_some_and(|old| equal(&old.taints, &device.taints)) {
        validate_taints(&path.child("taints"), &device.taints, errors);
    }
    validate_consumption(&path.child("consumesCounters"), device, errors);
    validate_nodes(path, device, per_device, errors);
    validate_conditions(path, &device.binding_conditions, &device.binding_failure_conditions, CONDITIONS_MAX, errors);
    let at = path.child("nodeAllocatableResourceMappings");
    for (name, mapping) in &device.node_allocatable_resource_mappings {
        validate_mapping(&at, name, mapping, device, errors);
    }
}

fn count(amount: usize) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// How many values an attribute has.
fn size(attribute: &DeviceAttribute) -> usize {
    attribute.ints.len() + attribute.bools.len() + attribute.strings.len() + attribute.versions.len()
}

/// Whether a device has what makes it count twice among the devices of a slice.
pub(super) fn is_advanced(device: &Device) -> bool {
    let lists = device.attributes.values().any(|attribute| size(attribute) > 0);
    lists || !device.taints.is_empty() || !device.consumes_counters.is_empty()
}

fn validate_attribute(path: &Path, attribute: &DeviceAttribute, errors: &mut ErrorList) {
    let DeviceAttribute { string, version, strings, versions, .. } = attribute;
    if let Some(text) = string {
        short(&path.child("string"), text, errors);
    }
    if let Some(text) = version {
        semantic_version(&path.child("version"), text, errors);
    }
    for (index, text) in strings.iter().enumerate() {
        short(&path.child("strings").index(index), text, errors);
    }
    for (index, text) in versions.iter().enumerate() {
        semantic_version(&path.child("versions").index(index), text, errors);
    }
    let table = attribute.struct_type();
    let set = (0..table.fields.len()).filter(|index| !attribute.field(*index).is_unset()).count();
    let shown = match set {
        0 => BadValue::from(""),
        1 => return,
        _ => shown(attribute),
    };
    errors.push(path.invalid(shown, "exactly one value must be specified"));
}

/// An attribute as upstream has it inside, where each form is named as a value.
fn shown(attribute: &DeviceAttribute) -> BadValue {
    let text = internal_json::compact(attribute);
    let forms = ["Int", "Bool", "String", "Version"];
    let named = forms.iter().fold(text, |text, form| {
        let one = text.replacen(&format!("\"{form}\":"), &format!("\"{form}Value\":"), 1);
        one.replacen(&format!("\"{form}s\":"), &format!("\"{form}Values\":"), 1)
    });
    BadValue::json(named)
}

fn short(path: &Path, text: &str, errors: &mut ErrorList) {
    if text.len() > VALUE_MAX_BYTES {
        errors.push(path.too_long(VALUE_MAX_BYTES));
    }
}

fn semantic_version(path: &Path, text: &str, errors: &mut ErrorList) {
    if SemverValue::parse(text).is_err() {
        errors.push(path.invalid(text, "must be a string compatible with semver.org spec 2.0.0"));
    }
    short(path, text, errors);
}

fn validate_taints(path: &Path, taints: &[DeviceTaint], errors: &mut ErrorList) {
    if fits(path, taints, TAINTS_MAX, errors) {
        for (index, taint) in taints.iter().enumerate() {
            validate_taint(&path.index(index), taint, None, errors);
        }
    }
}

/// Checks a taint over the stored one, if there is one.
pub(crate) fn validate_taint(path: &Path, taint: &DeviceTaint, old: Option<&DeviceTaint>, errors: &mut ErrorList) {
    rules::named(&path.child("key"), &taint.key, names::qualified_name, errors);
    errors.push_invalid(&path.child("value"), &taint.value, names::label_value(&taint.value));
    let unchanged = old.is_some_and(|old| old.effect == taint.effect);
    values::taint_effect(&path.child("effect"), &taint.effect, unchanged, errors);
}

/// Checks the counters of a set, or what a device takes of them.
pub(super) fn validate_counters(
    path: &Path,
    counters: &std::collections::BTreeMap<String, Counter>,
    errors: &mut ErrorList,
) {
    if counters.is_empty() {
        errors.push(path.required(""));
    } else if counters.len() > COUNTERS_MAX {
        errors.push(path.too_many(counters.len(), COUNTERS_MAX));
    } else {
        for name in counters.keys() {
            values::label(path, name, errors);
        }
    }
}

fn validate_consumption(path: &Path, device: &Device, errors: &mut ErrorList) {
    if !fits(path, &device.consumes_counters, CONSUMED_SETS_MAX, errors) {
        return;
    }
    let mut seen = Unique::new();
    for (index, consumed) in device.consumes_counters.iter().enumerate() {
        let (path, set) = (path.index(index), consumed.counter_set.as_str());
        if rules::required(&path.child("counterSet"), set, errors) {
            values::label(&path.child("counterSet"), set, errors);
        }
        validate_counters(&path.child("counters"), &consumed.counters, errors);
        seen.note(&path, set, set, errors);
    }
}

fn validate_nodes(path: &Path, device: &Device, per_device: bool, errors: &mut ErrorList) {
    let (name, selector, all) = (&device.node_name, &device.node_selector, device.all_nodes);
    let set = usize::from(name.is_some()) + usize::from(selector.is_some()) + usize::from(all.is_some());
    if !per_device {
        if set > 0 {
            errors.push(path.invalid(BadValue::null(), NODES_OF_ALL));
        }
        return;
    }
    if let Some(name) = name {
        let at = path.child("nodeName");
        if name.is_empty() {
            errors.push(at.invalid(name, "must not be empty"));
        } else {
            errors.push_invalid(&at, name, names::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = selector {
        node_selector(&path.child("nodeSelector"), selector, NodeValues::Checked, errors);
        if selector.node_selector_terms.len() != 1 {
            errors.push(one_term(&path.child("nodeSelector")));
        }
    }
    if all == Some(false) {
        errors.push(path.child("allNodes").invalid(false, TRUE_OR_UNSET));
    }
    match set {
        0 => errors.push(path.required(EACH_ITS_NODES)),
        1 => {}
        _ => {
            let ways =
                [("`nodeName`", name.is_some()), ("`nodeSelector`", selector.is_some()), ("`allNodes`", all.is_some())];
            let set: Vec<&str> = ways.into_iter().filter(|(_, is_set)| *is_set).map(|(way, _)| way).collect();
            errors.push(path.invalid(format!("{{{}}}", set.join(", ")), EACH_ITS_NODES));
        }
    }
}

/// A selector of nodes has one term, so that it can be combined with others.
pub(super) fn one_term(path: &Path) -> api_machinery::field_path::FieldError {
    path.child("nodeSelectorTerms").invalid(BadValue::null(), "must have exactly one node selector term")
}

/// Checks the conditions that binding waits for, and those that end the wait.
pub(super) fn validate_conditions(
    path: &Path,
    wanted: &[String],
    failures: &[String],
    max: usize,
    errors: &mut ErrorList,
) {
    let (at_wanted, at_failures) = (path.child("bindingConditions"), path.child("bindingFailureConditions"));
    values::conditions(&at_wanted, wanted, max, errors);
    values::conditions(&at_failures, failures, max, errors);
    let known: BTreeSet<&String> = wanted.iter().collect();
    for (index, condition) in failures.iter().enumerate().filter(|(_, condition)| known.contains(condition)) {
        let detail = "bindingFailureConditions must not overlap with bindingConditions";
        errors.push(at_failures.index(index).invalid(condition, detail));
    }
    match (wanted.is_empty(), failures.is_empty()) {
        (true, false) => {
            let detail = "bindingConditions are required to use bindingFailureConditions";
            errors.push(at_wanted.invalid(BadValue::null(), detail));
        }
        (false, true) => {
            let detail = "bindingFailureConditions are required to use bindingConditions";
            errors.push(at_failures.invalid(BadValue::null(), detail));
        }
        _ => {}
    }
}

fn validate_mapping(
    path: &Path,
    name: &str,
    mapping: &NodeAllocatableResourceMapping,
    device: &Device,
    errors: &mut ErrorList,
) {
    if !is_allocatable(name) {
        errors.push(path.invalid(name, NOT_ALLOCATABLE));
    }
    let path = entry(path, name);
    if mapping.capacity_key.is_none() && mapping.allocation_multiplier.is_none() {
        let detail = "at least one of allocationMultiplier or capacityKey must be set";
        errors.push(path.invalid(BadValue::null(), detail));
    }
    if let Some(factor) = mapping.allocation_multiplier.as_ref().filter(|factor| factor.cmp_i64(0).is_le()) {
        errors.push(path.child("allocationMultiplier").invalid(factor, "must be positive"));
    }
    if let Some(key) = &mapping.capacity_key {
        let at = path.child("capacityKey");
        if key.is_empty() {
            errors.push(at.invalid(key, "capacityKey must not be an empty string"));
        } else if !device.capacity.contains_key(key) {
            errors.push(at.not_found(key));
        }
    }
}
