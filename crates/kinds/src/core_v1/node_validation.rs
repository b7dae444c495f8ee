//! Rules of nodes.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::{Node, Taint};

use crate::field_rules as rules;
use crate::internal_json;
use crate::pod_spec::validation::{EFFECTS, amount};

const ONE_EACH: &str = "may specify no more than one CIDR for each IP family";

/// Checks a node, whichever way it is written.
pub(super) fn validate(node: &Node) -> ErrorList {
    let mut errors = ErrorList::new();
    // Upstream reports taints below the metadata, though they are in the spec.
    taints(&Path::new("metadata").child("taints"), &node.spec.taints, &mut errors);
    validate_amounts(node, &mut errors);
    let path = Path::new("spec").child("podCIDRs");
    let cidrs = &node.spec.pod_cidrs;
    for (index, cidr) in cidrs.iter().enumerate() {
        errors.push_invalid(&path.index(index), cidr, names::cidr(cidr));
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

fn taints(path: &Path, taints: &[Taint], errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        errors.push_invalid(&path.child("key"), &taint.key, names::qualified_name(&taint.key));
        let problems = names::label_value(&taint.value);
        if !problems.is_empty() {
            errors.push(path.child("value").invalid(taint.value.as_str(), problems.join(";")));
        }
        rules::choice_in_order(&path.child("effect"), &taint.effect, &EFFECTS, errors);
        if !seen.insert((&taint.key, &taint.effect)) {
            let mut error = path.duplicate(internal_json::bad_value(taint));
            error.detail = "taints must be unique by key and effect pair".into();
            errors.push(error);
        }
    }
}

/// Checks a node that is to replace `old`, at the main endpoint and that of the status alike.
pub(super) fn validate_update(node: &Node, old: &Node) -> ErrorList {
    let mut errors = validate(node);
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
    if node.spec.external_id != old.spec.external_id {
        errors.push(path.child("externalID").forbidden("may not be updated"));
    }
    errors
}
