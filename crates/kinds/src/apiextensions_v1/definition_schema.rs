//! What the schema of a version may declare, and what is told of one that is accepted.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::value::{Value, struct_to_map};
use api_types::apiextensions_v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation, JSONSchemaProps,
    ValidationRule,
};
use schema::Structural;
use schema::structural::{is_known_format, structure};
use schema_rules::KnownExpressions;

use super::schema_defaults;
use crate::internal_json;

/// The deepest schema that is searched.
const MAX_DEPTH: usize = 200;
/// What may stand at the root where the status is a part of its own, by the internal name and that of the wire.
const AT_ROOT: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// How the schema of a version is looked at.
pub(super) struct Look<'l> {
    /// Whether the status is a subresource.
    pub(super) has_status: bool,
    /// What the definition said before.
    pub(super) former: &'l Former,
    /// Whether the version had the same schema before.
    pub(super) is_unchanged: bool,
}

/// What a definition said before: of that, less is asked.
#[derive(Default)]
pub(super) struct Former {
    expressions: KnownExpressions,
    /// Some default had members that its schema does not know.
    pub(super) has_unpruned_defaults: bool,
}

impl Former {
    /// What these versions say.
    pub(super) fn of(versions: &[CustomResourceDefinitionVersion]) -> Self {
        let mut former = Self::default();
        for schema in versions.iter().map(|version| Structural::root(&super::schema_of(version))) {
            former.expressions.add(&schema);
            former.has_unpruned_defaults |= schema_defaults::has_unpruned(&schema);
        }
        former
    }
}

/// Checks a schema; `at` is the path of what holds it. What keeps it from being structural is told first, or else what is
/// wrong with its defaults. Rules in the expression language are for structural schemas only.
pub(super) fn check(of: Option<&CustomResourceValidation>, look: &Look<'_>, at: &Path, errors: &mut ErrorList) {
    let Some(declared) = of.and_then(|validation| validation.open_apiv3_schema.as_deref()) else { return };
    let schema = Value::Object(struct_to_map(declared));
    let at = at.child("openAPIV3Schema");
    let before = errors.len();
    if look.has_status {
        check_root(declared, &schema, &at, errors);
    }
    if declared.nullable {
        errors.push(at.child("nullable").forbidden("nullable cannot be true at the root"));
    }
    let problems = structure::check(&at, &schema);
    let is_structural = problems.structural.is_empty() && !problems.is_other_dialect;
    let unpacked = Structural::root(&schema);
    errors.extend(problems.structural);
    if is_structural {
        schema_defaults::check(&at, &unpacked, look.former.has_unpruned_defaults, errors);
    }
    let broken: BTreeSet<String> = problems.errors.iter().map(|problem| problem.field.clone()).collect();
    errors.extend(problems.errors);
    if problems.is_other_dialect && errors.len() == before {
        errors.push(at.invalid("", "OpenAPIV3Schema 'schema' is not supported"));
    }
    if is_structural {
        errors.extend(check_rules(&at, &unpacked, &broken, look));
    }
}

/// The rules in the expression language, where nothing else is wrong with the schema there or below.
fn check_rules(at: &Path, schema: &Structural, broken: &BTreeSet<String>, look: &Look<'_>) -> ErrorList {
    let is_broken = |at: &Path| {
        let place = at.to_string();
        let below = broken.range(place.clone()..).take_while(|field| field.starts_with(&place));
        below.filter_map(|field| field.get(place.len()..)).any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    schema_rules::check(
        at,
        schema,
        &schema_rules::Check {
            known: &look.former.expressions,
            is_unchanged: look.is_unchanged,
            is_broken: &is_broken,
            shown: &|rule| internal_json::bad_value(&declared_rule(rule)),
        },
    )
}

fn declared_rule(rule: &schema::structural::ValidationRule) -> ValidationRule {
    let rule = rule.clone();
    ValidationRule {
        rule: rule.rule,
        message: rule.message,
        message_expression: rule.message_expression,
        reason: rule.reason,
        field_path: rule.field_path,
        optional_old_self: rule.optional_old_self,
    }
}

/// The schema of the status is taken out of the whole, so that nothing may be said of both together.
fn check_root(declared: &JSONSchemaProps, schema: &Value, at: &Path, errors: &mut ErrorList) {
    const WHEN: &str = "at the root of the schema if the status subresource is enabled";
    if !declared.type_.is_empty() && declared.type_ != "object" {
        let detail = format!("only \"object\" is allowed as the type {WHEN}");
        errors.push(at.child("type").invalid(&declared.type_, detail));
        return;
    }
    let mut members = schema.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    if members.any(|name| !AT_ROOT.iter().any(|(_, allowed)| *allowed == name)) {
        let names: Vec<&str> = AT_ROOT.iter().map(|(name, _)| *name).collect();
        let detail = format!("only [{}] fields are allowed {WHEN}", names.join(" "));
        errors.push(at.invalid(internal_json::bad_value(declared), detail));
    }
}

/// Whether the schema of a version says what members are where they are missing.
pub(super) fn has_defaults(version: &CustomResourceDefinitionVersion) -> bool {
    let mut found = false;
    walk(&Path::nil(), &super::schema_of(version), 0, &mut |_, node| {
        found |= node.get("default").is_some_and(|value| !value.is_null());
    });
    found
}

/// Calls `visit` for every node of a schema, with its path.
fn walk(at: &Path, schema: &Value, depth: usize, visit: &mut dyn FnMut(&Path, &Value)) {
    if depth > MAX_DEPTH {
        return;
    }
    visit(at, schema);
    for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(&at.child("properties").key(name), below, depth + 1, visit);
    }
    for member in ["items", "additionalProperties", "not"] {
        if let Some(below) = schema.get(member).filter(|below| below.is_object()) {
            walk(&at.child(member), below, depth + 1, visit);
        }
    }
    for member in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema.get(member).and_then(Value::as_array).into_iter().flatten().enumerate() {
            walk(&at.child(member).index(index), below, depth + 1, visit);
        }
    }
}

/// Formats that nothing will enforce and that `old` has not got yet.
pub(super) fn warnings(definition: &CustomResourceDefinition, old: Option<&CustomResourceDefinition>) -> Vec<String> {
    let known = old.map(unknown_formats).unwrap_or_default();
    let formats = unknown_formats(definition).into_iter().filter(|format| !known.contains(format));
    formats.map(|format| format!("unrecognized format {}", api_machinery::quote::go_quote(&format))).collect()
}

fn unknown_formats(definition: &CustomResourceDefinition) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for version in &definition.spec.versions {
        let schema = super::schema_of(version);
        walk(&Path::nil(), &schema, 0, &mut |_, node| {
            let text = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
            let format = text("format");
            let is_known = match text("type") {
                "string" => is_known_format(format),
                "integer" => matches!(format, "int32" | "int64"),
                "number" => matches!(format, "float" | "double"),
                _ => true,
            };
            if !format.is_empty() && !is_known {
                found.insert(format.to_owned());
            }
        });
    }
    found
}
