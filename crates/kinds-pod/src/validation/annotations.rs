//! Rules of the annotations that pods and templates give a meaning, and their agreement with the fields that came
//! after them.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{AppArmorProfile, PodSpec, SeccompProfile, Toleration};
use component_helpers::taints::Comparing;
use feature_gates::Gates;
use feature_gates::shared::POD_DELETION_COST;
use kinds_frame::field_rules as rules;
use kinds_frame::go_json;
use kinds_frame::pod_containers::each_container;

use super::{comparing, validate_tolerations};

/// Marks the mirror of a static pod.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation of a pod's seccomp profile.
pub(crate) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// What the annotations of a container's seccomp profile start with.
pub(crate) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// What the annotations of a container's `AppArmor` profile start with.
pub const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

type Annotations = BTreeMap<String, String>;

/// Checks the annotations of a pod or template, at the path of the annotations. `old` is the stored one on updates.
pub fn validate_pod_annotations(
    path: &Path,
    (meta, spec): (&ObjectMeta, &PodSpec),
    old: Option<(&ObjectMeta, &PodSpec)>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    let annotations = &meta.annotations;
    if let Some(value) = annotations.get(MIRROR)
        && spec.node_name.is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(path.key(MIRROR).invalid(value.as_str(), detail));
    }
    validate_tolerations_annotation(path, annotations, comparing(gates, old.map(|(_, spec)| spec)), errors);
    let stored_cost = old.and_then(|(meta, _)| meta.annotations.get(DELETION_COST));
    if gates.enabled(POD_DELETION_COST)
        && stored_cost.is_none_or(|cost| is_deletion_cost(cost))
        && let Some(cost) = annotations.get(DELETION_COST)
        && !is_deletion_cost(cost)
    {
        errors.push(path.key(DELETION_COST).invalid(cost.as_str(), "must be a 32bit integer"));
    }
    for (key, value) in annotations {
        if key == SECCOMP_POD || key.starts_with(SECCOMP_CONTAINER) {
            validate_seccomp(&path.child(key.clone()), value, errors);
        }
    }
    validate_apparmor(path, annotations, spec, errors);
}

fn validate_tolerations_annotation(
    path: &Path,
    annotations: &Annotations,
    comparing: Comparing,
    errors: &mut ErrorList,
) {
    let Some(text) = annotations.get(TOLERATIONS).filter(|text| !text.is_empty()) else { return };
    let items = go_json::list(text, "core.Toleration");
    let parsed: Result<Vec<Toleration>, String> = items.and_then(|items| items.iter().map(toleration).collect());
    match parsed {
        Ok(tolerations) => validate_tolerations(&path.child(TOLERATIONS), &tolerations, comparing, errors),
        Err(error) => errors.push(path.invalid(TOLERATIONS, error)),
    }
}

fn toleration(value: &serde_json::Value) -> Result<Toleration, String> {
    let mut toleration = Toleration::default();
    api_machinery::value::from_value(value, &mut toleration).map_err(|error| error.to_string())?;
    Ok(toleration)
}

fn is_deletion_cost(text: &str) -> bool {
    let starts_well =
        text == "0" || text.starts_with('-') || text.starts_with(|first: char| matches!(first, '1'..='9'));
    starts_well && text.parse::<i32>().is_ok()
}

fn validate_seccomp(path: &Path, profile: &str, errors: &mut ErrorList) {
    match (profile, profile.strip_prefix("localhost/")) {
        ("runtime/default" | "docker/default" | "unconfined", _) => {}
        (_, Some(file)) => rules::relative_path(path, file, errors),
        _ => errors.push(path.invalid(profile, "must be a valid seccomp profile")),
    }
}

fn validate_apparmor(path: &Path, annotations: &Annotations, spec: &PodSpec, errors: &mut ErrorList) {
    let containers = each_container(spec, path);
    for (key, profile) in annotations {
        let Some(name) = key.strip_prefix(APPARMOR) else { continue };
        if !containers.iter().any(|(_, container)| container.name == name) {
            errors.push(path.key(key).invalid(name, "container not found"));
        }
        let known = matches!(profile.as_str(), "" | "runtime/default" | "unconfined");
        if !known && !profile.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: \"{profile}\"");
            errors.push(path.key(key).invalid(profile.as_str(), detail));
        }
    }
}

/// The annotations of `AppArmor` may not change once a pod is there.
pub fn validate_apparmor_update(path: &Path, new: &Annotations, old: &Annotations, errors: &mut ErrorList) {
    for (key, value) in old.iter().filter(|(key, _)| key.starts_with(APPARMOR)) {
        if new.get(key) != Some(value) {
            errors.push(path.key(key).forbidden("may not remove or update AppArmor annotations"));
        }
    }
    for key in new.keys().filter(|key| key.starts_with(APPARMOR) && !old.contains_key(*key)) {
        errors.push(path.key(key).forbidden("may not add AppArmor annotations"));
    }
}

/// A pod cannot become a mirror pod, nor cease to be one.
pub fn validate_mirror_update(path: &Path, new: &Annotations, old: &Annotations, errors: &mut ErrorList) {
    match (old.get(MIRROR), new.get(MIRROR)) {
        (Some(old), new) if new != Some(old) => {
            errors.push(path.key(MIRROR).forbidden("may not remove or update mirror pod annotation"));
        }
        (None, Some(_)) => errors.push(path.key(MIRROR).forbidden("may not add mirror pod annotation")),
        _ => {}
    }
}

/// Where an annotation and the field after it both name a profile, they must name the same.
pub(super) fn validate_profiles_match(path: &Path, annotations: &Annotations, spec: &PodSpec, errors: &mut ErrorList) {
    let context = spec.security_context.as_ref();
    if let (Some(annotation), Some(profile)) =
        (annotations.get(SECCOMP_POD), context.and_then(|context| context.seccomp_profile.as_ref()))
    {
        match_seccomp(&path.child("securityContext").child("seccompProfile"), annotation, profile, errors);
    }
    let containers = each_container(spec, path);
    for (path, container) in &containers {
        let annotation = annotations.get(&format!("{SECCOMP_CONTAINER}{}", container.name));
        let profile = container.security_context.as_ref().and_then(|context| context.seccomp_profile.as_ref());
        if let (Some(annotation), Some(profile)) = (annotation, profile) {
            match_seccomp(&path.child("securityContext").child("seccompProfile"), annotation, profile, errors);
        }
    }
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let shared = context.and_then(|context| context.app_armor_profile.as_ref());
    for (path, container) in &containers {
        let own = container.security_context.as_ref().and_then(|context| context.app_armor_profile.as_ref());
        let annotation = annotations.get(&format!("{APPARMOR}{}", container.name));
        if let (Some(annotation), Some(profile)) = (annotation, own.or(shared)) {
            match_apparmor(&path.child("securityContext").child("appArmorProfile"), annotation, profile, errors);
        }
    }
}

fn match_seccomp(path: &Path, annotation: &str, profile: &SeccompProfile, errors: &mut ErrorList) {
    let same = match profile.type_.as_str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => annotation.starts_with("localhost/"),
        _ => true,
    };
    if !same {
        errors.push(path.child("type").forbidden("seccomp type in annotation and field must match"));
    } else if profile.type_ == "Localhost"
        && profile.localhost_profile.as_deref() != annotation.strip_prefix("localhost/")
    {
        errors.push(path.child("localhostProfile").forbidden("seccomp profile in annotation and field must match"));
    }
}

fn match_apparmor(path: &Path, annotation: &str, profile: &AppArmorProfile, errors: &mut ErrorList) {
    let Some((type_, file)) = apparmor_of(annotation) else { return };
    if type_ != profile.type_ {
        errors.push(path.child("type").forbidden("apparmor type in annotation and field must match"));
    } else if file != profile.localhost_profile.as_deref() {
        errors.push(path.child("localhostProfile").forbidden("apparmor profile in annotation and field must match"));
    }
}

/// The type and file that an annotation of `AppArmor` names; nothing where it names none.
pub fn apparmor_of(annotation: &str) -> Option<(&'static str, Option<&str>)> {
    match annotation {
        "unconfined" => Some(("Unconfined", None)),
        "runtime/default" => Some(("RuntimeDefault", None)),
        _ => annotation.strip_prefix("localhost/").map(|file| ("Localhost", Some(file))),
    }
}

/// A profile of either kind as it is printed inside an error.
pub(super) fn profile_value(type_: &str, file: Option<&String>) -> BadValue {
    let profile = serde_json::json!({ "Type": type_, "LocalhostProfile": file });
    // Upstream prints the type first, which the sorted keys of a JSON value would not do.
    let file = profile.get("LocalhostProfile").map(ToString::to_string).unwrap_or_default();
    let type_ = profile.get("Type").map(ToString::to_string).unwrap_or_default();
    BadValue::json(format!("{{\"Type\":{type_},\"LocalhostProfile\":{file}}}"))
}
