//! PodDisruptionBudget of policy/v1: its names, and its rules.

use api_types::policy_v1::PodDisruptionBudget;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::intstr::IntOrString;
use api_machinery::time::Time;
use api_machinery::value::Value;

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
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &PodDisruptionBudget, now: Time) -> Vec<Value> {
        let shown =
            |amount: Option<&IntOrString>| Value::from(amount.map_or_else(|| "N/A".to_owned(), ToString::to_string));
        vec![
            object.metadata.name.clone().into(),
            shown(object.spec.min_available.as_ref()),
            shown(object.spec.max_unavailable.as_ref()),
            object.status.disruptions_allowed.into(),
            table::age(&object.metadata, now),
        ]
    }
}
