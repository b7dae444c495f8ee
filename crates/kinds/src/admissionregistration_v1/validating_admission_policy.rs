//! ValidatingAdmissionPolicy of admissionregistration.k8s.io/v1: its names, and its rules.

use std::collections::BTreeSet;

use admission_cel::{Scope, Wanted};
use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::object::Kind as _;
use api_types::admissionregistration_v1::{
    AuditAnnotation, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec, Validation,
};
use feature_gates::MinorVersion;

use super::expressions::{self, ExpressionRole, Expressions, Stored};
use super::{match_conditions, policy_parts};
use crate::conditions;
use crate::field_rules;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::internal_json;
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{self, Cell};
use crate::versions::Former;

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<ValidatingAdmissionPolicy>("validatingadmissionpolicies", "6OxvlMmQ6is=")),
    categories: &["api-extensions"],
    subresources: &[SubresourceInfo::status(ValidatingAdmissionPolicy::TYPE.kind)],
    introduced: MinorVersion::one(30),
    ..ResourceInfo::of::<ValidatingAdmissionPolicy>()
};

/// So many notes for the audit log at most.
const MAX_ANNOTATIONS: usize = 20;
/// So many bytes may the expression of one have.
const MAX_ANNOTATION_BYTES: usize = 5120;
/// Reasons that a refusal may have.
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// The rules of the kind.
pub(crate) struct ValidatingAdmissionPolicyRules;

impl TypedRules for ValidatingAdmissionPolicyRules {
    type Object = ValidatingAdmissionPolicy;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<ValidatingAdmissionPolicy>] = &[
        Cell::NAME,
        Cell::number("Validations", |object, _| table::count(&object.spec.validations).into()),
        Cell::text("ParamKind", |object, _| policy_parts::shown_kind(object.spec.param_kind.as_ref()).into()),
        Cell::AGE,
    ];
    const FORMER: &'static [Former] =
        &[Former::same("admissionregistration.k8s.io/v1beta1"), Former::same("admissionregistration.k8s.io/v1alpha1")];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::StatusAndGeneration;
    const STATUS_KEEPS_METADATA: bool = true;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &ValidatingAdmissionPolicy) -> ErrorList {
        let mut errors = super::name_errors(cx, &object.metadata.name);
        errors.extend(validate(object, None));
        errors
    }

    fn validate_update(
        _: &RuleContext,
        endpoint: Endpoint,
        object: &ValidatingAdmissionPolicy,
        old: &ValidatingAdmissionPolicy,
    ) -> ErrorList {
        if endpoint == Endpoint::Status { validate_status(object) } else { validate(object, Some(old)) }
    }

    fn warnings(object: &ValidatingAdmissionPolicy, _: Option<&ValidatingAdmissionPolicy>) -> Vec<String> {
        super::name_warnings(&object.metadata.name)
    }
}

fn stored(spec: &ValidatingAdmissionPolicySpec) -> Stored<'_> {
    let conditions = expressions::of_conditions(&spec.match_conditions);
    let variables = spec.variables.iter().map(|own| (ExpressionRole::Variable, own.expression.as_str()));
    let validations = spec.validations.iter().map(|own| (ExpressionRole::Validation, own.expression.as_str()));
    let messages = spec.validations.iter().map(|own| (ExpressionRole::Message, own.message_expression.as_str()));
    let notes = spec.audit_annotations.iter().map(|own| (ExpressionRole::Annotation, own.value_expression.as_str()));
    conditions.chain(variables).chain(validations).chain(messages).chain(notes).collect()
}

fn validate(object: &ValidatingAdmissionPolicy, old: Option<&ValidatingAdmissionPolicy>) -> ErrorList {
    let (spec, path, mut errors) = (&object.spec, Path::new("spec"), ErrorList::new());
    let (failure, kind, constraints) =
        (spec.failure_policy.as_ref(), spec.param_kind.as_ref(), spec.match_constraints.as_ref());
    policy_parts::validate_policy(&path, failure, kind, constraints, &mut errors);
    let scope = Scope { params: kind.is_some(), authorizer: true, patches: false };
    let mut expressions = Expressions::new(scope, old.map(|old| stored(&old.spec)).unwrap_or_default());
    let unchanged = old.is_some_and(|old| {
        old.spec.param_kind == spec.param_kind && old.spec.match_conditions == spec.match_conditions
    });
    if !unchanged {
        let at = path.child("matchConditions");
        match_conditions::validate(&at, &spec.match_conditions, scope, expressions.stored(), &mut errors);
    }
    expressions.variables(&path.child("variables"), &spec.variables, &mut errors);
    let (validations, notes) = (path.child("validations"), path.child("auditAnnotations"));
    if spec.validations.is_empty() && spec.audit_annotations.is_empty() {
        const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
        errors.push(validations.required(NOTHING));
        errors.push(notes.required(NOTHING));
        return errors;
    }
    for (index, validation) in spec.validations.iter().enumerate() {
        validate_validation(&validations.index(index), validation, &expressions, &mut errors);
    }
    validate_notes(&notes, &object.metadata.name, &spec.audit_annotations, &expressions, &mut errors);
    errors
}

fn validate_validation(path: &Path, validation: &Validation, expressions: &Expressions<'_>, errors: &mut ErrorList) {
    const BLANK: &str = "must be non-empty if specified";
    let at = path.child("expression");
    if validation.expression.trim().is_empty() {
        errors.push(at.required("expression is not specified"));
    } else {
        expressions.check(&at, ExpressionRole::Validation, &validation.expression, Wanted::Bool, errors);
    }
    let (at, source) = (path.child("messageExpression"), &validation.message_expression);
    if !source.is_empty() {
        if source.trim().is_empty() {
            errors.push(at.invalid(source, BLANK));
        } else {
            expressions.check(&at, ExpressionRole::Message, source, Wanted::Text, errors);
        }
    }
    let (at, message) = (path.child("message"), &validation.message);
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(at.invalid(message, BLANK));
    } else if message.trim().contains(['\n', '\r']) {
        errors.push(at.invalid(message, "must not contain line breaks"));
    }
    if let Some(reason) = &validation.reason
        && !REASONS.contains(&reason.as_str())
    {
        errors.push(path.child("reason").not_supported(BadValue::named(reason), &REASONS));
    }
}

fn validate_notes(
    path: &Path,
    policy: &str,
    notes: &[AuditAnnotation],
    expressions: &Expressions<'_>,
    errors: &mut ErrorList,
) {
    let mut seen = BTreeSet::new();
    if notes.len() > MAX_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        let shown: Vec<String> = notes.iter().map(|note| internal_json::compact(note)).collect();
        errors.push(path.invalid(BadValue::json(format!("[{}]", shown.join(","))), detail));
    }
    for (index, note) in notes.iter().enumerate() {
        let path = path.index(index);
        let at = path.child("key");
        if policy.is_empty() {
            errors.push(at.invalid(&note.key, "requires metadata.name be non-empty"));
        } else {
            let key = format!("{policy}/{}", note.key);
            errors.push_invalid(&at, &key, names::qualified_name(&key));
        }
        let (value, source) = (path.child("valueExpression"), &note.value_expression);
        if source.trim().is_empty() {
            errors.push(value.required("valueExpression is not specified"));
        } else if source.len() > MAX_ANNOTATION_BYTES {
            errors.push(value.required(format!("must not exceed {MAX_ANNOTATION_BYTES} bytes in length")));
        } else {
            expressions.check(&value, ExpressionRole::Annotation, source, Wanted::TextOrNull, errors);
        }
        if !seen.insert(note.key.as_str()) {
            errors.push(at.duplicate(note.key.as_str()));
        }
    }
}

fn validate_status(object: &ValidatingAdmissionPolicy) -> ErrorList {
    let (path, mut errors) = (Path::new("status"), ErrorList::new());
    if let Some(checked) = &object.status.type_checking {
        for (index, warning) in checked.expression_warnings.iter().enumerate() {
            let path = path.child("typeChecking").child("expressionWarnings").index(index);
            field_rules::required(&path.child("warning"), &warning.warning, &mut errors);
            let at = path.child("fieldRef");
            if warning.field_ref.trim().is_empty() {
                errors.push(at.required(""));
            } else if schema::JsonPath::parse(&format!(".{}", warning.field_ref)).is_none() {
                errors.push(at.invalid(&warning.field_ref, "invalid JSONPath"));
            }
        }
    }
    conditions::validate(&path.child("conditions"), &object.status.conditions, &mut errors);
    errors
}
