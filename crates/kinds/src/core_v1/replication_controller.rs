//! ReplicationController of core/v1: its names, and its rules.

use api_types::core_v1::ReplicationController;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "ReplicationController",
    resource: "replicationcontrollers",
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "controllers", group: "", version: "v1", hash: "Jond2If31h0=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.replicas"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Desired", type_: "integer", format: "", priority: 0 },
        Column { name: "Current", type_: "integer", format: "", priority: 0 },
        Column { name: "Ready", type_: "integer", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "scale",
            kind: "Scale",
            group: "autoscaling",
            version: "v1",
            verbs: &["get", "patch", "update"],
        },
        SubresourceInfo {
            name: "status",
            kind: "ReplicationController",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct ReplicationControllerRules;

impl TypedRules for ReplicationControllerRules {
    type Object = ReplicationController;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
