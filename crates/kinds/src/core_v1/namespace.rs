//! Namespace of core/v1: its names, and its rules.

use api_types::core_v1::Namespace;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Namespace",
    resource: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "namespaces", group: "", version: "v1", hash: "Q3oi5N2YM8M=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.phase"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[
        SubresourceInfo { name: "finalize", kind: "Namespace", group: "", version: "", verbs: &["update"] },
        SubresourceInfo {
            name: "status",
            kind: "Namespace",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct NamespaceRules;

impl TypedRules for NamespaceRules {
    type Object = Namespace;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
