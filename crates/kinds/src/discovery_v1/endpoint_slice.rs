//! EndpointSlice of discovery.k8s.io/v1: its names, and its rules.

use api_types::discovery_v1::EndpointSlice;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

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
}
