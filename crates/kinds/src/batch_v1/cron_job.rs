//! CronJob of batch/v1: its names, and its rules.

use api_types::batch_v1::CronJob;

use crate::info::{Column, ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::TypedRules;
use crate::strategy::Strategy;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

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
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut CronJob) {
        crate::pod_spec::defaults::set_defaults(&mut object.spec.job_template.spec.template.spec);
    }

    fn cells(object: &CronJob, now: Time) -> Vec<Value> {
        let suspend = match object.spec.suspend {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        let last = object.status.last_schedule_time.map_or_else(|| "<none>".to_owned(), |at| table::since(at, now));
        vec![
            object.metadata.name.clone().into(),
            object.spec.schedule.clone().into(),
            object.spec.time_zone.clone().unwrap_or_else(|| "<none>".into()).into(),
            suspend.into(),
            object.status.active.len().into(),
            last.into(),
            table::age(&object.metadata, now),
            table::names(&object.spec.job_template.spec.template.spec.containers),
            table::images(&object.spec.job_template.spec.template.spec.containers),
            table::selector(object.spec.job_template.spec.selector.as_ref(), "<error>"),
        ]
    }
}
