//! PersistentVolumeClaim of core/v1: its names, and its rules.

use api_types::core_v1::PersistentVolumeClaim;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "PersistentVolumeClaim",
    resource: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "persistentvolumeclaims", group: "", version: "v1", hash: "QWTyNDq0dC4=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Volume", type_: "string", format: "", priority: 0 },
        Column { name: "Capacity", type_: "string", format: "", priority: 0 },
        Column { name: "Access Modes", type_: "string", format: "", priority: 0 },
        Column { name: "StorageClass", type_: "string", format: "", priority: 0 },
        Column { name: "VolumeAttributesClass", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "VolumeMode", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "PersistentVolumeClaim",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct PersistentVolumeClaimRules;

impl TypedRules for PersistentVolumeClaimRules {
    type Object = PersistentVolumeClaim;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
