//! RuntimeClass of node.k8s.io/v1: its names, and its rules.

use api_types::node_v1::RuntimeClass;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "node.k8s.io",
    version: "v1",
    kind: "RuntimeClass",
    resource: "runtimeclasses",
    singular: "runtimeclass",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "runtimeclasses", group: "node.k8s.io", version: "v1", hash: "WQTu1GL3T2Q=" }),
    create_on_update: true,
    unconditional_update: false,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Handler", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct RuntimeClassRules;

impl TypedRules for RuntimeClassRules {
    type Object = RuntimeClass;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &RuntimeClass, now: Time) -> Vec<Value> {
        vec![object.metadata.name.clone().into(), object.handler.clone().into(), table::age(&object.metadata, now)]
    }
}
