//! The rules of `metadata`, the same for every kind: what the server fills in and what a client may not do.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::constants::{FINALIZER_DELETE_DEPENDENTS, FINALIZER_ORPHAN_DEPENDENTS};
use api_machinery::meta::{ManagedFieldsEntry, ObjectMeta, OwnerReference};
use api_machinery::names;
use api_machinery::object::Object;
use api_machinery::{json, reflect};
use base::Rng;
use kinds::rules::Rules;

/// Generated names end in this many random characters.
const SUFFIX_LENGTH: usize = 5;
/// The prefix of a generated name is cut to this, so that the whole is a label value.
const MAX_PREFIX_BYTES: usize = 58;
/// No vowels and nothing that looks like one, so that no word comes out.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// The longest `managedFields[].manager`.
const MAX_MANAGER_BYTES: usize = 128;
/// The longest `managedFields[].subresource`.
const MAX_SUBRESOURCE_BYTES: usize = 256;
/// Finalizers of core kinds that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", FINALIZER_ORPHAN_DEPENDENTS, FINALIZER_DELETE_DEPENDENTS];

/// Takes out what only the server sets, from an object that is to be created.
pub(crate) fn wipe_system_fields(meta: &mut ObjectMeta) {
    meta.creation_timestamp = Default::default();
    meta.uid.clear();
    meta.deletion_timestamp = None;
    meta.deletion_grace_period_seconds = None;
    meta.self_link.clear();
}

/// A name made from `generateName`.
pub(crate) fn generate_name(prefix: &str, rng: &Rng) -> String {
    let mut cut = prefix.len().min(MAX_PREFIX_BYTES);
    while !prefix.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut name = prefix.get(..cut).unwrap_or_default().to_owned();
    for _ in 0..SUFFIX_LENGTH {
        let at = usize::try_from(rng.below(SUFFIX_ALPHABET.len() as u64)).unwrap_or(0);
        name.push(char::from(SUFFIX_ALPHABET.get(at).copied().unwrap_or(b'x')));
    }
    name
}

/// Drops repeated owner references; the uids that were there more than once.
pub(crate) fn dedup_owner_references(meta: &mut ObjectMeta) -> Vec<String> {
    let mut kept: Vec<OwnerReference> = Vec::with_capacity(meta.owner_references.len());
    let mut repeated = Vec::new();
    for reference in meta.owner_references.drain(..) {
        if kept.iter().any(|other| reflect::equal_structs(other, &reference)) {
            if !repeated.contains(&reference.uid) {
                repeated.push(reference.uid);
            }
        } else {
            kept.push(reference);
        }
    }
    meta.owner_references = kept;
    repeated
}

/// The warning about repeated owner references that appeared during mutating admission.
pub(crate) fn duplicate_owners_warning(uids: &[String]) -> String {
    format!(
        ".metadata.ownerReferences contains duplicate entries after mutating admission happens; API server dedups \
         owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; \
         duplicate UID(s) observed: {{{}}}",
        uids.join(", ")
    )
}

/// Checks the metadata of an object that is to be created, by the kind's own rule for names.
pub(crate) fn validate_create(rules: &dyn Rules, meta: &ObjectMeta) -> ErrorList {
    let info = rules.info();
    let path = Path::new("metadata");
    let mut errors = ErrorList::new();
    if !meta.generate_name.is_empty() {
        let problems = rules.validate_name(&meta.generate_name, true);
        errors.push_invalid(&path.child("generateName"), &meta.generate_name, problems);
    }
    if meta.name.is_empty() {
        errors.push(path.child("name").required("name or generateName is required"));
    } else {
        let problems = rules.validate_name(&meta.name, false);
        errors.push_invalid(&path.child("name"), &meta.name, problems);
    }
    match (info.namespaced, meta.namespace.as_str()) {
        (true, "") => errors.push(path.child("namespace").required("")),
        (true, namespace) => {
            errors.push_invalid(&path.child("namespace"), namespace, names::dns1123_label(namespace));
        }
        (false, "") => {}
        (false, _) => errors.push(path.child("namespace").forbidden("not allowed on this type")),
    }
    if meta.generation < 0 {
        errors.push(path.child("generation").invalid(meta.generation, "must be greater than or equal to 0"));
    }
    validate_common(info.group.is_empty(), meta, &path, &mut errors);
    errors
}

/// The rule that holds for every name, besides the kind's own.
pub(crate) fn validate_path_segment(meta: &ObjectMeta) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.push_invalid(&Path::new("metadata").child("name"), &meta.name, names::path_segment_name(&meta.name));
    errors
}

/// Checks the metadata of an object that is to replace `old`.
pub(crate) fn validate_update(rules: &dyn Rules, meta: &ObjectMeta, old: &ObjectMeta) -> ErrorList {
    let path = Path::new("metadata");
    let mut errors = ErrorList::new();
    if old.deletion_timestamp.is_some() {
        let added = |finalizer: &&String| !old.finalizers.contains(finalizer);
        let new: Vec<String> = meta.finalizers.iter().filter(added).map(|name| format!("{name:?}")).collect();
        if !new.is_empty() {
            errors.push(path.child("finalizers").forbidden(format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                new.join(", ")
            )));
        }
    }
    for (field, new, old) in
        [("name", &meta.name, &old.name), ("namespace", &meta.namespace, &old.namespace), ("uid", &meta.uid, &old.uid)]
    {
        if new != old {
            errors.push(path.child(field).invalid(new.as_str(), "field is immutable"));
        }
    }
    if meta.generation < old.generation {
        errors.push(path.child("generation").invalid(meta.generation, "must not be decremented"));
    }
    if meta.resource_version.is_empty() {
        errors.push(path.child("resourceVersion").invalid("", "must be specified for an update"));
    }
    validate_common(rules.info().group.is_empty(), meta, &path, &mut errors);
    errors
}

fn validate_common(core: bool, meta: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    errors.extend(names::labels(&path.child("labels"), &meta.labels));
    errors.extend(names::annotations(&path.child("annotations"), &meta.annotations));
    validate_owners(&meta.owner_references, &path.child("ownerReferences"), errors);
    validate_finalizers(core, &meta.finalizers, &path.child("finalizers"), errors);
    for (index, entry) in meta.managed_fields.iter().enumerate() {
        validate_manager(entry, &path.child("managedFields").index(index), errors);
    }
}

fn validate_owners(owners: &[OwnerReference], path: &Path, errors: &mut ErrorList) {
    let mut controller: Option<&OwnerReference> = None;
    for (index, owner) in owners.iter().enumerate() {
        let at = path.index(index);
        let version = owner.api_version.rsplit('/').next().unwrap_or_default();
        if version.is_empty() {
            let value = owner.api_version.as_str();
            errors.push(at.child("apiVersion").invalid(value, "version must not be empty"));
        }
        for (field, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
            if value.is_empty() {
                errors.push(at.child(field).invalid(value.as_str(), "must not be empty"));
            }
        }
        if owner.api_version == "v1" && owner.kind == "Event" {
            let value = reference_json(owner);
            errors.push(at.invalid(value, "/v1, Kind=Event is disallowed from being an owner"));
        }
        if owner.controller == Some(true) {
            if let Some(first) = controller {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
                    first.kind, first.name, owner.kind, owner.name
                );
                let all = owners.iter().map(|owner| json::encode(owner)).collect::<Vec<_>>().join(",");
                errors.push(path.invalid(api_machinery::field_path::BadValue::json(format!("[{all}]")), detail));
            } else {
                controller = Some(owner);
            }
        }
    }
}

fn reference_json(owner: &OwnerReference) -> api_machinery::field_path::BadValue {
    api_machinery::field_path::BadValue::json(json::encode(owner))
}

fn validate_finalizers(core: bool, finalizers: &[String], path: &Path, errors: &mut ErrorList) {
    for finalizer in finalizers {
        let problems = names::qualified_name(finalizer);
        let qualified = problems.is_empty();
        errors.push_invalid(path, finalizer, problems);
        if core && qualified && !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(path.invalid(finalizer.as_str(), detail));
        }
    }
    let has = |wanted: &str| finalizers.iter().any(|finalizer| finalizer == wanted);
    if has(FINALIZER_ORPHAN_DEPENDENTS) && has(FINALIZER_DELETE_DEPENDENTS) {
        let all = api_machinery::field_path::BadValue::list(finalizers);
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
    if entry.subresource.len() > MAX_SUBRESOURCE_BYTES {
        errors.push(path.child("subresource").too_long(MAX_SUBRESOURCE_BYTES));
    }
}

/// Restores the times of field ownership where nothing else changed, so that writing what is there writes nothing.
pub(crate) fn revert_idle_timestamps(object: &mut dyn Object, live: &dyn Object) {
    let old = &live.meta().managed_fields;
    if object.meta().managed_fields.len() != old.len() {
        return;
    }
    let times: Vec<_> = object.meta().managed_fields.iter().map(|entry| entry.time).collect();
    if times.iter().eq(old.iter().map(|entry| &entry.time)) {
        return;
    }
    for (entry, old) in object.meta_mut().managed_fields.iter_mut().zip(old) {
        entry.time = old.time;
    }
    if !reflect::equal_structs(object.as_reflect(), live.as_reflect()) {
        for (entry, time) in object.meta_mut().managed_fields.iter_mut().zip(times) {
            entry.time = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_cut_and_speak_no_words() {
        let rng = Rng::seeded(3);
        let name = generate_name(&"x".repeat(100), &rng);
        assert_eq!(name.len(), MAX_PREFIX_BYTES + SUFFIX_LENGTH);
        let suffix = generate_name("web-", &rng);
        assert!(suffix.starts_with("web-") && suffix.len() == 9, "{suffix}");
        assert!(suffix[4..].bytes().all(|byte| SUFFIX_ALPHABET.contains(&byte)), "{suffix}");
        assert!(generate_name(&"\u{e4}".repeat(40), &rng).starts_with('\u{e4}'), "cut between characters");
    }

    #[test]
    fn finalizers_of_core_kinds_need_a_domain() {
        let path = Path::new("metadata").child("finalizers");
        let texts = |core, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut errors = ErrorList::new();
            validate_finalizers(core, &names, &path, &mut errors);
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(texts(true, &["kubernetes", "example.com/hold"]), "");
        assert_eq!(texts(false, &["hold"]), "");
        assert!(texts(true, &["hold"]).contains("neither a standard finalizer name"));
        assert!(texts(false, &["orphan", "foregroundDeletion"]).contains("cannot be both set"));
    }
}
