//! ReplicaSet of apps/v1: its names, and its rules.

use api_types::apps_v1::ReplicaSet;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::Scale;
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "ReplicaSet",
    resource: "replicasets",
    singular: "replicaset",
    short_names: &["rs"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "replicasets", group: "apps", version: "v1", hash: "P1RzHs8/mWQ=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
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
            kind: "ReplicaSet",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct ReplicaSetRules;

impl TypedRules for ReplicaSetRules {
    type Object = ReplicaSet;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut ReplicaSet) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
    }

    fn cells(object: &ReplicaSet, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            object.spec.replicas.unwrap_or_default().into(),
            object.status.replicas.into(),
            object.status.ready_replicas.into(),
            table::age(&object.metadata, now),
            table::names(&object.spec.template.spec.containers),
            table::images(&object.spec.template.spec.containers),
            table::selector(object.spec.selector.as_ref(), "<error>"),
        ]
    }

    fn scale(object: &ReplicaSet) -> Option<Scale> {
        Some(Scale {
            spec_replicas: object.spec.replicas.unwrap_or(1),
            status_replicas: object.status.replicas,
            selector: component_helpers::selectors::selector_of(object.spec.selector.as_ref())
                .map_or_else(|_| String::new(), |s| s.to_string()),
        })
    }

    fn set_replicas(object: &mut ReplicaSet, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }
}
