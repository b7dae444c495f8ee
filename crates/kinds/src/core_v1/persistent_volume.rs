//! PersistentVolume of core/v1: its names, and its rules.

use api_types::core_v1::PersistentVolume;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "PersistentVolume",
    resource: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "persistentvolumes", group: "", version: "v1", hash: "HN/zwEC+JgM=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Capacity", type_: "string", format: "", priority: 0 },
        Column { name: "Access Modes", type_: "string", format: "", priority: 0 },
        Column { name: "Reclaim Policy", type_: "string", format: "", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Claim", type_: "string", format: "", priority: 0 },
        Column { name: "StorageClass", type_: "string", format: "", priority: 0 },
        Column { name: "VolumeAttributesClass", type_: "string", format: "", priority: 0 },
        Column { name: "Reason", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "VolumeMode", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "PersistentVolume",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeRules;

impl TypedRules for PersistentVolumeRules {
    type Object = PersistentVolume;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
