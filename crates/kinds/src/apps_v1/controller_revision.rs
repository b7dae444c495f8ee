//! ControllerRevision of apps/v1: its names, and its rules.

use api_types::apps_v1::ControllerRevision;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "apps",
    version: "v1",
    kind: "ControllerRevision",
    resource: "controllerrevisions",
    singular: "controllerrevision",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "controllerrevisions", group: "apps", version: "v1", hash: "85nkx63pcBU=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Controller", type_: "string", format: "", priority: 0 },
        Column { name: "Revision", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct ControllerRevisionRules;

impl TypedRules for ControllerRevisionRules {
    type Object = ControllerRevision;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
