//! FlowSchema of flowcontrol.apiserver.k8s.io/v1: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::object::Kind as _;
use api_types::flowcontrol_v1::constants::{EXEMPT, FLOW_SCHEMA_DANGLING, flow_distinguisher_method_type};
use api_types::flowcontrol_v1::{FlowSchema, FlowSchemaSpec};

use super::policy_rules;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<FlowSchema>("flowschemas", "GJVAJZSZBIw=")),
    subresources: &[SubresourceInfo::status(FlowSchema::TYPE.kind)],
    unconditional_update: true,
    ..ResourceInfo::of::<FlowSchema>()
};

/// The rules of the kind.
pub(crate) struct FlowSchemaRules;

impl TypedRules for FlowSchemaRules {
    type Object = FlowSchema;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<FlowSchema>] = &[
        Cell::NAME,
        Cell::text("PriorityLevel", |object, _| {
            table::or_none(object.spec.priority_level_configuration.name.as_str()).into()
        }),
        Cell::text("MatchingPrecedence", |object, _| i64::from(object.spec.matching_precedence).into()),
        Cell::text("DistinguisherMethod", |object, _| {
            let method = object.spec.distinguisher_method.as_ref();
            table::or_none(method.map(|method| method.type_.as_str()).unwrap_or_default()).into()
        }),
        Cell::AGE,
        Cell::text("MissingPL", |object, _| {
            let dangling = object.status.conditions.iter().find(|own| own.type_ == FLOW_SCHEMA_DANGLING);
            dangling.map_or("?", |own| own.status.as_str()).into()
        }),
    ];
    const FORMER: &'static [Former] = &[
        Former::same("flowcontrol.apiserver.k8s.io/v1beta1"),
        Former::same("flowcontrol.apiserver.k8s.io/v1beta2"),
        Former::same("flowcontrol.apiserver.k8s.io/v1beta3"),
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STATUS_METADATA_CHECKS: &'static [MetadataCheck] = &[];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    /// The schema that is asked first stands first.
    fn table_rank(object: &FlowSchema) -> Option<i64> {
        Some(object.spec.matching_precedence.into())
    }

    fn validate(_: &RuleContext, object: &FlowSchema) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_spec(&object.metadata.name, &object.spec, &mut errors);
        validate_status(object, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &FlowSchema, _: &FlowSchema) -> ErrorList {
        if endpoint != Endpoint::Status {
            return Self::validate(cx, object);
        }
        let mut errors = ErrorList::new();
        validate_status(object, &mut errors);
        errors
    }
}

const LAST: i32 = 10_000;

fn validate_spec(name: &str, spec: &FlowSchemaSpec, errors: &mut ErrorList) {
    let path = Path::new("spec");
    let (at, precedence) = (path.child("matchingPrecedence"), spec.matching_precedence);
    if precedence <= 0 {
        errors.push(at.invalid(precedence, "must be a positive value"));
    }
    if precedence > LAST {
        errors.push(at.invalid(precedence, format!("must not be greater than {LAST}")));
    }
    if precedence == 1 && name != EXEMPT {
        errors.push(at.invalid(precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
    }
    if let Some(method) = &spec.distinguisher_method
        && !flow_distinguisher_method_type::ALL.contains(&method.type_.as_str())
    {
        let at = path.child("distinguisherMethod").child("type");
        errors.push(at.not_supported(internal_json::bad_value(method), flow_distinguisher_method_type::ALL));
    }
    let (at, level) = (path.child("priorityLevelConfiguration").child("name"), &spec.priority_level_configuration.name);
    if level.is_empty() {
        errors.push(at.required("must reference a priority level"));
    } else {
        errors.push_invalid(&at, level, crate::object_name::dns_subdomain(level, false));
    }
    for (index, rule) in spec.rules.iter().enumerate() {
        policy_rules::validate(&path.child("rules").index(index), rule, errors);
    }
    let mandatory = flow_control::mandatory_schemas();
    if mandatory.iter().any(|own| own.metadata.name == name && own.spec != *spec) {
        let value: BadValue = internal_json::bad_value(spec);
        errors.push(path.invalid(value, format!("spec of '{name}' must equal the fixed value")));
    }
}

fn validate_status(object: &FlowSchema, errors: &mut ErrorList) {
    super::validate_conditions(object.status.conditions.iter().map(|own| own.type_.as_str()), errors);
}
