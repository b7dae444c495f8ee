//! Endpoints of core/v1: its names, and its rules.

use api_types::core_v1::Endpoints;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Endpoints",
    resource: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "services/endpoints", group: "", version: "v1", hash: "fWeeMqaN/OA=" }),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Endpoints", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct EndpointsRules;

impl TypedRules for EndpointsRules {
    type Object = Endpoints;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &Endpoints, now: Time) -> Vec<Value> {
        vec![object.metadata.name.clone().into(), addresses(object).into(), table::age(&object.metadata, now)]
    }
}

/// Every address with every port; addresses alone where a subset has no ports.
fn addresses(endpoints: &Endpoints) -> String {
    let mut all = Vec::new();
    for subset in &endpoints.subsets {
        for address in &subset.addresses {
            if subset.ports.is_empty() {
                all.push(address.ip.clone());
            }
            for port in &subset.ports {
                let ip = if address.ip.contains(':') { format!("[{}]", address.ip) } else { address.ip.clone() };
                all.push(format!("{ip}:{}", port.port));
            }
        }
    }
    table::or_none(table::first_few(&all, 3))
}
