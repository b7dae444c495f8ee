//! Secret of core/v1: its names, and its rules.

use api_types::core_v1::Secret;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::rules::{Endpoint, RuleContext};
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Secret",
    resource: "secrets",
    singular: "secret",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "secrets", group: "", version: "v1", hash: "S6u1pOWzb84=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["type"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Type", type_: "string", format: "", priority: 0 },
        Column { name: "Data", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct SecretRules;

impl TypedRules for SecretRules {
    type Object = Secret;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn prepare_create(_: &RuleContext, object: &mut Secret) {
        merge_string_data(object);
    }

    fn prepare_update(_: &RuleContext, _: Endpoint, object: &mut Secret, old: &Secret) {
        merge_string_data(object);
        if object.type_.is_empty() {
            object.type_.clone_from(&old.type_);
        }
    }

    fn field(object: &Secret, path: &str) -> Option<String> {
        Some(match path {
            "type" => object.type_.clone(),
            _ => return None,
        })
    }

    fn cells(object: &Secret, now: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            object.type_.clone().into(),
            object.data.len().into(),
            table::age(&object.metadata, now),
        ]
    }
}

/// `stringData` is only for writing: it wins over `data` and is not kept.
fn merge_string_data(secret: &mut Secret) {
    for (key, text) in std::mem::take(&mut secret.string_data) {
        secret.data.insert(key, text.as_str().into());
    }
}
