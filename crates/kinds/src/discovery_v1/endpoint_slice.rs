//! EndpointSlice of discovery.k8s.io/v1: its names, and its rules.

use super::slice_validation;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::object::Object;
use api_machinery::value::Value;
use api_types::discovery_v1::EndpointSlice;

use crate::address_warnings;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, MetadataCheck, RuleContext};
use crate::table::{self, Cell};
use crate::versions::Former;
use api_machinery::names;
use api_types::core_v1::constants::LABEL_TOPOLOGY_ZONE;
use api_types::discovery_v1::EndpointPort;
use api_types::discovery_v1beta1;
use std::collections::BTreeSet;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<EndpointSlice>("endpointslices", "qgS0xkrxYAI=")),
    unconditional_update: true,
    ..ResourceInfo::of::<EndpointSlice>()
};

/// The rules of the kind.
pub(crate) struct EndpointSliceRules;

impl TypedRules for EndpointSliceRules {
    type Object = EndpointSlice;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<EndpointSlice>] = &[
        Cell::NAME,
        Cell::text("AddressType", |object, _| object.address_type.clone().into()),
        Cell::text("Ports", |object, _| first_few(object.ports.iter().map(port))),
        Cell::text("Endpoints", |object, _| {
            first_few(object.endpoints.iter().flat_map(|one| one.addresses.iter().cloned()))
        }),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] =
        &[Former::own::<discovery_v1beta1::EndpointSlice>("discovery.k8s.io/v1beta1", first_form)];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut EndpointSlice) {
        for port in &mut object.ports {
            port.name.get_or_insert_default();
            port.protocol.get_or_insert_with(|| "TCP".into());
        }
    }

    fn prepare_create(_: &RuleContext, object: &mut EndpointSlice) {
        object.metadata.generation = 1;
        object.endpoints.iter_mut().for_each(|one| one.deprecated_topology.clear());
    }

    fn prepare_update(_: &RuleContext, _: Endpoint, object: &mut EndpointSlice, old: &EndpointSlice) {
        let changed = object.endpoints != old.endpoints
            || object.ports != old.ports
            || object.address_type != old.address_type
            || object.metadata.labels != old.metadata.labels;
        object.metadata.generation = old.metadata.generation + i64::from(changed);
        if object.endpoints != old.endpoints {
            drop_topology(object, old);
        }
    }

    fn validate(cx: &RuleContext, object: &EndpointSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        slice_validation::validate(object, &mut errors);
        slice_validation::validate_endpoints(object, &cx.gates, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, _: Endpoint, object: &EndpointSlice, old: &EndpointSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        slice_validation::validate(object, &mut errors);
        if object.endpoints != old.endpoints {
            slice_validation::validate_endpoints(object, &cx.gates, &mut errors);
        }
        if object.address_type != old.address_type {
            let value = BadValue::named(&object.address_type);
            errors.push(Path::new("addressType").invalid(value, crate::field_rules::IMMUTABLE));
        }
        errors
    }

    fn warnings(object: &EndpointSlice, old: Option<&EndpointSlice>) -> Vec<String> {
        let mut texts = Vec::new();
        if old.is_none() && object.address_type == "FQDN" {
            texts.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        let managed = object.metadata.labels.get("endpointslice.kubernetes.io/managed-by");
        if managed.is_some_and(|by| CONTROLLERS.contains(&by.as_str())) {
            return texts;
        }
        for (index, endpoint) in object.endpoints.iter().enumerate() {
            let path = Path::new("endpoints").index(index).child("addresses");
            texts.extend(address_warnings::of_ips(&path, &endpoint.addresses));
        }
        texts
    }
}

fn first_few(items: impl Iterator<Item = String>) -> Value {
    table::or_else(table::first_few(&items.collect::<Vec<_>>(), 3), "<unset>").into()
}

fn port(port: &EndpointPort) -> String {
    match (port.port, port.name.as_deref()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}

/// Those whose slices hold what nodes report, which nobody can mend.
const CONTROLLERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Clears what only older versions have. A node that was named there before is kept as the node of the endpoint.
fn drop_topology(slice: &mut EndpointSlice, old: &EndpointSlice) {
    let known: BTreeSet<&String> =
        old.endpoints.iter().filter_map(|one| one.deprecated_topology.get(HOSTNAME)).collect();
    for endpoint in &mut slice.endpoints {
        let node = endpoint.deprecated_topology.get(HOSTNAME).filter(|node| known.contains(node));
        let node = node.filter(|node| names::dns1123_subdomain(node).is_empty());
        if endpoint.node_name.is_none() {
            endpoint.node_name = node.cloned();
        }
        endpoint.deprecated_topology.clear();
    }
}

fn first_form(object: &dyn Object) -> Option<Box<dyn Object>> {
    let first: discovery_v1beta1::EndpointSlice = object.downcast_ref().cloned()?;
    Some(Box::new(EndpointSlice {
        metadata: first.metadata,
        address_type: first.address_type,
        endpoints: first.endpoints.into_iter().map(endpoint).collect(),
        ports: first.ports,
    }))
}

/// Zone and node were two of many facts about where an endpoint is; those that have no field stay as they were.
fn endpoint(first: discovery_v1beta1::Endpoint) -> api_types::discovery_v1::Endpoint {
    let mut topology = first.topology;
    let zone = topology.remove(LABEL_TOPOLOGY_ZONE);
    if first.node_name.is_some() && topology.get(HOSTNAME) == first.node_name.as_ref() {
        topology.remove(HOSTNAME);
    }
    api_types::discovery_v1::Endpoint {
        addresses: first.addresses,
        conditions: first.conditions,
        hostname: first.hostname,
        target_ref: first.target_ref,
        deprecated_topology: topology,
        node_name: first.node_name,
        zone,
        hints: first.hints,
    }
}
