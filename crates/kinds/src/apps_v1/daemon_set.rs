//! DaemonSet of apps/v1: its names, and its rules.

use api_types::apps_v1::DaemonSet;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::intstr::IntOrString;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "DaemonSet",
    resource: "daemonsets",
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "daemonsets", group: "apps", version: "v1", hash: "dd7pWHUlMKQ=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Desired", type_: "integer", format: "", priority: 0 },
        Column { name: "Current", type_: "integer", format: "", priority: 0 },
        Column { name: "Ready", type_: "integer", format: "", priority: 0 },
        Column { name: "Up-to-date", type_: "integer", format: "", priority: 0 },
        Column { name: "Available", type_: "integer", format: "", priority: 0 },
        Column { name: "Node Selector", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "DaemonSet",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct DaemonSetRules;

impl TypedRules for DaemonSetRules {
    type Object = DaemonSet;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut DaemonSet) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        let strategy = &mut object.spec.update_strategy;
        if strategy.type_ == "RollingUpdate" {
            let rolling = strategy.rolling_update.get_or_insert_default();
            rolling.max_unavailable.get_or_insert(IntOrString::Int(1));
            rolling.max_surge.get_or_insert(IntOrString::Int(0));
        }
    }

    fn cells(object: &DaemonSet, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            object.status.desired_number_scheduled.into(),
            object.status.current_number_scheduled.into(),
            object.status.number_ready.into(),
            object.status.updated_number_scheduled.into(),
            object.status.number_available.into(),
            table::labels(&object.spec.template.spec.node_selector),
            table::age(&object.metadata, now),
            table::names(&object.spec.template.spec.containers),
            table::images(&object.spec.template.spec.containers),
            table::selector(object.spec.selector.as_ref(), "<error>"),
        ]
    }
}
