//! Event of core/v1: its names, and its rules.

use api_types::core_v1::Event;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "Event",
    resource: "events",
    singular: "event",
    short_names: &["ev"],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "events", group: "", version: "v1", hash: "r2yiGXH7wu8=" }),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &[
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
    columns: &[
        Column { name: "Last Seen", type_: "string", format: "", priority: 0 },
        Column { name: "Type", type_: "string", format: "", priority: 0 },
        Column { name: "Reason", type_: "string", format: "", priority: 0 },
        Column { name: "Object", type_: "string", format: "", priority: 0 },
        Column { name: "Subobject", type_: "string", format: "", priority: 1 },
        Column { name: "Source", type_: "string", format: "", priority: 1 },
        Column { name: "Message", type_: "string", format: "", priority: 0 },
        Column { name: "First Seen", type_: "string", format: "", priority: 1 },
        Column { name: "Count", type_: "string", format: "", priority: 1 },
        Column { name: "Name", type_: "string", format: "name", priority: 1 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct EventRules;

impl TypedRules for EventRules {
    type Object = Event;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
