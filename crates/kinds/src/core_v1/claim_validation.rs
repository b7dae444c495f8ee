//! Rules of persistent volume claims beyond what they ask for: what may change, and their status.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_machinery::reflect::equal_structs;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;
use api_types::core_v1::constants::claim_resource_status;
use api_types::core_v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference,
};

use crate::claim_spec;
use crate::field_rules::IMMUTABLE;
use crate::internal_json;

const BAD_QUANTITY: &str = "must be a valid resource quantity";
const CHANGED: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Whether a source is in the claim's own namespace without saying so.
pub(super) fn is_local(source: &TypedObjectReference) -> bool {
    source.namespace.as_deref().unwrap_or_default().is_empty()
}

/// Drops sources the cluster knows nothing of, and makes the two fields for them say the same.
pub(super) fn settle_sources(spec: &mut PersistentVolumeClaimSpec, old: Option<&PersistentVolumeClaimSpec>) {
    let stored = old.is_some_and(|old| old.data_source.is_some() || old.data_source_ref.is_some());
    let is_known = spec.data_source_ref.is_some() || spec.data_source.as_ref().is_some_and(is_known_source);
    if !stored && !is_known {
        spec.data_source = None;
    }
    match (&spec.data_source, &spec.data_source_ref) {
        (Some(source), None) => {
            spec.data_source_ref = Some(TypedObjectReference {
                api_group: source.api_group.clone(),
                kind: source.kind.clone(),
                name: source.name.clone(),
                namespace: None,
            });
        }
        (None, Some(reference)) if is_local(reference) => {
            spec.data_source = Some(TypedLocalObjectReference {
                api_group: reference.api_group.clone(),
                kind: reference.kind.clone(),
                name: reference.name.clone(),
            });
        }
        _ => {}
    }
}

fn is_known_source(source: &TypedLocalObjectReference) -> bool {
    matches!(
        (source.api_group.as_deref().unwrap_or_default(), source.kind.as_str()),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

/// Checks a claim that is to be created.
pub(super) fn validate(claim: &PersistentVolumeClaim) -> ErrorList {
    let mut errors = ErrorList::new();
    claim_spec::validate(&Path::new("spec"), &claim.spec, None, &mut errors);
    errors
}

/// Checks a claim that is to replace `old`.
pub(super) fn validate_update(claim: &PersistentVolumeClaim, old: &PersistentVolumeClaim) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec");
    claim_spec::validate(&path, &claim.spec, Some(&old.spec), &mut errors);
    let (new, stored) = (&claim.spec, &old.spec);
    let mut allowed = new.clone();
    if stored.volume_name.is_empty() {
        allowed.volume_name.clear();
    }
    if may_name_class(claim, old, &mut errors) {
        allowed.storage_class_name.clone_from(&stored.storage_class_name);
    }
    if old.status.phase == "Bound" {
        allowed.volume_attributes_class_name.clone_from(&stored.volume_attributes_class_name);
        if let Some(quantity) = stored.resources.requests.get("storage") {
            allowed.resources.requests.insert("storage".into(), quantity.clone());
        }
    }
    if !equal_structs(&allowed, stored) {
        let difference = internal_json::difference(stored, &allowed);
        errors.push(path.forbidden(format!("{CHANGED}\n{difference}")));
    }
    let storage = |spec: &PersistentVolumeClaimSpec| spec.resources.requests.get("storage").cloned();
    if let (Some(new), Some(before)) = (storage(new), storage(stored))
        && new < before
        && old.status.capacity.get("storage").is_some_and(|capacity| new <= *capacity)
    {
        let at = path.child("resources").child("requests").child("storage");
        errors.push(at.forbidden("field can not be less than status.capacity"));
    }
    if new.volume_mode != stored.volume_mode {
        let value = new.volume_mode.as_deref().map_or_else(BadValue::null, BadValue::named);
        errors.push(Path::new("volumeMode").invalid(value, IMMUTABLE));
    }
    validate_attributes_class(&path.child("volumeAttributesClassName"), claim, old, &mut errors);
    errors
}

/// Whether the class may be set: once, and as the older annotation has it where there is one, which otherwise stays.
fn may_name_class(claim: &PersistentVolumeClaim, old: &PersistentVolumeClaim, errors: &mut ErrorList) -> bool {
    let annotation =
        |claim: &PersistentVolumeClaim| claim.metadata.annotations.get(BETA_STORAGE_CLASS_ANNOTATION).cloned();
    let (new, stored) = (annotation(claim), annotation(old));
    let (class, stored_class) = (&claim.spec.storage_class_name, &old.spec.storage_class_name);
    let moves = stored.is_some() && stored_class.is_none() && *class == stored && (new.is_none() || new == stored);
    if moves {
        return true;
    }
    if new.clone().unwrap_or_default() != stored.clone().unwrap_or_default() {
        let at = Path::new("metadata").child("annotations").child(BETA_STORAGE_CLASS_ANNOTATION);
        errors.push(at.invalid(new.unwrap_or_default(), IMMUTABLE));
    }
    stored_class.is_none() && (stored.is_none() || stored == *class)
}

/// What is told of a claim.
pub(super) fn warnings(claim: &PersistentVolumeClaim) -> Vec<String> {
    let mut texts = Vec::new();
    if claim.metadata.annotations.contains_key(BETA_STORAGE_CLASS_ANNOTATION) {
        let text = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        texts.push(format!("metadata.annotations[{BETA_STORAGE_CLASS_ANNOTATION}]: {text}"));
    }
    texts.extend(claim_spec::warnings(&Path::new("spec"), &claim.spec));
    texts
}

fn validate_attributes_class(
    path: &Path,
    claim: &PersistentVolumeClaim,
    old: &PersistentVolumeClaim,
    errors: &mut ErrorList,
) {
    let (new, stored) = (&claim.spec.volume_attributes_class_name, &old.spec.volume_attributes_class_name);
    if new == stored || old.status.current_volume_attributes_class_name.is_none() {
        return;
    }
    let what = match new.as_deref() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let detail = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.push(path.forbidden(detail));
}

/// Checks a claim whose status is to replace that of the stored one.
pub(super) fn validate_status(claim: &PersistentVolumeClaim) -> ErrorList {
    let mut errors = ErrorList::new();
    if claim.spec.access_modes.is_empty() {
        errors.push(Path::new("Spec").child("accessModes").required(""));
    }
    let (path, status) = (Path::new("status"), &claim.status);
    for (name, quantity) in status.capacity.iter().filter(|(_, quantity)| quantity.sign() < 0) {
        errors.push(path.child("capacity").key(name).invalid(quantity.value(), BAD_QUANTITY));
    }
    let at = path.child("allocatedResourceStatuses");
    for (name, state) in &status.allocated_resource_statuses {
        validate_resource(&at, name, &mut errors);
        if !claim_resource_status::ALL.contains(&state.as_str()) {
            errors.push(at.not_supported(BadValue::named(name), claim_resource_status::ALL));
        }
    }
    let at = path.child("allocatedResources");
    for (name, quantity) in &status.allocated_resources {
        validate_resource(&at, name, &mut errors);
        if quantity.sign() < 0 {
            errors.push(at.key(name).invalid(quantity.value(), BAD_QUANTITY));
        }
    }
    errors
}

fn validate_resource(path: &Path, name: &str, errors: &mut ErrorList) {
    errors.push_invalid(path, name, names::qualified_name(name));
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    if native && name != "storage" {
        errors.push(path.not_supported(BadValue::named(name), &["storage"]));
    }
}
