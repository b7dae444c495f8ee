//! ReplicationController of core/v1: its names, and its rules.

use api_types::core_v1::ReplicationController;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::Scale;
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "ReplicationController",
    resource: "replicationcontrollers",
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "controllers", group: "", version: "v1", hash: "Jond2If31h0=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.replicas"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Desired", type_: "integer", format: "", priority: 0 },
        Column { name: "Current", type_: "integer", format: "", priority: 0 },
        Column { name: "Ready", type_: "integer", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[
        SubresourceInfo {
            name: "scale",
            kind: "Scale",
            group: "autoscaling",
            version: "v1",
            verbs: &["get", "patch", "update"],
        },
        SubresourceInfo {
            name: "status",
            kind: "ReplicationController",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct ReplicationControllerRules;

impl TypedRules for ReplicationControllerRules {
    type Object = ReplicationController;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut ReplicationController) {
        let spec = &mut object.spec;
        spec.replicas.get_or_insert(1);
        let Some(template) = &mut spec.template else { return };
        crate::pod_spec::defaults::set_defaults(&mut template.spec);
        if spec.selector.is_empty() {
            spec.selector.clone_from(&template.metadata.labels);
        }
        if object.metadata.labels.is_empty() {
            object.metadata.labels.clone_from(&template.metadata.labels);
        }
    }

    fn field(object: &ReplicationController, path: &str) -> Option<String> {
        (path == "status.replicas").then(|| object.status.replicas.to_string())
    }

    fn scale(object: &ReplicationController) -> Option<Scale> {
        Some(Scale {
            spec_replicas: object.spec.replicas.unwrap_or(1),
            status_replicas: object.status.replicas,
            selector: api_machinery::labels::format_labels(&object.spec.selector),
        })
    }

    fn set_replicas(object: &mut ReplicationController, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }

    fn cells(object: &ReplicationController, now: Time) -> Vec<Value> {
        let containers = object.spec.template.as_ref().map_or(&[][..], |template| &template.spec.containers);
        vec![
            object.metadata.name.clone().into(),
            object.spec.replicas.unwrap_or_default().into(),
            object.status.replicas.into(),
            object.status.ready_replicas.into(),
            table::age(&object.metadata, now),
            table::names(containers),
            table::images(containers),
            table::labels(&object.spec.selector),
        ]
    }
}
