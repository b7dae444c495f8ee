//! Ingress of networking.k8s.io/v1: its names, and its rules.

use api_types::networking_v1::Ingress;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "networking.k8s.io",
    version: "v1",
    kind: "Ingress",
    resource: "ingresses",
    singular: "ingress",
    short_names: &["ing"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "ingress", group: "networking.k8s.io", version: "v1", hash: "39NQlfNR+bo=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Class", type_: "string", format: "", priority: 0 },
        Column { name: "Hosts", type_: "string", format: "", priority: 0 },
        Column { name: "Address", type_: "string", format: "", priority: 0 },
        Column { name: "Ports", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "Ingress",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct IngressRules;

impl TypedRules for IngressRules {
    type Object = Ingress;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
