//! IngressClass of networking.k8s.io/v1: its names, and its rules.

use api_types::networking_v1::IngressClass;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "networking.k8s.io",
    version: "v1",
    kind: "IngressClass",
    resource: "ingressclasses",
    singular: "ingressclass",
    short_names: &[],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo {
        prefix: "ingressclasses",
        group: "networking.k8s.io",
        version: "v1",
        hash: "l/iqIbDgFyQ=",
    }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Controller", type_: "string", format: "", priority: 0 },
        Column { name: "Parameters", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct IngressClassRules;

impl TypedRules for IngressClassRules {
    type Object = IngressClass;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::Generation;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut IngressClass) {
        if let Some(parameters) = &mut object.spec.parameters {
            parameters.scope.get_or_insert_with(|| "Cluster".into());
        }
    }

    fn cells(object: &IngressClass, now: Time) -> Vec<Value> {
        let key = "ingressclass.kubernetes.io/is-default-class";
        let is_default = object.metadata.annotations.get(key).is_some_and(|value| value == "true");
        let name = format!("{}{}", object.metadata.name, if is_default { " (default)" } else { "" });
        let parameters = object.spec.parameters.as_ref().map_or_else(
            || "<none>".to_owned(),
            |of| {
                let group = of.api_group.as_ref().map(|group| format!(".{group}")).unwrap_or_default();
                format!("{}{group}/{}", of.kind, of.name)
            },
        );
        vec![name.into(), object.spec.controller.clone().into(), parameters.into(), table::age(&object.metadata, now)]
    }
}
