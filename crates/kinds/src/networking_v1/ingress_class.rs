//! IngressClass of networking.k8s.io/v1: its names, and its rules.

use api_types::networking_v1::IngressClass;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "networking.k8s.io",
    version: "v1",
    kind: "IngressClass",
    resource: "ingressclasses",
    singular: "ingressclass",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "ingressclasses",
        group: "networking.k8s.io",
        version: "v1",
        hash: "l/iqIbDgFyQ=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Controller", type_: "string", format: "", priority: 0 },
        Column { name: "Parameters", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct IngressClassRules;

impl TypedRules for IngressClassRules {
    type Object = IngressClass;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
