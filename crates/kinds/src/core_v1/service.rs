//! Service of core/v1: its names, and its rules.

use api_types::core_v1::Service;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Service",
    resource: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "services/specs", group: "", version: "v1", hash: "0/CO1lhkEBI=" }),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &["spec.clusterIP", "spec.type"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Type", type_: "string", format: "", priority: 0 },
        Column { name: "Cluster-IP", type_: "string", format: "", priority: 0 },
        Column { name: "External-IP", type_: "string", format: "", priority: 0 },
        Column { name: "Port(s)", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "proxy",
            kind: "ServiceProxyOptions",
            group: "",
            version: "",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        SubresourceInfo { name: "status", kind: "Service", group: "", version: "", verbs: &["get", "patch", "update"] },
    ],
};

/// The rules of the kind.
pub(crate) struct ServiceRules;

impl TypedRules for ServiceRules {
    type Object = Service;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
