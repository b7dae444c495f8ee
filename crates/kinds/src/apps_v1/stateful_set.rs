//! StatefulSet of apps/v1: its names, and its rules.

use api_types::apps_v1::StatefulSet;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "StatefulSet",
    resource: "statefulsets",
    singular: "statefulset",
    short_names: &["sts"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "statefulsets", group: "apps", version: "v1", hash: "H+vl74LkKdo=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Ready", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
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
            kind: "StatefulSet",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct StatefulSetRules;

impl TypedRules for StatefulSetRules {
    type Object = StatefulSet;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
