//! Rules of endpoint slices.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::protocol;
use api_types::discovery_v1::constants::address_type;
use api_types::discovery_v1::{Endpoint, EndpointHints, EndpointSlice};
use feature_gates::Gates;

use crate::addresses;
use crate::field_rules as rules;

const MAX_PORTS: usize = 20_000;
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_HINTS: usize = 8;

/// Checks everything but the endpoints, which unchanged ones are spared.
pub(super) fn validate(slice: &EndpointSlice, errors: &mut ErrorList) {
    rules::choice(&Path::new("addressType"), &slice.address_type, address_type::ALL, errors);
    let path = Path::new("ports");
    if slice.ports.len() > MAX_PORTS {
        errors.push(path.too_many(slice.ports.len(), MAX_PORTS));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, port) in slice.ports.iter().enumerate() {
        let path = path.index(index);
        let name = port.name.as_deref().unwrap_or_default();
        rules::named_if_set(&path.child("name"), name, names::dns1123_label, errors);
        if !seen.insert(name) {
            errors.push(path.child("name").duplicate(BadValue::from(name)));
        }
        let protocol = port.protocol.as_deref().unwrap_or_default();
        rules::choice(&path.child("protocol"), protocol, protocol::ALL, errors);
        if let Some(protocol) = &port.app_protocol {
            errors.push_invalid(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
        }
    }
}

/// Checks the endpoints.
pub(super) fn validate_endpoints(slice: &EndpointSlice, gates: &Gates, errors: &mut ErrorList) {
    let path = Path::new("endpoints");
    if slice.endpoints.len() > MAX_ENDPOINTS {
        errors.push(path.too_many(slice.endpoints.len(), MAX_ENDPOINTS));
        return;
    }
    for (index, endpoint) in slice.endpoints.iter().enumerate() {
        validate_endpoint(&path.index(index), (&slice.address_type, endpoint), gates, errors);
    }
}

fn validate_endpoint(path: &Path, (type_, endpoint): (&str, &Endpoint), gates: &Gates, errors: &mut ErrorList) {
    let at = path.child("addresses");
    match endpoint.addresses.len() {
        0 => errors.push(at.required("must contain at least 1 address")),
        count if count > MAX_ADDRESSES => errors.push(at.too_many(count, MAX_ADDRESSES)),
        _ => {}
    }
    for (index, address) in endpoint.addresses.iter().enumerate() {
        validate_address((&at, index), type_, address, gates, errors);
    }
    if let Some(node) = &endpoint.node_name {
        errors.push_invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node));
    }
    if let Some(name) = &endpoint.hostname {
        errors.push_invalid(&path.child("hostname"), name, names::dns1123_label(name));
    }
    if let Some(hints) = &endpoint.hints {
        validate_hints(&path.child("hints"), hints, errors);
    }
}

fn validate_address((path, index): (&Path, usize), type_: &str, address: &str, gates: &Gates, errors: &mut ErrorList) {
    let at = path.index(index);
    let wanted = match type_ {
        "IPv4" => {
            errors.push_invalid(&at, address, addresses::ip(gates, address));
            "must be an IPv4 address"
        }
        "IPv6" => {
            errors.push_invalid(&at, address, names::ip_strict(address));
            "must be an IPv6 address"
        }
        "FQDN" => return errors.extend(names::fully_qualified_domain_name(&at, address)),
        _ => return,
    };
    let Some(ip) = names::parse_ip_lenient(address) else { return };
    if ip.is_ipv4() != (type_ == "IPv4") {
        errors.push(path.invalid(address, wanted));
    }
    errors.push_invalid(&at, address, names::endpoint_ip(ip));
}

fn validate_hints(path: &Path, hints: &EndpointHints, errors: &mut ErrorList) {
    let zones: Vec<&str> = hints.for_zones.iter().map(|zone| zone.name.as_str()).collect();
    let nodes: Vec<&str> = hints.for_nodes.iter().map(|node| node.name.as_str()).collect();
    let lists: [(&str, Vec<&str>, rules::NameRule); 2] =
        [("forZones", zones, names::label_value), ("forNodes", nodes, names::dns1123_subdomain)];
    for (field, list, rule) in lists {
        let path = path.child(field);
        if list.len() > MAX_HINTS {
            errors.push(path.too_many(list.len(), MAX_HINTS));
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, name) in list.into_iter().enumerate() {
            let at = path.index(index).child("name");
            if !seen.insert(name) {
                errors.push(at.duplicate(name));
            }
            errors.push_invalid(&at, name, rule(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_the_type() {
        for (type_, address, expected) in [
            ("IPv4", "10.0.0.1", &[][..]),
            ("IPv4", "fd00::1", &["e[0].addresses: Invalid value: \"fd00::1\": must be an IPv4 address"]),
            ("IPv6", "fd00::1", &[]),
            (
                "IPv4",
                "x",
                &[
                    "e[0].addresses[0]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            ("FQDN", "a.example.com", &[]),
            (
                "IPv4",
                "169.254.0.1",
                &["e[0].addresses[0]: Invalid value: \"169.254.0.1\": may not be in the link-local range \
                   (169.254.0.0/16, fe80::/10)"],
            ),
        ] {
            let endpoint = Endpoint { addresses: vec![address.into()], ..Endpoint::default() };
            let mut errors = ErrorList::new();
            validate_endpoint(&Path::new("e").index(0), (type_, &endpoint), &Gates::default(), &mut errors);
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(texts, expected, "{type_} {address}");
        }
    }
}
