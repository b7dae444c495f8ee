//! PriorityClass of scheduling.k8s.io/v1: its names, and its rules.

use api_types::scheduling_v1::PriorityClass;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::RuleContext;
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "scheduling.k8s.io",
    version: "v1",
    kind: "PriorityClass",
    resource: "priorityclasses",
    singular: "priorityclass",
    short_names: &["pc"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "priorityclasses",
        group: "scheduling.k8s.io",
        version: "v1",
        hash: "1QwjyaZjj3Y=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Value", type_: "integer", format: "", priority: 0 },
        Column { name: "Global-Default", type_: "boolean", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "PreemptionPolicy", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct PriorityClassRules;

impl TypedRules for PriorityClassRules {
    type Object = PriorityClass;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn cells(object: &PriorityClass, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            object.value.into(),
            object.global_default.into(),
            table::age(&object.metadata, now),
            object.preemption_policy.clone().unwrap_or_default().into(),
        ]
    }

    fn prepare_create(_: &RuleContext, object: &mut PriorityClass) {
        object.metadata.generation = 1;
    }
}
