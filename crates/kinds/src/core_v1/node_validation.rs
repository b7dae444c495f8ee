//! Rules of nodes.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::taint_effect;
use api_types::core_v1::{Node, NodeConfigSource, Taint};
use feature_gates::Gates;

use super::node_annotations;
use crate::addresses;
use crate::field_rules as rules;
use crate::internal_json;
use crate::pod_spec::validation::amount;
use crate::rules::Endpoint;

const FEATURE_MAX_BYTES: usize = 253;
const FEATURE_FORM: &str = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., \
                            MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes";
const ONE_EACH: &str = "may specify no more than one CIDR for each IP family";

/// Checks a node, whichever way it is written.
pub(super) fn validate(node: &Node, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    node_annotations::validate(&node.metadata.annotations, &mut errors);
    // Upstream reports taints below the metadata, though they are in the spec.
    validate_taints(&Path::new("metadata").child("taints"), &node.spec.taints, &mut errors);
    validate_amounts(node, &mut errors);
    validate_features(&Path::new("status").child("declaredFeatures"), &node.status.declared_features, &mut errors);
    let path = Path::new("spec").child("podCIDRs");
    let cidrs = &node.spec.pod_cidrs;
    for (index, cidr) in cidrs.iter().enumerate() {
        errors.push_invalid(&path.index(index), cidr, addresses::cidr(gates, cidr));
    }
    let sixes = cidrs.iter().filter(|cidr| cidr.contains(':')).count();
    if cidrs.len() > 1 && (cidrs.len() > 2 || sixes != 1) {
        errors.push(path.invalid(BadValue::list(cidrs), ONE_EACH));
    }
    errors
}

fn validate_amounts(node: &Node, errors: &mut ErrorList) {
    let path = Path::new("status");
    for (field, list) in [("capacity", &node.status.capacity), ("allocatable", &node.status.allocatable)] {
        for (name, quantity) in list {
            amount(&path.child(field).child(name.clone()), name, quantity, errors);
        }
    }
    let swap = node.status.node_info.swap.as_ref().and_then(|swap| swap.capacity);
    if let Some(capacity) = swap.filter(|capacity| *capacity <= 0) {
        let at = Path::new("metadata").child("nodeSwapStatus").child("capacity");
        errors.push(at.invalid(capacity, rules::POSITIVE));
    }
}

/// Features come in order, each with a name such as `MyFeature/mySubFeature`.
fn validate_features(path: &Path, features: &[String], errors: &mut ErrorList) {
    for (index, feature) in features.iter().enumerate() {
        let at = path.index(index);
        let mut refuse = |why: &str| {
            errors.push(at.invalid(feature, format!("invalid feature name \"{feature}\": {why}")));
        };
        if feature.len() > FEATURE_MAX_BYTES {
            refuse(&names::max_characters_detail(FEATURE_MAX_BYTES));
        }
        if !is_feature_name(feature) {
            refuse(FEATURE_FORM);
        }
        let previous = index.checked_sub(1).and_then(|index| features.get(index));
        match previous.map(|previous| feature.cmp(previous)) {
            Some(Ordering::Equal) => errors.push(at.duplicate(feature)),
            Some(Ordering::Less) => errors.push(at.invalid(feature, "list must be sorted alphabetically")),
            _ => {}
        }
    }
}

fn is_feature_name(name: &str) -> bool {
    let alphanumeric = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.split('/').all(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()) && alphanumeric(part))
}

/// Checks a list of taints.
pub(super) fn validate_taints(path: &Path, taints: &[Taint], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        errors.push_invalid(&path.child("key"), &taint.key, names::qualified_name(&taint.key));
        let problems = names::label_value(&taint.value);
        if !problems.is_empty() {
            errors.push(path.child("value").invalid(taint.value.as_str(), problems.join(";")));
        }
        rules::choice_in_order(&path.child("effect"), &taint.effect, taint_effect::ALL, errors);
        if !seen.insert((&taint.key, &taint.effect)) {
            let mut error = path.duplicate(internal_json::bad_value(taint));
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
}

/// Checks a node that is to replace `old`. At the main endpoint several rules run twice, as upstream's do.
pub(super) fn validate_update(endpoint: Endpoint, node: &Node, old: &Node, gates: &Gates) -> ErrorList {
    let mut errors = if endpoint == Endpoint::Status { ErrorList::new() } else { validate(node, gates) };
    node_annotations::validate(&node.metadata.annotations, &mut errors);
    validate_amounts(node, &mut errors);
    validate_features(&Path::new("status").child("declaredFeatures"), &node.status.declared_features, &mut errors);
    let mut seen = BTreeSet::new();
    for (index, address) in node.status.addresses.iter().enumerate() {
        if !seen.insert((&address.type_, &address.address)) {
            let at = Path::new("status").child("addresses").index(index);
            errors.push(at.duplicate(internal_json::bad_value(address)));
        }
    }
    let path = Path::new("spec");
    let (new, stored) = (&node.spec.pod_cidrs, &old.spec.pod_cidrs);
    if !stored.is_empty() {
        let differing = new.iter().zip(stored).filter(|(new, old)| new != old).count();
        let count = if new.len() == stored.len() { differing } else { 1 };
        for _ in 0..count {
            let detail = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(path.child("podCIDRs").forbidden(detail));
        }
    }
    if !old.spec.provider_id.is_empty() && node.spec.provider_id != old.spec.provider_id {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(path.child("providerID").forbidden(detail));
    }
    validate_config(node, &mut errors);
    validate_taints(&Path::new("metadata").child("taints"), &node.spec.taints, &mut errors);
    if node.spec.external_id != old.spec.external_id {
        errors.push(path.child("externalID").forbidden("may not be updated"));
    }
    errors
}

/// Where the node's configuration came from, while there was such a feature; only old objects have any.
fn validate_config(node: &Node, errors: &mut ErrorList) {
    if let Some(source) = &node.spec.config_source {
        let path = Path::new("spec").child("configSource");
        validate_source(&path, source, errors);
        for (field, value) in
            source.config_map.iter().flat_map(|map| [("uid", &map.uid), ("resourceVersion", &map.resource_version)])
        {
            if !value.is_empty() {
                errors.push(path.child("configMap").child(field).forbidden(format!("{field} must not be set in spec")));
            }
        }
    }
    let Some(config) = &node.status.config else { return };
    let path = Path::new("status").child("config");
    for (field, source) in
        [("assigned", &config.assigned), ("active", &config.active), ("lastKnownGood", &config.last_known_good)]
    {
        let Some(source) = source else { continue };
        let path = path.child(field);
        validate_source(&path, source, errors);
        for (field, value) in
            source.config_map.iter().flat_map(|map| [("uid", &map.uid), ("resourceVersion", &map.resource_version)])
        {
            rules::required(&path.child("configMap").child(field), value, errors);
        }
    }
}

fn validate_source(path: &Path, source: &NodeConfigSource, errors: &mut ErrorList) {
    let Some(map) = &source.config_map else {
        let value = internal_json::bad_value(source);
        errors.push(path.invalid(value, "exactly one reference subfield must be non-nil"));
        return;
    };
    let path = path.child("configMap");
    rules::named(&path.child("namespace"), &map.namespace, names::dns1123_label, errors);
    rules::named(&path.child("name"), &map.name, names::dns1123_subdomain, errors);
    rules::named(&path.child("kubeletConfigKey"), &map.kubelet_config_key, names::config_key, errors);
}
