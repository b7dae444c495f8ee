//! Lease of coordination.k8s.io/v1: its names, and its rules.

use api_types::coordination_v1::Lease;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "coordination.k8s.io",
    version: "v1",
    kind: "Lease",
    resource: "leases",
    singular: "lease",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "leases", group: "coordination.k8s.io", version: "v1", hash: "gqkMMb/YqFM=" }),
    create_on_update: true,
    unconditional_update: false,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Holder", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct LeaseRules;

impl TypedRules for LeaseRules {
    type Object = Lease;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &Lease, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            object.spec.holder_identity.clone().unwrap_or_default().into(),
            table::age(&object.metadata, now),
        ]
    }
}
