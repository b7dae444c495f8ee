//! CronJob of batch/v1: its names, and its rules.

use api_types::batch_v1::CronJob;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;

static INFO: ResourceInfo = ResourceInfo {
    group: "batch",
    version: "v1",
    kind: "CronJob",
    resource: "cronjobs",
    singular: "cronjob",
    short_names: &["cj"],
    categories: &["all"],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "cronjobs", group: "batch", version: "v1", hash: "sd5LIXh4Fjs=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Schedule", type_: "string", format: "", priority: 0 },
        Column { name: "Timezone", type_: "string", format: "", priority: 0 },
        Column { name: "Suspend", type_: "boolean", format: "", priority: 0 },
        Column { name: "Active", type_: "integer", format: "", priority: 0 },
        Column { name: "Last Schedule", type_: "string", format: "", priority: 0 },
        Column { name: "Age", type_: "string", format: "", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 1 },
        Column { name: "Images", type_: "string", format: "", priority: 1 },
        Column { name: "Selector", type_: "string", format: "", priority: 1 },
    ],
    subresources: &[SubresourceInfo {
        name: "status",
        kind: "CronJob",
        group: "",
        version: "",
        verbs: &["get", "patch", "update"],
    }],
};

/// The rules of the kind.
pub(crate) struct CronJobRules;

impl TypedRules for CronJobRules {
    type Object = CronJob;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }
}
