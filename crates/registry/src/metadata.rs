//! The rules of `metadata`, the same for every kind: what the server fills in and what a client may not do.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::constants::{FINALIZER_DELETE_DEPENDENTS, FINALIZER_ORPHAN_DEPENDENTS};
use api_machinery::meta::{ObjectMeta, OwnerReference};
use api_machinery::names;
use api_machinery::object::Object;
use api_machinery::reflect;
use base::Rng;
use kinds::metadata::{negative_generation, validate_common, validate_managers, validate_texts};
use kinds::rules::{Endpoint, MetadataCheck, RuleContext, Rules};

use crate::observer::Comparison;

/// Generated names end in this many random characters.
const SUFFIX_LENGTH: usize = 5;
/// The prefix of a generated name is cut to this, so that the whole is a label value.
const MAX_PREFIX_BYTES: usize = 58;
/// No vowels and nothing that looks like one, so that no word comes out.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
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

/// Checks the metadata of an object that is to be created, by the kind's own rule for new names.
pub(crate) fn validate_create(rules: &dyn Rules, cx: &RuleContext, meta: &ObjectMeta) -> ErrorList {
    validate_as_new(rules, meta, &|name, prefix| rules.validate_new_name(cx, name, prefix))
}

fn validate_as_new(rules: &dyn Rules, meta: &ObjectMeta, named: &dyn Fn(&str, bool) -> Vec<String>) -> ErrorList {
    let info = rules.info();
    let path = Path::new("metadata");
    let mut errors = ErrorList::new();
    if !meta.generate_name.is_empty() {
        let problems = named(&meta.generate_name, true);
        errors.push_invalid(&path.child("generateName"), &meta.generate_name, problems);
    }
    if meta.name.is_empty() {
        errors.push(path.child("name").required("name or generateName is required"));
    } else {
        let problems = named(&meta.name, false);
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
        errors.push(negative_generation(meta, &path));
    }
    validate_common(meta, &path, &mut errors);
    validate_standard_finalizers(rules, meta, &path, &mut errors);
    errors
}

/// The rule that holds for every name, besides the kind's own.
pub(crate) fn validate_path_segment(meta: &ObjectMeta) -> ErrorList {
    let mut errors = ErrorList::new();
    errors.push_invalid(&Path::new("metadata").child("name"), &meta.name, names::path_segment_name(&meta.name));
    errors
}

/// What is wrong with metadata on an update. Upstream looks at it for every kind, and most kinds look again.
pub(crate) struct Looks {
    /// What every kind is told.
    pub(crate) shared: ErrorList,
    /// What each look of the kind itself finds.
    pub(crate) own: Vec<ErrorList>,
}

/// Checks the metadata of an object that is to replace `old`: what holds for every kind, and what the kind looks at again
/// by itself, so that clients are told of most errors more than once.
pub(crate) fn validate_update(rules: &dyn Rules, endpoint: Endpoint, meta: &ObjectMeta, old: &ObjectMeta) -> Looks {
    let path = Path::new("metadata");
    let mut shared = ErrorList::new();
    validate_common(meta, &path, &mut shared);
    validate_change(meta, old, &path, &mut shared);
    let checks = rules.metadata_checks(endpoint);
    if shared.is_empty() {
        // What is well has nothing to be told again, but for what only the kinds look at.
        let mut more = ErrorList::new();
        validate_standard_finalizers(rules, meta, &path, &mut more);
        if more.is_empty() {
            return Looks { shared, own: Vec::new() };
        }
    }
    let look = |check: &MetadataCheck| match check {
        MetadataCheck::Create => validate_as_new(rules, meta, &|name, prefix| rules.validate_name(name, prefix)),
        MetadataCheck::Update => {
            let mut errors = ErrorList::new();
            validate_change(meta, old, &path, &mut errors);
            validate_standard_finalizers(rules, meta, &path, &mut errors);
            errors
        }
    };
    Looks { shared, own: checks.iter().map(look).collect() }
}

/// What a change of metadata may not do.
fn validate_change(meta: &ObjectMeta, old: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    if old.deletion_timestamp.is_some() {
        let mut new: Vec<&String> = meta.finalizers.iter().filter(|one| !old.finalizers.contains(one)).collect();
        new.sort();
        if !new.is_empty() {
            let new: Vec<String> = new.into_iter().map(|name| format!("{name:?}")).collect();
            errors.push(path.child("finalizers").forbidden(format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                new.join(", ")
            )));
        }
    }
    if meta.resource_version.is_empty() {
        errors.push(path.child("resourceVersion").invalid("", "must be specified for an update"));
    }
    if meta.generation < old.generation {
        errors.push(path.child("generation").invalid(meta.generation, "must not be decremented"));
    }
    validate_kept(meta, old, path, errors);
    validate_texts(meta, path, errors);
    validate_managers(meta, path, errors);
}

/// What an object keeps as long as it is there. Nobody but the server marks it as deleted.
fn validate_kept(meta: &ObjectMeta, old: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    const IMMUTABLE: &str = "field is immutable";
    for (field, new, old) in
        [("name", &meta.name, &old.name), ("namespace", &meta.namespace, &old.namespace), ("uid", &meta.uid, &old.uid)]
    {
        if new != old {
            errors.push(path.child(field).invalid(new.as_str(), IMMUTABLE));
        }
    }
    if meta.creation_timestamp != old.creation_timestamp {
        errors.push(path.child("creationTimestamp").invalid(meta.creation_timestamp, IMMUTABLE));
    }
    if meta.deletion_timestamp != old.deletion_timestamp {
        errors.push(path.child("deletionTimestamp").invalid(meta.deletion_timestamp, IMMUTABLE));
    }
    let (seconds, stored) = (meta.deletion_grace_period_seconds, old.deletion_grace_period_seconds);
    if seconds != stored {
        errors.push(path.child("deletionGracePeriodSeconds").invalid(seconds, IMMUTABLE));
    }
}

/// Finalizers of most kinds that the release brings need a domain, but for the few of the system.
fn validate_standard_finalizers(rules: &dyn Rules, meta: &ObjectMeta, path: &Path, errors: &mut ErrorList) {
    if !rules.lifecycle().qualified_finalizers {
        return;
    }
    for (index, finalizer) in meta.finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer.as_str()) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(path.child("finalizers").index(index).invalid(finalizer.as_str(), detail));
        }
    }
}

/// Restores the times of field ownership where nothing else changed, so that writing what is there writes nothing.
pub(crate) fn revert_idle_timestamps(object: &mut dyn Object, live: &dyn Object) -> Comparison {
    let old = &live.meta().managed_fields;
    if object.meta().managed_fields.len() != old.len() {
        return Comparison::NotNeeded;
    }
    let times: Vec<_> = object.meta().managed_fields.iter().map(|entry| entry.time).collect();
    if times.iter().eq(old.iter().map(|entry| &entry.time)) {
        return Comparison::NotNeeded;
    }
    for (entry, old) in object.meta_mut().managed_fields.iter_mut().zip(old) {
        entry.time = old.time;
    }
    if reflect::equal_structs(object.as_reflect(), live.as_reflect()) {
        return Comparison::Equal;
    }
    for (entry, time) in object.meta_mut().managed_fields.iter_mut().zip(times) {
        entry.time = time;
    }
    Comparison::ObjectsDiffer
}

#[cfg(test)]
mod tests {
    use api_machinery::json;

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

    fn meta(text: &str) -> ObjectMeta {
        let mut meta = ObjectMeta::default();
        json::decode(text.as_bytes(), &mut meta).expect("metadata");
        meta.name = "n".into();
        meta.namespace = "x".into();
        meta.resource_version = "1".into();
        meta
    }

    fn texts(errors: &ErrorList) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    fn all(looks: Looks) -> ErrorList {
        let mut errors = looks.shared;
        looks.own.into_iter().for_each(|own| errors.extend(own));
        errors
    }

    fn distinct(errors: &ErrorList) -> Vec<String> {
        let mut seen = Vec::new();
        for text in texts(errors) {
            if !seen.contains(&text) {
                seen.push(text);
            }
        }
        seen
    }

    #[test]
    fn finalizers_need_a_domain() {
        let told = |group: &str, resource: &str, finalizer: &str| {
            let rules = kinds::find(group, "v1", resource).expect("a kind");
            let new = meta(&format!(r#"{{"finalizers":["{finalizer}"]}}"#));
            distinct(&all(validate_update(rules, Endpoint::Main, &new, &meta("{}"))))
        };
        let text = "metadata.finalizers[0]: Invalid value: \"hold\": name is neither a standard finalizer name nor is it \
                    fully qualified";
        for (group, resource, finalizer, expected) in [
            ("", "pods", "kubernetes", &[][..]),
            ("", "pods", "example.com/hold", &[]),
            ("", "pods", "hold", &[text]),
            ("apps", "deployments", "hold", &[text]),
            ("policy", "poddisruptionbudgets", "hold", &[]),
            ("apiextensions.k8s.io", "customresourcedefinitions", "hold", &[]),
        ] {
            assert_eq!(told(group, resource, finalizer), expected, "{resource} {finalizer}");
        }
    }

    #[test]
    fn what_updates_of_metadata_are_told() {
        let rules = kinds::find("", "v1", "configmaps").expect("config maps");
        let gone = r#"{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0}"#;
        let held = r#"{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a/b"]}"#;
        for (new, old, expected) in [
            ("{}", "{}", &[][..]),
            (
                gone,
                "{}",
                &[
                    "metadata.deletionTimestamp: Invalid value: \"2026-01-01T00:00:00Z\": field is immutable",
                    "metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable",
                ],
            ),
            (
                &held.replace("\"a/b\"", "\"a/d\",\"a/c\",\"a/b\""),
                held,
                &[
                    "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                   finalizers []string{\"a/c\", \"a/d\"}",
                ],
            ),
            (
                r#"{"ownerReferences":[{"apiVersion":"a/b/c","kind":"","name":"n","uid":"u"}]}"#,
                "{}",
                &[
                    "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
                    "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                ],
            ),
            (
                r#"{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}]}"#,
                "{}",
                &["metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\
                   \"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner"],
            ),
            (
                r#"{"managedFields":[{"manager":"a\u0007","operation":"Move"}]}"#,
                "{}",
                &[
                    "metadata.managedFields[0].operation: Invalid value: \"Move\": must be `Apply` or `Update`",
                    "metadata.managedFields[0].manager: Invalid value: \"a\\a\": invalid character U+0007 (at position 1)",
                ],
            ),
        ] {
            let errors = all(validate_update(rules, Endpoint::Main, &meta(new), &meta(old)));
            assert_eq!(distinct(&errors), expected, "{new} {old}");
        }
    }

    #[test]
    fn kinds_look_at_metadata_again() {
        let held = r#"{"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":0}"#;
        let bad = held.replace('}', r#","labels":{"a":"-"},"finalizers":["a/b"]}"#);
        for (group, resource, endpoint, labels, finalizers) in [
            ("", "events", Endpoint::Main, 2, 1),
            ("events.k8s.io", "events", Endpoint::Main, 3, 2),
            ("", "limitranges", Endpoint::Main, 3, 1),
            ("", "persistentvolumes", Endpoint::Main, 4, 1),
            ("apps", "replicasets", Endpoint::Main, 3, 2),
            ("batch", "jobs", Endpoint::Main, 4, 2),
            ("batch", "jobs", Endpoint::Status, 3, 2),
            ("policy", "poddisruptionbudgets", Endpoint::Main, 2, 1),
        ] {
            let rules = kinds::find(group, "v1", resource).expect("a kind");
            let errors = all(validate_update(rules, endpoint, &meta(&bad), &meta(held)));
            let count = |field: &str| errors.iter().filter(|error| error.field == field).count();
            let counts = (count("metadata.labels"), count("metadata.finalizers"));
            assert_eq!(counts, (labels, finalizers), "{group} {resource}");
        }
    }
}
