//! Endpoints of core/v1: its names, and its rules.

use crate::address_warnings;
use crate::addresses;
use crate::field_rules;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::Endpoints;
use api_types::core_v1::constants::protocol;
use api_types::core_v1::{EndpointAddress, EndpointSubset};
use feature_gates::Gates;

use crate::info::{ResourceInfo, StorageInfo};
use crate::lifecycle::{Deprecated, Lifecycle};
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["ep"],
    storage: Some(StorageInfo::of::<Endpoints>("services/endpoints", "fWeeMqaN/OA=")),
    create_on_update: true,
    unconditional_update: true,
    ..ResourceInfo::of::<Endpoints>()
};

/// The rules of the kind.
pub(crate) struct EndpointsRules;

impl TypedRules for EndpointsRules {
    type Object = Endpoints;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Endpoints>] =
        &[Cell::NAME, Cell::text("Endpoints", |object, _| addresses(object).into()), Cell::AGE];
    const LIFECYCLE: Lifecycle = Lifecycle {
        deprecated: Some(Deprecated { since: "v1.33+", instead: "discovery.k8s.io/v1 EndpointSlice" }),
        ..Lifecycle::DEFAULT
    };
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &Endpoints) -> ErrorList {
        let mut errors = ErrorList::new();
        for (index, subset) in object.subsets.iter().enumerate() {
            validate_subset(&Path::new("subsets").index(index), subset, &cx.gates, &mut errors);
        }
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &Endpoints, old: &Endpoints) -> ErrorList {
        if object.subsets == old.subsets { ErrorList::new() } else { Self::validate(cx, object) }
    }

    fn warnings(object: &Endpoints, _: Option<&Endpoints>) -> Vec<String> {
        let managed = object.metadata.labels.get("endpoints.kubernetes.io/managed-by");
        if managed.is_some_and(|by| by == "endpoint-controller") {
            return Vec::new();
        }
        let mut texts = Vec::new();
        for (index, subset) in object.subsets.iter().enumerate() {
            let path = Path::new("subsets").index(index);
            for (field, list) in [("addresses", &subset.addresses), ("notReadyAddresses", &subset.not_ready_addresses)]
            {
                let told = |(index, one): (usize, &EndpointAddress)| {
                    address_warnings::of_ip(&path.child(field).index(index).child("ip"), &one.ip)
                };
                texts.extend(list.iter().enumerate().filter_map(told));
            }
        }
        texts
    }
}

/// Every port with every address; addresses alone where a subset has no ports. Nothing where nobody is ready.
fn addresses(endpoints: &Endpoints) -> String {
    if endpoints.subsets.is_empty() {
        return "<none>".into();
    }
    let mut all = Vec::new();
    for subset in &endpoints.subsets {
        if subset.ports.is_empty() {
            all.extend(subset.addresses.iter().map(|address| address.ip.clone()));
        }
        for port in &subset.ports {
            all.extend(subset.addresses.iter().map(|address| match address.ip.contains(':') {
                true => format!("[{}]:{}", address.ip, port.port),
                false => format!("{}:{}", address.ip, port.port),
            }));
        }
    }
    table::first_few(&all, 3)
}

fn validate_subset(path: &Path, subset: &EndpointSubset, gates: &Gates, errors: &mut ErrorList) {
    if subset.addresses.is_empty() && subset.not_ready_addresses.is_empty() {
        errors.push(path.required("must specify `addresses` or `notReadyAddresses`"));
    }
    for (field, addresses) in [("addresses", &subset.addresses), ("notReadyAddresses", &subset.not_ready_addresses)] {
        for (index, address) in addresses.iter().enumerate() {
            validate_address(&path.child(field).index(index), address, gates, errors);
        }
    }
    for (index, port) in subset.ports.iter().enumerate() {
        let path = path.child("ports").index(index);
        if port.name.is_empty() && subset.ports.len() > 1 {
            errors.push(path.child("name").required(""));
        }
        field_rules::named_if_set(&path.child("name"), &port.name, names::dns1123_label, errors);
        field_rules::port(&path.child("port"), port.port, errors);
        field_rules::choice(&path.child("protocol"), &port.protocol, protocol::ALL, errors);
        if let Some(protocol) = &port.app_protocol {
            errors.push_invalid(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
        }
    }
}

fn validate_address(path: &Path, address: &EndpointAddress, gates: &Gates, errors: &mut ErrorList) {
    let at = path.child("ip");
    errors.push_invalid(&at, &address.ip, addresses::ip(gates, &address.ip));
    field_rules::named_if_set(&path.child("hostname"), &address.hostname, names::dns1123_label, errors);
    if let Some(node) = &address.node_name {
        errors.push_invalid(&path.child("nodeName"), node, names::dns1123_subdomain(node));
    }
    match names::parse_ip_lenient(&address.ip) {
        Some(ip) => errors.push_invalid(&at, &address.ip, names::endpoint_ip(ip)),
        None => errors.push(at.invalid(address.ip.as_str(), "must be a valid IP address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_need_addresses_that_can_be_reached() {
        let mut errors = ErrorList::new();
        validate_subset(&Path::new("s"), &EndpointSubset::default(), &Gates::default(), &mut errors);
        let address = EndpointAddress { ip: "127.0.0.1".into(), ..EndpointAddress::default() };
        let subset = EndpointSubset { addresses: vec![address], ..EndpointSubset::default() };
        validate_subset(&Path::new("s"), &subset, &Gates::default(), &mut errors);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "s: Required value: must specify `addresses` or `notReadyAddresses`",
                "s.addresses[0].ip: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
            ]
        );
    }
}
