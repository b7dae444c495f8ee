//! Deployment of apps/v1: its names, and its rules.

use api_types::apps_v1::Deployment;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, RuleContext, Scale};
use crate::strategy::Strategy;
use crate::table;
use api_machinery::intstr::IntOrString;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "Deployment",
    resource: "deployments",
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "deployments", group: "apps", version: "v1", hash: "8aSe+NMegvE=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Ready", type_: "string", format: "", priority: 0 },
        Column { name: "Up-to-date", type_: "string", format: "", priority: 0 },
        Column { name: "Available", type_: "string", format: "", priority: 0 },
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
            kind: "Deployment",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// The rules of the kind.
pub(crate) struct DeploymentRules;

impl TypedRules for DeploymentRules {
    type Object = Deployment;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut Deployment) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.template.spec);
        let strategy = &mut object.spec.strategy;
        if strategy.type_ == "RollingUpdate" {
            let quarter = || Some(IntOrString::Str("25%".into()));
            let rolling = strategy.rolling_update.get_or_insert_default();
            rolling.max_unavailable = rolling.max_unavailable.take().or_else(quarter);
            rolling.max_surge = rolling.max_surge.take().or_else(quarter);
        }
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut Deployment, old: &Deployment) {
        // A new annotation is a new generation too, as rollouts read them.
        let counted = object.metadata.generation != old.metadata.generation;
        if endpoint != Endpoint::Status && !counted && object.metadata.annotations != old.metadata.annotations {
            object.metadata.generation += 1;
        }
    }

    fn cells(object: &Deployment, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            format!("{}/{}", object.status.ready_replicas, object.spec.replicas.unwrap_or_default()).into(),
            object.status.updated_replicas.into(),
            object.status.available_replicas.into(),
            table::age(&object.metadata, now),
            table::names(&object.spec.template.spec.containers),
            table::images(&object.spec.template.spec.containers),
            table::selector(object.spec.selector.as_ref(), "<invalid>"),
        ]
    }

    fn scale(object: &Deployment) -> Option<Scale> {
        Some(Scale {
            spec_replicas: object.spec.replicas.unwrap_or(1),
            status_replicas: object.status.replicas,
            selector: component_helpers::selectors::selector_of(object.spec.selector.as_ref())
                .map_or_else(|_| String::new(), |s| s.to_string()),
        })
    }

    fn set_replicas(object: &mut Deployment, replicas: i32) {
        object.spec.replicas = Some(replicas);
    }
}
