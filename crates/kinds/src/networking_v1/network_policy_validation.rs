//! Validation of network policies: whom they select, whom they let in and out, and through which ports.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::intstr::IntOrString;
use api_machinery::names;
use api_types::core_v1::constants::protocol;
use api_types::networking_v1::constants::policy_type;
use api_types::networking_v1::{IPBlock, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use feature_gates::Gates;

use crate::address_warnings;
use crate::addresses;
use crate::field_rules as rules;
use crate::label_selector::{self, Values};

const MAX_TYPES: usize = 2;

/// Every block of a policy, with the path of its field.
fn blocks<'a>(spec: &'a NetworkPolicySpec) -> impl Iterator<Item = (Path, &'a IPBlock)> {
    let path = Path::new("spec");
    let (ingress, egress) = (path.child("ingress"), path.child("egress"));
    let from = spec.ingress.iter().enumerate().map(move |(i, rule)| (ingress.index(i).child("from"), &rule.from));
    let to = spec.egress.iter().enumerate().map(move |(i, rule)| (egress.index(i).child("to"), &rule.to));
    from.chain(to).flat_map(|(path, peers)| {
        let block = move |(index, peer): (usize, &'a NetworkPolicyPeer)| {
            peer.ip_block.as_ref().map(|block| (path.index(index).child("ipBlock"), block))
        };
        peers.iter().enumerate().filter_map(block)
    })
}

/// What is not held against a policy, as the stored one has it already.
struct Stored<'a> {
    blocks: BTreeSet<&'a str>,
    gates: &'a Gates,
    values: Values,
}

impl<'a> Stored<'a> {
    fn of(old: Option<&'a NetworkPolicySpec>, gates: &'a Gates) -> Self {
        let texts = |(_, block): (Path, &'a IPBlock)| std::iter::once(&block.cidr).chain(&block.except);
        let blocks = old.into_iter().flat_map(blocks).flat_map(texts).map(String::as_str).collect();
        let bad = old.is_some_and(|old| label_selector::is_bad(&old.pod_selector));
        Self { blocks, gates, values: if bad { Values::AsStored } else { Values::Checked } }
    }

    fn block_problems(&self, text: &str) -> Vec<String> {
        if self.blocks.contains(text) { Vec::new() } else { addresses::cidr(self.gates, text) }
    }
}

/// Checks what a policy says. `old` is the stored one on updates.
pub(super) fn validate(spec: &NetworkPolicySpec, old: Option<&NetworkPolicySpec>, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let stored = Stored::of(old, gates);
    let path = Path::new("spec");
    label_selector::validate(&path.child("podSelector"), &spec.pod_selector, stored.values, &mut errors);
    for (index, rule) in spec.ingress.iter().enumerate() {
        let at = path.child("ingress").index(index);
        validate_ports(&at, &rule.ports, &mut errors);
        validate_peers(&at.child("from"), &rule.from, &stored, &mut errors);
    }
    for (index, rule) in spec.egress.iter().enumerate() {
        let at = path.child("egress").index(index);
        validate_ports(&at, &rule.ports, &mut errors);
        validate_peers(&at.child("to"), &rule.to, &stored, &mut errors);
    }
    let at = path.child("policyTypes");
    if spec.policy_types.len() > MAX_TYPES {
        errors.push(at.invalid(BadValue::list(&spec.policy_types), "may not specify more than two policyTypes"));
        return errors;
    }
    for (index, type_) in spec.policy_types.iter().enumerate() {
        if !policy_type::ALL.contains(&type_.as_str()) {
            errors.push(at.index(index).not_supported_in_order(BadValue::named(type_), policy_type::ALL));
        }
    }
    errors
}

fn validate_ports(path: &Path, ports: &[NetworkPolicyPort], errors: &mut ErrorList) {
    for (index, port) in ports.iter().enumerate() {
        let path = path.child("ports").index(index);
        if let Some(protocol) = port.protocol.as_ref().filter(|one| !protocol::ALL.contains(&one.as_str())) {
            errors.push(path.child("protocol").not_supported_in_order(BadValue::named(protocol), protocol::ALL));
        }
        validate_port(&path, port, errors);
    }
}

fn validate_port(path: &Path, port: &NetworkPolicyPort, errors: &mut ErrorList) {
    let (at, end_at) = (path.child("port"), path.child("endPort"));
    match (&port.port, port.end_port) {
        (Some(IntOrString::Int(number)), end) => {
            rules::port(&at, *number, errors);
            let Some(end) = end else { return };
            if end < *number {
                // The value shown is that of the port.
                errors.push(end_at.invalid(*number, "must be greater than or equal to `port`"));
            }
            rules::port(&end_at, end, errors);
        }
        (Some(IntOrString::Str(name)), end) => {
            if let Some(end) = end {
                errors.push(end_at.invalid(end, "may not be specified when `port` is non-numeric"));
            }
            errors.push_invalid(&at, name, names::port_name(name));
        }
        (None, Some(end)) => errors.push(end_at.invalid(end, "may not be specified when `port` is not specified")),
        (None, None) => {}
    }
}

fn validate_peers(path: &Path, peers: &[NetworkPolicyPeer], stored: &Stored<'_>, errors: &mut ErrorList) {
    for (index, peer) in peers.iter().enumerate() {
        let path = path.index(index);
        let selectors = [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
        for (field, selector) in &selectors {
            if let Some(selector) = selector {
                label_selector::validate(&path.child(*field), selector, stored.values, errors);
            }
        }
        if let Some(block) = &peer.ip_block {
            validate_block(&path.child("ipBlock"), block, stored, errors);
        }
        let selects = selectors.iter().any(|(_, selector)| selector.is_some());
        match (selects, peer.ip_block.is_some()) {
            (false, false) => errors.push(path.required("must specify a peer")),
            (true, true) => errors.push(path.forbidden("may not specify both ipBlock and another peer")),
            _ => {}
        }
    }
}

fn validate_block(path: &Path, block: &IPBlock, stored: &Stored<'_>, errors: &mut ErrorList) {
    let at = path.child("cidr");
    if !rules::required(&at, &block.cidr, errors) {
        return;
    }
    errors.push_invalid(&at, &block.cidr, stored.block_problems(&block.cidr));
    let Some(outer) = names::parse_cidr_lenient(&block.cidr) else { return };
    for (index, text) in block.except.iter().enumerate() {
        let at = path.child("except").index(index);
        errors.push_invalid(&at, text, stored.block_problems(text));
        let Some((address, length)) = names::parse_cidr_lenient(text) else { continue };
        if !address_warnings::contains(outer, address) || length <= outer.1 {
            errors.push(at.invalid(text, "must be a strict subset of `cidr`"));
        }
    }
}

/// What is told of the spelling of blocks.
pub(super) fn warnings(spec: &NetworkPolicySpec) -> Vec<String> {
    let mut texts = Vec::new();
    for (path, block) in blocks(spec) {
        texts.extend(address_warnings::of_cidr(&path.child("cidr"), &block.cidr));
        texts.extend(address_warnings::of_cidrs(&path.child("except"), &block.except));
    }
    texts
}
