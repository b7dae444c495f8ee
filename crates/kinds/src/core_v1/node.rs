//! Node of core/v1: its names, and its rules.

use api_types::core_v1::Node;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Node",
    resource: "nodes",
    singular: "node",
    short_names: &["no"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "minions", group: "", version: "v1", hash: "XwShjMxG9Fs=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["spec.unschedulable"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Roles", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Version", type_: "string", format: "", priority: 0 },
        Column { name: "Internal-IP", type_: "string", format: "", priority: 1 },
        Column { name: "External-IP", type_: "string", format: "", priority: 1 },
        Column { name: "OS-Image", type_: "string", format: "", priority: 1 },
        Column { name: "Kernel-Version", type_: "string", format: "", priority: 1 },
        Column { name: "Container-Runtime", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "proxy",
            kind: "NodeProxyOptions",
            group: "",
            version: "",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        SubresourceInfo { name: "status", kind: "Node", group: "", version: "", verbs: &["get", "patch", "update"] },
    ],
};

/// The rules of the kind.
pub(crate) struct NodeRules;

impl TypedRules for NodeRules {
    type Object = Node;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
