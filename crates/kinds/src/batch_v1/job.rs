//! Job of batch/v1: its names, and its rules.

use api_types::batch_v1::Job;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "batch",
    version: "v1",
    kind: "Job",
    resource: "jobs",
    singular: "job",
    short_names: &[],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "jobs", group: "batch", version: "v1", hash: "mudhfqk/qZY=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &["status.successful"],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Status", type_: "string", format: "", priority: 0 },
        Column { name: "Completions", type_: "string", format: "", priority: 0 },
        Column { name: "Duration", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "Job",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct JobRules;

impl TypedRules for JobRules {
    type Object = Job;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
