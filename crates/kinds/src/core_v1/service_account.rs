//! ServiceAccount of core/v1: its names, and its rules.

use api_types::core_v1::ServiceAccount;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "ServiceAccount",
    resource: "serviceaccounts",
    singular: "serviceaccount",
    short_names: &["sa"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "serviceaccounts", group: "", version: "v1", hash: "pbx9ZvyFpBE=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[SubresourceInfo {
        name: "token",
        kind: "TokenRequest",
        group: "authentication.k8s.io",
        version: "v1",
        verbs: &["create"],
    }],
};

/// The rules of the kind.
pub(crate) struct ServiceAccountRules;

impl TypedRules for ServiceAccountRules {
    type Object = ServiceAccount;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &ServiceAccount, now: Time) -> Vec<Value> {
        vec![object.metadata.name.clone().into(), table::age(&object.metadata, now)]
    }
}
