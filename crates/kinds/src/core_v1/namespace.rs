//! Namespace of core/v1: its names, and its rules.

use api_types::core_v1::Namespace;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, RuleContext};
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::constants::{LABEL_METADATA_NAME, namespace_phase};

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Namespace",
    resource: "namespaces",
    singular: "namespace",
    short_names: &["ns"],
    categories: &[],
    namespaced: false,
    verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "namespaces", group: "", version: "v1", hash: "Q3oi5N2YM8M=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.phase"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[
        SubresourceInfo { name: "finalize", kind: "Namespace", group: "", version: "", verbs: &["update"] },
        SubresourceInfo {
            name: "status",
            kind: "Namespace",
            group: "",
            version: "",
            verbs: &["get", "patch", "update"],
        },
    ],
};

/// Holds the namespace until its content is gone.
const FINALIZER: &str = "kubernetes";

/// The rules of the kind.
pub(crate) struct NamespaceRules;

impl TypedRules for NamespaceRules {
    type Object = Namespace;
    const INFO: &'static ResourceInfo = &INFO;
    const STRATEGY: Strategy = Strategy::Status;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_label(name, prefix)
    }

    fn set_defaults(object: &mut Namespace) {
        let name = object.metadata.name.clone();
        if !name.is_empty() {
            object.metadata.labels.insert(LABEL_METADATA_NAME.into(), name);
        }
    }

    fn prepare_create(_: &RuleContext, object: &mut Namespace) {
        object.status.phase = namespace_phase::ACTIVE.into();
        if !object.spec.finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
            object.spec.finalizers.push(FINALIZER.into());
        }
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut Namespace, old: &Namespace) {
        match endpoint {
            Endpoint::Main => object.spec.finalizers.clone_from(&old.spec.finalizers),
            Endpoint::Status => {}
            Endpoint::Other(_) => object.status = old.status.clone(),
        }
    }

    fn field(object: &Namespace, path: &str) -> Option<String> {
        Some(match path {
            "status.phase" => object.status.phase.clone(),
            "name" => object.metadata.name.clone(),
            _ => return None,
        })
    }

    fn cells(object: &Namespace, now: Time) -> Vec<Value> {
        vec![object.metadata.name.clone().into(), object.status.phase.clone().into(), table::age(&object.metadata, now)]
    }
}
