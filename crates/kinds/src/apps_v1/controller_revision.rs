//! ControllerRevision of apps/v1: its names, and its rules.

use api_types::apps_v1::ControllerRevision;

use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo};
use crate::rules::{Endpoint, RuleContext, TypedRules};
use crate::table::Cell;
use crate::versions::Former;
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::value::Value;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ControllerRevision>("controllerrevisions", "85nkx63pcBU=")),
    unconditional_update: true,
    ..ResourceInfo::of::<ControllerRevision>()
};

/// The rules of the kind.
pub(crate) struct ControllerRevisionRules;

impl TypedRules for ControllerRevisionRules {
    type Object = ControllerRevision;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ControllerRevision>] = &[
        Cell::NAME,
        Cell::text("Controller", |object, _| owner(object).into()),
        Cell::text("Revision", |object, _| object.revision.into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] = &[Former::same("apps/v1beta1"), Former::same("apps/v1beta2")];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(_: &RuleContext, object: &ControllerRevision) -> ErrorList {
        let mut errors = ErrorList::new();
        field_rules::not_negative(&Path::new("revision"), object.revision, &mut errors);
        let path = Path::new("data");
        match api_machinery::json::parse_value(object.data.as_str()) {
            _ if object.data.is_empty() => errors.push(path.required("data is mandatory")),
            Err(error) => {
                errors.push(path.invalid("<value omitted>", format!("error parsing data: {error}")));
            }
            Ok(Value::Null) => errors.push(path.required("data is mandatory")),
            Ok(Value::Object(_)) => {}
            Ok(_) => errors.push(path.required("data must be a valid JSON object")),
        }
        errors
    }

    fn validate_update(
        _: &RuleContext,
        _: Endpoint,
        object: &ControllerRevision,
        old: &ControllerRevision,
    ) -> ErrorList {
        let mut errors = ErrorList::new();
        field_rules::not_negative(&Path::new("revision"), object.revision, &mut errors);
        if object.data.value() != old.data.value() {
            let value = BadValue::json(object.data.as_str());
            errors.push(Path::new("data").invalid(value, field_rules::IMMUTABLE));
        }
        errors
    }
}

fn owner(revision: &ControllerRevision) -> String {
    let Some(owner) = component_helpers::owners::controller_of(&revision.metadata) else { return "<none>".to_owned() };
    let group = owner.api_version.split_once('/').map(|(group, _)| format!(".{group}"));
    format!("{}{}/{}", owner.kind.to_lowercase(), group.unwrap_or_default(), owner.name)
}
