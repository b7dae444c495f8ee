//! Secret of core/v1: its names, and its rules.

use api_types::core_v1::Secret;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Secret",
    resource: "secrets",
    singular: "secret",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "secrets", group: "", version: "v1", hash: "S6u1pOWzb84=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["type"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Type", type_: "string", format: "", priority: 0 },
        Column { name: "Data", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct SecretRules;

impl TypedRules for SecretRules {
    type Object = Secret;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
