//! DaemonSet of apps/v1: its names, and its rules.

use api_types::apps_v1::DaemonSet;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "DaemonSet",
    resource: "daemonsets",
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "daemonsets", group: "apps", version: "v1", hash: "dd7pWHUlMKQ=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Desired", type_: "integer", format: "", priority: 0 },
        Column { name: "Current", type_: "integer", format: "", priority: 0 },
        Column { name: "Ready", type_: "integer", format: "", priority: 0 },
        Column { name: "Up-to-date", type_: "integer", format: "", priority: 0 },
        Column { name: "Available", type_: "integer", format: "", priority: 0 },
        Column { name: "Node Selector", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "DaemonSet",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct DaemonSetRules;

impl TypedRules for DaemonSetRules {
    type Object = DaemonSet;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
