//! PodDisruptionBudget of policy/v1: its names, and its rules.

use api_types::policy_v1::PodDisruptionBudget;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    resource: "poddisruptionbudgets",
    singular: "poddisruptionbudget",
    short_names: &["pdb"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "poddisruptionbudgets", group: "policy", version: "v1", hash: "EVWiDmWqyJw=" }),
    create_on_update: false,
    unconditional_update: false,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Min Available", type_: "string", format: "", priority: 0 },
        Column { name: "Max Unavailable", type_: "string", format: "", priority: 0 },
        Column { name: "Allowed Disruptions", type_: "integer", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "PodDisruptionBudget",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct PodDisruptionBudgetRules;

impl TypedRules for PodDisruptionBudgetRules {
    type Object = PodDisruptionBudget;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
