//! StorageClass of storage.k8s.io/v1: its names, and its rules.

use api_types::storage_v1::StorageClass;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "storage.k8s.io",
    version: "v1",
    kind: "StorageClass",
    resource: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "storageclasses",
        group: "storage.k8s.io",
        version: "v1",
        hash: "K+m6uJwbjGY=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Provisioner", type_: "string", format: "", priority: 0 },
        Column { name: "ReclaimPolicy", type_: "string", format: "", priority: 0 },
        Column { name: "VolumeBindingMode", type_: "string", format: "", priority: 0 },
        Column { name: "AllowVolumeExpansion", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct StorageClassRules;

impl TypedRules for StorageClassRules {
    type Object = StorageClass;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &StorageClass, now: Time) -> Vec<Value> {
        let is_default =
            ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
                .iter()
                .any(|key| object.metadata.annotations.get(*key).is_some_and(|value| value == "true"));
        let name = format!("{}{}", object.metadata.name, if is_default { " (default)" } else { "" });
        vec![
            name.into(),
            object.provisioner.clone().into(),
            object.reclaim_policy.clone().unwrap_or_else(|| "Delete".into()).into(),
            object.volume_binding_mode.clone().unwrap_or_else(|| "Immediate".into()).into(),
            object.allow_volume_expansion.unwrap_or_default().into(),
            table::age(&object.metadata, now),
        ]
    }
}
