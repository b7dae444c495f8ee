//! What a definition may declare.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names::{dns1035_label, dns1123_subdomain};
use api_machinery::value::Value;
use api_types::apiextensions_v1::{
    CustomResourceDefinition, CustomResourceDefinitionNames, CustomResourceDefinitionVersion,
};
use schema::JsonPath;
use schema::structural::structure;

use super::approval::{APPROVED, Approval};
use super::custom_resource_definition::schema_of;
use super::schema_defaults;

const NO_EXPRESSIONS: &str = "validation rules in the expression language are not supported by this server";
const NO_WEBHOOK: &str = "conversion by webhook is not supported by this server: use None";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
/// The most selectable fields.
const MAX_SELECTABLE: usize = 8;
/// The deepest schema that is searched.
const MAX_DEPTH: usize = 200;

/// The checks of creations, and of updates that change what is declared.
pub(super) fn check(definition: &CustomResourceDefinition, errors: &mut ErrorList) {
    let (spec, at) = (&definition.spec, Path::new("spec"));
    let wanted = format!("{}.{}", spec.names.plural, spec.group);
    if definition.metadata.name != wanted {
        let path = Path::new("metadata").child("name");
        errors.push(path.invalid(&definition.metadata.name, "must be spec.names.plural+\".\"+spec.group"));
    }
    check_group(definition, &at, errors);
    check_names(&spec.names, &at.child("names"), errors);
    match spec.scope.as_str() {
        "" => errors.push(at.child("scope").required("")),
        "Cluster" | "Namespaced" => {}
        other => errors.push(at.child("scope").not_supported(other, &["Cluster", "Namespaced"])),
    }
    check_versions(&spec.versions, &at.child("versions"), errors);
    if spec.preserve_unknown_fields {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(at.child("preserveUnknownFields").invalid(true, detail));
    }
    if let Some(conversion) = &spec.conversion
        && conversion.strategy != "None"
    {
        let path = at.child("conversion").child("strategy");
        match conversion.strategy.as_str() {
            "Webhook" => errors.push(path.forbidden(NO_WEBHOOK)),
            other => errors.push(path.not_supported(other, &["None", "Webhook"])),
        }
    }
}

fn check_group(definition: &CustomResourceDefinition, at: &Path, errors: &mut ErrorList) {
    let (group, path) = (&definition.spec.group, at.child("group"));
    if group.is_empty() {
        errors.push(path.required(""));
        return;
    }
    errors.push_invalid(&path, group, dns1123_subdomain(group));
    if !group.contains('.') {
        errors.push(path.invalid(group, "should be a domain with at least one dot"));
    }
    let approval = Approval::of(definition);
    let path = Path::new("metadata").child("annotations").key(APPROVED);
    match approval {
        Approval::Missing => errors.push(path.required(approval.message())),
        Approval::Invalid(value) => errors.push(path.invalid(value, approval.message())),
        Approval::NotNeeded | Approval::Approved(_) | Approval::Unapproved(_) => {}
    }
}

fn check_names(names: &CustomResourceDefinitionNames, at: &Path, errors: &mut ErrorList) {
    for (member, value) in [("plural", &names.plural), ("singular", &names.singular)] {
        errors.push_invalid(&at.child(member), value, dns1035_label(value));
    }
    for (member, list) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        for (index, value) in list.iter().enumerate() {
            errors.push_invalid(&at.child(member).index(index), value, dns1035_label(value));
        }
    }
    for (member, value) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        if value.is_empty() {
            errors.push(at.child(member).required(""));
            continue;
        }
        for problem in dns1035_label(&value.to_lowercase()) {
            let detail = format!("may have mixed case, but should otherwise match: {problem}");
            errors.push(at.child(member).invalid(value, detail));
        }
    }
    if !names.kind.is_empty() && names.kind == names.list_kind {
        errors.push(at.child("listKind").invalid(&names.list_kind, "kind and listKind may not be the same"));
    }
}

fn check_versions(versions: &[CustomResourceDefinitionVersion], at: &Path, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let path = at.index(index);
        errors.push_invalid(&path.child("name"), &version.name, dns1035_label(&version.name));
        if !seen.insert(version.name.as_str()) {
            errors.push(at.invalid(&version.name, "must contain unique version names"));
        }
        check_version(version, &path, errors);
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        errors.push(at.invalid("", "must have exactly one version marked as storage version"));
    }
}

fn check_version(version: &CustomResourceDefinitionVersion, at: &Path, errors: &mut ErrorList) {
    let declared = version.schema.as_ref().and_then(|schema| schema.open_apiv3_schema.as_ref());
    let path = at.child("schema").child("openAPIV3Schema");
    if declared.is_none() {
        errors.push(path.required("schemas are required"));
    } else {
        let schema = schema_of(version);
        for error in structure::check(&path, &schema).iter() {
            errors.push(error.clone());
        }
        refuse_expressions(&path, &schema, 0, errors);
        schema_defaults::check(&path, &schema, errors);
    }
    for (index, column) in version.additional_printer_columns.iter().enumerate() {
        let path = at.child("additionalPrinterColumns").index(index);
        if column.name.is_empty() {
            errors.push(path.child("name").required(""));
        }
        if !COLUMN_TYPES.contains(&column.type_.as_str()) {
            let types = COLUMN_TYPES.join(",");
            errors.push(path.child("type").invalid(&column.type_, format!("must be one of {types}")));
        }
        if JsonPath::parse(&column.json_path).is_none() {
            let detail = "must be a simple json path starting with .";
            errors.push(path.child("jsonPath").invalid(&column.json_path, detail));
        }
    }
    check_subresources(version, at, errors);
    if version.selectable_fields.len() > MAX_SELECTABLE {
        errors.push(at.child("selectableFields").too_many(version.selectable_fields.len(), MAX_SELECTABLE));
    }
    for (index, field) in version.selectable_fields.iter().enumerate() {
        let path = at.child("selectableFields").index(index).child("jsonPath");
        if JsonPath::parse(&field.json_path).and_then(|path| path.members().map(|_| ())).is_none() {
            errors.push(path.invalid(&field.json_path, "is an invalid path: must be in the dot notation"));
        } else if field.json_path.starts_with(".metadata") {
            errors.push(path.invalid(&field.json_path, "must not point to fields in metadata"));
        }
    }
}

fn check_subresources(version: &CustomResourceDefinitionVersion, at: &Path, errors: &mut ErrorList) {
    let Some(scale) = version.subresources.as_ref().and_then(|subresources| subresources.scale.as_ref()) else {
        return;
    };
    let at = at.child("subresources").child("scale");
    let mut check = |member: &'static str, value: &str, roots: &[&str], detail: &str| {
        let path = at.child(member);
        let parsed = JsonPath::parse(value);
        let first =
            parsed.as_ref().and_then(JsonPath::members).and_then(|names| names.first().map(|&name| name.to_owned()));
        if value.is_empty() {
            errors.push(path.required(""));
        } else if !first.is_some_and(|first| roots.contains(&first.as_str())) {
            errors.push(path.invalid(value, detail));
        }
    };
    check("specReplicasPath", &scale.spec_replicas_path, &["spec"], "should be a json path under .spec");
    check("statusReplicasPath", &scale.status_replicas_path, &["status"], "should be a json path under .status");
    if let Some(selector) = scale.label_selector_path.as_deref().filter(|selector| !selector.is_empty()) {
        check(
            "labelSelectorPath",
            selector,
            &["spec", "status"],
            "should be a json path under either .spec or .status",
        );
    }
}

/// What would not be enforced must not be declared.
fn refuse_expressions(at: &Path, schema: &Value, depth: usize, errors: &mut ErrorList) {
    const RULES: &str = "x-kubernetes-validations";
    if depth > MAX_DEPTH {
        return;
    }
    if schema.get(RULES).and_then(Value::as_array).is_some_and(|rules| !rules.is_empty()) {
        errors.push(at.child(RULES).forbidden(NO_EXPRESSIONS));
    }
    for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        refuse_expressions(&at.child("properties").key(name), below, depth + 1, errors);
    }
    for member in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(member).filter(|below| below.is_object()) {
            refuse_expressions(&at.child(member), below, depth + 1, errors);
        }
    }
    for member in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in schema.get(member).and_then(Value::as_array).into_iter().flatten().enumerate() {
            refuse_expressions(&at.child(member).index(index), below, depth + 1, errors);
        }
    }
}

/// What may not change.
pub(super) fn check_immutable(
    definition: &CustomResourceDefinition,
    old: &CustomResourceDefinition,
    errors: &mut ErrorList,
) {
    const IMMUTABLE: &str = "field is immutable";
    let (spec, former, at) = (&definition.spec, &old.spec, Path::new("spec"));
    if spec.group != former.group {
        errors.push(at.child("group").invalid(&spec.group, IMMUTABLE));
    }
    if spec.names.plural != former.names.plural {
        errors.push(at.child("names").child("plural").invalid(&spec.names.plural, IMMUTABLE));
    }
    if !old.status.conditions.iter().any(|own| own.type_ == "Established" && own.status == "True") {
        return;
    }
    if spec.scope != former.scope {
        errors.push(at.child("scope").invalid(&spec.scope, IMMUTABLE));
    }
    if spec.names.kind != former.names.kind {
        errors.push(at.child("names").child("kind").invalid(&spec.names.kind, IMMUTABLE));
    }
}

/// No version of which objects may still be stored is dropped.
pub(super) fn check_stored_versions(definition: &CustomResourceDefinition, errors: &mut ErrorList) {
    let path = Path::new("status").child("storedVersions");
    let stored = &definition.status.stored_versions;
    if stored.is_empty() {
        errors.push(path.invalid("", "must have at least one stored version"));
    }
    for version in &definition.spec.versions {
        if version.storage && !stored.contains(&version.name) {
            let name = &version.name;
            errors.push(path.invalid(name, format!("must have the storage version {name}")));
        }
    }
    for (index, name) in stored.iter().enumerate() {
        if !definition.spec.versions.iter().any(|version| version.name == *name) {
            errors.push(path.index(index).invalid(name, format!("missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions")));
        }
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::object;
    use serde_json::json;

    use super::*;

    fn problems(change: impl FnOnce(&mut Value)) -> String {
        let mut value = json!({
            "metadata": {"name": "apples.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "apples", "singular": "apple", "kind": "Apple", "listKind": "AppleList"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}}],
            },
        });
        change(&mut value);
        let definition: CustomResourceDefinition = object::from_value(&value).unwrap();
        let mut errors = ErrorList::default();
        check(&definition, &mut errors);
        errors.to_string()
    }

    #[test]
    fn definitions_are_checked() {
        assert_eq!(problems(|_| {}), "[]");
        let version = |value: &mut Value, member: &str, to: Value| value["spec"]["versions"][0][member] = to;
        type Change = Box<dyn FnOnce(&mut Value)>;
        let cases: [(&str, Change); 9] = [
            ("must be spec.names.plural", Box::new(|value| value["metadata"]["name"] = "x".into())),
            ("should be a domain with at least one dot", Box::new(|value| value["spec"]["group"] = "example".into())),
            ("protected groups must have approval", Box::new(|value| value["spec"]["group"] = "x.k8s.io".into())),
            ("exactly one version marked as storage", Box::new(move |value| version(value, "storage", false.into()))),
            ("schemas are required", Box::new(move |value| version(value, "schema", json!({})))),
            (NO_WEBHOOK, Box::new(|value| value["spec"]["conversion"] = json!({"strategy": "Webhook"}))),
            (
                NO_EXPRESSIONS,
                Box::new(|value| {
                    let schema = &mut value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "true"}]);
                }),
            ),
            (
                "must be a simple json path",
                Box::new(move |value| {
                    let column = json!([{"name": "A", "type": "string", "jsonPath": "spec"}]);
                    version(value, "additionalPrinterColumns", column);
                }),
            ),
            (
                "should be a json path under .spec",
                Box::new(move |value| {
                    let scale = json!({"specReplicasPath": ".status.x", "statusReplicasPath": ".status.x"});
                    version(value, "subresources", json!({"scale": scale}));
                }),
            ),
        ];
        for (expected, change) in cases {
            let found = problems(change);
            assert!(found.contains(expected), "{expected}: {found}");
        }
    }
}
