//! EndpointSlice of discovery.k8s.io/v1: its names, and its rules.

use super::slice_validation;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_types::discovery_v1::EndpointSlice;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, RuleContext};
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::discovery_v1::EndpointPort;

static INFO: ResourceInfo = ResourceInfo {
    group: "discovery.k8s.io",
    version: "v1",
    kind: "EndpointSlice",
    resource: "endpointslices",
    singular: "endpointslice",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "endpointslices",
        group: "discovery.k8s.io",
        version: "v1",
        hash: "qgS0xkrxYAI=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "AddressType", type_: "string", format: "", priority: 0 },
        Column { name: "Ports", type_: "string", format: "", priority: 0 },
        Column { name: "Endpoints", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct EndpointSliceRules;

impl TypedRules for EndpointSliceRules {
    type Object = EndpointSlice;
    const INFO: &'static ResourceInfo = &INFO;

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
            object.endpoints.iter_mut().for_each(|one| one.deprecated_topology.clear());
        }
    }

    fn validate(_: &RuleContext, object: &EndpointSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        slice_validation::validate(object, &mut errors);
        slice_validation::validate_endpoints(object, &mut errors);
        errors
    }

    fn validate_update(_: &RuleContext, _: Endpoint, object: &EndpointSlice, old: &EndpointSlice) -> ErrorList {
        let mut errors = ErrorList::new();
        if object.address_type != old.address_type {
            let value = BadValue::named(&object.address_type);
            errors.push(Path::new("addressType").invalid(value, crate::field_rules::IMMUTABLE));
        }
        slice_validation::validate(object, &mut errors);
        if object.endpoints != old.endpoints {
            slice_validation::validate_endpoints(object, &mut errors);
        }
        errors
    }

    fn warnings(object: &EndpointSlice, old: Option<&EndpointSlice>) -> Vec<String> {
        let named = old.is_none() && object.address_type == "FQDN";
        named.then(|| "spec.addressType: FQDN endpoints are deprecated".to_owned()).into_iter().collect()
    }

    fn cells(object: &EndpointSlice, now: Time) -> Vec<Value> {
        let port = |port: &EndpointPort| match (port.port, port.name.as_deref()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) if !name.is_empty() => name.to_owned(),
            _ => "*".to_owned(),
        };
        let ports: Vec<String> = object.ports.iter().map(port).collect();
        let endpoints: Vec<String> = object.endpoints.iter().flat_map(|one| one.addresses.iter().cloned()).collect();
        vec![
            object.metadata.name.clone().into(),
            object.address_type.clone().into(),
            table::or_else(table::first_few(&ports, 3), "<unset>").into(),
            table::or_else(table::first_few(&endpoints, 3), "<unset>").into(),
            table::age(&object.metadata, now),
        ]
    }
}
