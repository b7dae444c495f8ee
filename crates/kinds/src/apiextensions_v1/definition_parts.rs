//! What a version declares beside its schema: columns, subresources, fields to select by, and a word about its end.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_types::apiextensions_v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionVersion, CustomResourceSubresources, SelectableField,
};
use schema::Structural;

use crate::field_rules::required;

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
/// The most selectable fields.
const MAX_SELECTABLE: usize = 8;
const MAX_WARNING_BYTES: usize = 256;
const NOT_SELECTABLE: &str = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";

/// What clients are told of a version that is to go.
pub(super) fn check_deprecation(version: &CustomResourceDefinitionVersion, at: &Path, errors: &mut ErrorList) {
    let Some(warning) = &version.deprecation_warning else { return };
    let at = at.child("deprecationWarning");
    let mut refuse = |detail: String| errors.push(at.invalid(warning, detail));
    if !version.deprecated {
        return refuse("can only be set for deprecated versions".into());
    }
    if warning.len() > MAX_WARNING_BYTES {
        refuse(format!("must be <= {MAX_WARNING_BYTES} characters long"));
    }
    if warning.is_empty() {
        refuse("must not be an empty string".into());
    }
    let unprintable = |c: char| c.is_control() || (c.is_whitespace() && c != ' ');
    if let Some((index, _)) = warning.char_indices().find(|(_, c)| unprintable(*c)) {
        let detail = "must only contain printable UTF-8 characters; non-printable character found at index";
        refuse(format!("{detail} {index}"));
    }
}

/// The columns of tables, at the path of their list.
pub(super) fn check_columns(columns: &[CustomResourceColumnDefinition], at: &Path, errors: &mut ErrorList) {
    for (index, column) in columns.iter().enumerate() {
        let at = at.index(index);
        required(&at.child("name"), &column.name, errors);
        let detail = format!("must be one of {}", COLUMN_TYPES.join(","));
        if column.type_.is_empty() {
            errors.push(at.child("type").required(detail));
        } else if !COLUMN_TYPES.contains(&column.type_.as_str()) {
            errors.push(at.child("type").invalid(&column.type_, detail));
        }
        if !column.format.is_empty() && !COLUMN_FORMATS.contains(&column.format.as_str()) {
            let detail = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(at.child("format").invalid(&column.format, detail));
        }
        let at = at.child("JSONPath");
        if required(&at, &column.json_path, errors) && !column.json_path.starts_with('.') {
            errors.push(at.invalid(&column.json_path, "must be a simple json path starting with ."));
        }
    }
}

/// Where the numbers of a scale are.
pub(super) fn check_subresources(of: Option<&CustomResourceSubresources>, at: &Path, errors: &mut ErrorList) {
    let Some(scale) = of.and_then(|subresources| subresources.scale.as_ref()) else { return };
    let at = at.child("scale");
    let (spec, status) = (&scale.spec_replicas_path, &scale.status_replicas_path);
    for (member, value, root, detail) in [
        ("specReplicasPath", spec, ".spec.", "should be a json path under .spec"),
        ("statusReplicasPath", status, ".status.", "should be a json path under .status"),
    ] {
        let at = at.child(member);
        if required(&at, value, errors) {
            check_place(&at, value, &[root], detail, errors);
        }
    }
    if let Some(selector) = scale.label_selector_path.as_deref().filter(|selector| !selector.is_empty()) {
        let detail = "should be a json path under either .spec or .status";
        check_place(&at.child("labelSelectorPath"), selector, &[".spec.", ".status."], detail, errors);
    }
}

fn check_place(at: &Path, value: &str, roots: &[&str], detail: &str, errors: &mut ErrorList) {
    if !value.starts_with('.') {
        errors.push(at.invalid(value, "must be a simple json path starting with ."));
    } else if !roots.iter().any(|root| value.starts_with(root)) {
        errors.push(at.invalid(value, detail));
    }
}

/// The fields that objects can be selected by, at the path of their list. A version that had too many before may keep them.
pub(super) fn check_selectable(
    fields: &[SelectableField],
    former: &[SelectableField],
    schema: &Structural,
    at: &Path,
    errors: &mut ErrorList,
) {
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let (at, path) = (at.index(index).child("jsonPath"), field.json_path.as_str());
        if !required(&at, path, errors) {
            continue;
        }
        let kind = match kind_of(path, schema) {
            Ok(kind) => kind,
            Err(problem) => {
                errors.push(at.invalid(path, format!("is an invalid path: {problem}")));
                continue;
            }
        };
        if path.starts_with(".metadata.") {
            errors.push(at.invalid(path, "must not point to fields in metadata"));
        }
        if !matches!(kind, "string" | "boolean" | "integer") {
            errors.push(at.invalid(path, NOT_SELECTABLE));
        }
        if !seen.insert(path) {
            errors.push(at.duplicate(path));
        }
    }
    if seen.len() > MAX_SELECTABLE && fields != former {
        errors.push(at.too_many(seen.len(), MAX_SELECTABLE));
    }
}

/// The type of the field that a path such as `.spec.color` names.
fn kind_of<'s>(path: &str, schema: &'s Structural) -> Result<&'s str, String> {
    const UNKNOWN: &str = "does not refer to a valid field";
    let Some(names) = path.strip_prefix('.') else {
        return Err(format!("expected [ or . but got: {}", path.split(['.', '[']).next().unwrap_or_default()));
    };
    if names.contains('[') {
        return Err("array notation is not allowed".into());
    }
    if names.is_empty() || names.ends_with('.') {
        return Err("unexpected end of JSON path".into());
    }
    if matches!(names, "apiVersion" | "kind") {
        return Ok("string");
    }
    let field = names.split('.').try_fold(schema, |schema, name| schema.properties.get(name).map(|below| &**below));
    field.map(|field| field.kind.as_str()).ok_or_else(|| UNKNOWN.into())
}
