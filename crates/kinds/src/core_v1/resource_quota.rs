//! ResourceQuota of core/v1: its names, and its rules.

use api_types::core_v1::ResourceQuota;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "ResourceQuota",
    resource: "resourcequotas",
    singular: "resourcequota",
    short_names: &["quota"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "resourcequotas", group: "", version: "v1", hash: "8uhSgffRX6w=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Request", type_: "string", format: "", priority: 0 },
        Column { name: "Limit", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "ResourceQuota",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct ResourceQuotaRules;

impl TypedRules for ResourceQuotaRules {
    type Object = ResourceQuota;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
