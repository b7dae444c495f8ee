//! Rules of what a persistent volume claim asks for: the claim itself, ephemeral volumes and claim templates share
//! them; and the rules of access modes, which volumes share too.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{persistent_volume_access_mode, persistent_volume_mode};
use api_types::core_v1::{PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference};
use kinds_frame::field_rules::{self as rules, POSITIVE};
use kinds_frame::label_selector::{self, Values};

use crate::warnings::fractional_bytes;

/// Checks the modes in which a volume is to be used; an empty list is the caller's to report.
pub fn access_modes(path: &Path, modes: &[String], errors: &mut ErrorList) {
    for mode in modes {
        rules::one_of(path, mode, persistent_volume_access_mode::ALL, errors);
    }
    if modes.len() > 1 && modes.iter().any(|mode| mode == persistent_volume_access_mode::READ_WRITE_ONCE_POD) {
        errors.push(path.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

/// Checks the spec of a claim. `old` is the stored one on updates, whose faults are not held against the new one.
pub fn validate(
    path: &Path,
    spec: &PersistentVolumeClaimSpec,
    old: Option<&PersistentVolumeClaimSpec>,
    errors: &mut ErrorList,
) {
    let modes = path.child("accessModes");
    if spec.access_modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    if let Some(selector) = &spec.selector {
        let stored = old.and_then(|old| old.selector.as_ref());
        let values = if stored.is_some_and(label_selector::is_bad) { Values::AsStored } else { Values::Checked };
        label_selector::validate(&path.child("selector"), selector, values, errors);
    }
    access_modes(&modes, &spec.access_modes, errors);
    let storage = path.child("resources").key("storage");
    match spec.resources.requests.get("storage") {
        None => errors.push(storage.required("")),
        Some(quantity) if quantity.sign() <= 0 => errors.push(storage.invalid(quantity.to_string(), POSITIVE)),
        Some(_) => {}
    }
    let subdomain: rules::NameRule = names::dns1123_subdomain;
    let class = spec.storage_class_name.as_deref().unwrap_or_default();
    rules::named_if_set(&path.child("storageClassName"), class, subdomain, errors);
    rules::one_of_if_set(&path.child("volumeMode"), spec.volume_mode.as_ref(), persistent_volume_mode::ALL, errors);
    let groups_stored = old.is_some_and(has_api_group);
    if let Some(source) = &spec.data_source {
        validate_source(&path.child("dataSource"), &as_reference(source), groups_stored, errors);
    }
    if let Some(source) = &spec.data_source_ref {
        let at = path.child("dataSourceRef");
        validate_source(&at, source, groups_stored, errors);
        let namespace = source.namespace.as_deref().unwrap_or_default();
        rules::named_if_set(&at.child("namespace"), namespace, names::dns1123_label, errors);
    }
    validate_sources_match(path, spec, errors);
    let class = spec.volume_attributes_class_name.as_deref().unwrap_or_default();
    rules::named_if_set(&path.child("volumeAttributesClassName"), class, subdomain, errors);
}

/// What is told of amounts that are no whole bytes.
pub fn warnings(path: &Path, spec: &PersistentVolumeClaimSpec) -> Vec<String> {
    let mut texts = Vec::new();
    let at = path.child("resources");
    fractional_bytes(&at.child("requests"), &spec.resources.requests, &["storage"], &mut texts);
    fractional_bytes(&at.child("limits"), &spec.resources.limits, &["storage"], &mut texts);
    texts
}

fn has_api_group(spec: &PersistentVolumeClaimSpec) -> bool {
    spec.data_source.as_ref().is_some_and(|source| source.api_group.is_some())
        || spec.data_source_ref.as_ref().is_some_and(|source| source.api_group.is_some())
}

fn as_reference(source: &TypedLocalObjectReference) -> TypedObjectReference {
    TypedObjectReference {
        api_group: source.api_group.clone(),
        kind: source.kind.clone(),
        name: source.name.clone(),
        namespace: None,
    }
}

fn validate_source(path: &Path, source: &TypedObjectReference, any_group: bool, errors: &mut ErrorList) {
    rules::required(&path.child("name"), &source.name, errors);
    rules::required(&path.child("kind"), &source.kind, errors);
    let group = source.api_group.as_deref().unwrap_or_default();
    if group.is_empty() && source.kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(path.invalid(source.kind.as_str(), detail));
    }
    if !any_group {
        rules::named_if_set(&path.child("apiGroup"), group, names::dns1123_subdomain, errors);
    }
}

fn validate_sources_match(path: &Path, spec: &PersistentVolumeClaimSpec, errors: &mut ErrorList) {
    let (Some(source), Some(reference)) = (&spec.data_source, &spec.data_source_ref) else { return };
    let refuse = |detail| path.invalid(BadValue::json("{}"), detail);
    if reference.namespace.as_deref().is_some_and(|namespace| !namespace.is_empty()) {
        errors.push(refuse("may not be specified when dataSourceRef.namespace is specified"));
    } else if as_reference(source) != (TypedObjectReference { namespace: None, ..reference.clone() }) {
        errors.push(refuse("must match dataSourceRef"));
    }
}
