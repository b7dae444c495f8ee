//! PodTemplate of core/v1: its names, and its rules.

use api_types::core_v1::PodTemplate;

use crate::info::{Column, ResourceInfo, StorageInfo};
use crate::rules::TypedRules;
use crate::table;
use api_machinery::time::Time;
use api_machinery::value::Value;

static INFO: ResourceInfo = ResourceInfo {
    group: "",
    version: "v1",
    kind: "PodTemplate",
    resource: "podtemplates",
    singular: "podtemplate",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    storage: Some(StorageInfo { prefix: "podtemplates", group: "", version: "v1", hash: "LIXB2x4IFpk=" }),
    create_on_update: false,
    unconditional_update: true,
    field_selectors: &[],
    columns: &[
        Column { name: "Name", type_: "string", format: "name", priority: 0 },
        Column { name: "Containers", type_: "string", format: "", priority: 0 },
        Column { name: "Images", type_: "string", format: "", priority: 0 },
        Column { name: "Pod Labels", type_: "string", format: "", priority: 0 },
    ],
    subresources: &[],
};

/// The rules of the kind.
pub(crate) struct PodTemplateRules;

impl TypedRules for PodTemplateRules {
    type Object = PodTemplate;
    const INFO: &'static ResourceInfo = &INFO;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn set_defaults(object: &mut PodTemplate) {
        crate::pod_spec::defaults::set_defaults(&mut object.template.spec);
    }

    fn cells(object: &PodTemplate, _: Time) -> Vec<Value> {
        vec![
            object.metadata.name.clone().into(),
            table::names(&object.template.spec.containers),
            table::images(&object.template.spec.containers),
            table::labels(&object.template.metadata.labels),
        ]
    }
}
