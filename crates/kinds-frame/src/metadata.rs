//! The rules of `metadata` that hold for every object, whatever kind it is of.

use api_machinery::field_path::{BadValue, ErrorList, FieldError, Path};
use api_machinery::meta::constants::{FINALIZER_DELETE_DEPENDENTS, FINALIZER_ORPHAN_DEPENDENTS};
use api_machinery::meta::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use api_machinery::{json, names};

/// The longest `managedFields[].manager`.
const MAX_MANAGER_BYTES: usize = 128;
/// The longest `managedFields[].subresource`.
const MAX_SUBRESOURCE_BYTES: usize = 256;

/// Checks the metadata of an object that stands within another: the rules of its kind are not known, and it needs no name.
#[must_use]
pub fn validate_embedded(meta: &ObjectMeta, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !meta.name.is_empty() {
        errors.push_invalid(&path.child("name"), &meta.name, names::path_segment_name(&meta.name));
    }
    if !meta.namespace.is_empty() {
        errors.push_invalid(&path.child("namespace"), &meta.namespace, names::dns1123_label(&meta.namespace));
    }
    if meta.generation < 0 {
        errors.push(negative_generation(meta, path));
    }
    validate_common(meta, path, &mut errors);
    errors
}

/// A generation counts what was asked for, and so never is below nothing.
#[must_use]
pub fn negative_generation(meta: &ObjectMeta, path: &Path) -> FieldError {
    path.child("generation").invalid(meta.generation, "must be greater than or equal to 0")
}

/// Checks whatever is the same for a new object and for one that is changed.
pub fn validate_common(meta: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    validate_texts(meta, path, errors);
    validate_finalizers(&meta.finalizers, &path.child("finalizers"), errors);
    validate_managers(meta, path, errors);
}

/// Checks labels, annotations and owners.
pub fn validate_texts(meta: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    errors.extend(names::labels(&path.child("labels"), &meta.labels));
    errors.extend(names::annotations(&path.child("annotations"), &meta.annotations));
    validate_owners(&meta.owner_references, &path.child("ownerReferences"), errors);
}

/// Checks who is said to own which fields.
pub fn validate_managers(meta: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    for (index, entry) in meta.managed_fields.iter().enumerate() {
        validate_manager(entry, &path.child("managedFields").index(index), errors);
    }
}

/// References are told apart by no index.
fn validate_owners(owners: &[OwnerReference], path: &Path, errors: &mut ErrorList) {
    let mut controller: Option<&OwnerReference> = None;
    for owner in owners {
        // Two slashes are no group and version; what has none is a version alone.
        let parts: Vec<&str> = owner.api_version.split('/').collect();
        if parts.len() > 2 || parts.last().is_none_or(|version| version.is_empty()) {
            let value = owner.api_version.as_str();
            errors.push(path.child("apiVersion").invalid(value, "version must not be empty"));
        }
        for (field, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
            if value.is_empty() {
                errors.push(path.child(field).invalid(value.as_str(), "must not be empty"));
            }
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            let value = reference_json(owner);
            errors.push(path.invalid(value, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.controller == Some(true) {
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                    first.kind, first.name, owner.kind, owner.name
                );
                let all = owners.iter().map(|owner| json::encode(owner)).collect::<Vec<_>>().join(",");
                errors.push(path.invalid(BadValue::json(format!("[{all}]")), detail));
            } else {
                controller = Some(owner);
            }
        }
    }
}

fn reference_json(owner: &OwnerReference) -> BadValue {
    BadValue::json(json::encode(owner))
}

fn validate_finalizers(finalizers: &[String], path: &Path, errors: &mut ErrorList) {
    for finalizer in finalizers {
        errors.push_invalid(path, finalizer, names::qualified_name(finalizer));
    }
    let has = |wanted: &str| finalizers.iter().any(|finalizer| finalizer == wanted);
    if has(FINALIZER_ORPHAN_DEPENDENTS) && has(FINALIZER_DELETE_DEPENDENTS) {
        let all = BadValue::list(finalizers);
        errors.push(path.invalid(all, "finalizer orphan and foregroundDeletion cannot be both set"));
    }
}

fn validate_manager(entry: &ManagedFieldsEntry, path: &Path, errors: &mut ErrorList) {
    if !matches!(entry.operation.as_str(), "Apply" | "Update") {
        errors.push(path.child("operation").invalid(entry.operation.as_str(), "must be `Apply` or `Update`"));
    }
    if !entry.fields_type.is_empty() && entry.fields_type != "FieldsV1" {
        errors.push(path.child("fieldsType").invalid(entry.fields_type.as_str(), "must be `FieldsV1`"));
    }
    if entry.manager.len() > MAX_MANAGER_BYTES {
        errors.push(path.child("manager").too_long(MAX_MANAGER_BYTES));
    }
    let is_printable = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
    for (index, c) in entry.manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {index})", u32::from(c));
        errors.push(path.child("manager").invalid(entry.manager.as_str(), detail));
    }
    if entry.subresource.len() > MAX_SUBRESOURCE_BYTES {
        errors.push(path.child("subresource").too_long(MAX_SUBRESOURCE_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_finalizers_contradict_each_other() {
        let mut errors = ErrorList::new();
        validate_finalizers(&["orphan".into(), "foregroundDeletion".into()], &Path::new("f"), &mut errors);
        let expected = "f: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion \
                        cannot be both set";
        assert_eq!(errors.to_string(), expected);
    }
}
