//! Rules that the workload kinds share: their selectors, the templates of their pods, amounts that are a number or a
//! percentage, and the warning about names that make bad host names.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::intstr::IntOrString;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::names;
use api_machinery::reflect::{Field, Reflect, equal};
use api_types::core_v1::PodTemplateSpec;
use api_types::core_v1::constants::restart_policy;
use component_helpers::selectors::selector_of;
use feature_gates::Gates;

use crate::field_rules::{self as rules, IMMUTABLE};
use crate::label_selector::{self, Values};
use crate::pod_spec::validation::validate_template;
use crate::rules::Scale;

/// Where most workloads have the spec of their pods.
pub(crate) fn pods_path() -> Path {
    Path::new("spec").child("template").child("spec")
}

const ABOVE_ALL: &str = "must not be greater than 100%";

/// A struct in the layout of the wire, as the bad value of an error.
pub(crate) fn wire_value(value: &dyn Reflect) -> BadValue {
    BadValue::json(api_machinery::json::encode(value))
}

/// A selector that may be absent, as the bad value of an error.
pub(crate) fn selector_value(selector: Option<&LabelSelector>) -> BadValue {
    selector.map_or_else(BadValue::null, |selector| wire_value(selector))
}

/// Refuses a change, by semantic equality; `value` is what is printed.
pub(crate) fn immutable(path: &Path, new: &dyn Field, old: &dyn Field, value: BadValue, errors: &mut ErrorList) {
    if !equal(new, old) {
        errors.push(path.invalid(value, IMMUTABLE));
    }
}

fn is_empty(selector: &LabelSelector) -> bool {
    selector.match_labels.is_empty() && selector.match_expressions.is_empty()
}

/// A selector that must be there and select something; `empty` is what an empty one is told.
pub(crate) fn validate_selector(path: &Path, selector: Option<&LabelSelector>, empty: &str, errors: &mut ErrorList) {
    let Some(given) = selector else {
        errors.push(path.required(""));
        return;
    };
    label_selector::validate(path, given, Values::Checked, errors);
    if is_empty(given) {
        errors.push(path.invalid(selector_value(selector), empty));
    }
}

/// Whether the selector selects the labels of the template; `path` is the template's. An empty selector passes, as it
/// was refused already.
pub(crate) fn validate_selects(
    path: &Path,
    selector: Option<&LabelSelector>,
    template: &PodTemplateSpec,
    errors: &mut ErrorList,
) {
    let Ok(parsed) = selector_of(selector) else { return };
    if selector.is_some_and(is_empty) || parsed.matches(&template.metadata.labels) {
        return;
    }
    let value = BadValue::texts(&template.metadata.labels);
    let detail = "`selector` does not match template `labels`";
    errors.push(path.child("metadata").child("labels").invalid(value, detail));
}

/// Pods of a workload always restart, and have no deadline; `kind` is how upstream names the workload there.
pub(crate) fn validate_endless(path: &Path, template: &PodTemplateSpec, kind: &str, errors: &mut ErrorList) {
    let path = path.child("spec");
    rules::one_of(&path.child("restartPolicy"), &template.spec.restart_policy, &[restart_policy::ALWAYS], errors);
    if template.spec.active_deadline_seconds.is_some() {
        let detail = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(path.child("activeDeadlineSeconds").forbidden(detail));
    }
}

/// The selector and the template of a Deployment or a ReplicaSet, with the stored one; `path` is the spec's.
pub(crate) fn validate_replicated(
    path: &Path,
    selector: Option<&LabelSelector>,
    (template, old): (&PodTemplateSpec, Option<&PodTemplateSpec>),
    gates: &Gates,
    errors: &mut ErrorList,
) {
    let at = path.child("selector");
    // Upstream says Deployment for both kinds.
    validate_selector(&at, selector, "empty selector is invalid for deployment", errors);
    if selector_of(selector).is_err() {
        errors.push(at.invalid(selector_value(selector), "invalid label selector"));
        return;
    }
    let path = path.child("template");
    validate_selects(&path, selector, template, errors);
    errors.extend(validate_template(&path, template, old, gates));
    validate_endless(&path, template, "ReplicaSet", errors);
}

/// A selector may not change, as pods made before would be nobody's.
pub(crate) fn selector_stays(new: Option<&LabelSelector>, old: Option<&LabelSelector>, errors: &mut ErrorList) {
    let same = match (new, old) {
        (Some(new), Some(old)) => equal(new, old),
        (new, old) => new.is_none() && old.is_none(),
    };
    if !same {
        errors.push(Path::new("spec").child("selector").invalid(selector_value(new), IMMUTABLE));
    }
}

/// The scale of a workload.
pub(crate) fn scale(wanted: Option<i32>, present: i32, selector: Option<&LabelSelector>) -> Scale {
    let selector = selector_of(selector).map_or_else(|_| String::new(), |selector| selector.to_string());
    Scale { spec_replicas: Ok(wanted.unwrap_or(1)), status_replicas: present, selector }
}

/// A number that is not negative, or digits with a percent sign.
pub(crate) fn int_or_percent(path: &Path, value: &IntOrString, errors: &mut ErrorList) {
    match value {
        IntOrString::Int(number) => rules::not_negative(path, i64::from(*number), errors),
        IntOrString::Str(text) => {
            errors.extend(names::percent(text).into_iter().map(|detail| path.invalid(value, detail)));
        }
    }
}

/// The percentage, where the value is one.
fn percentage(value: &IntOrString) -> Option<i64> {
    match value {
        IntOrString::Str(text) if names::percent(text).is_empty() => {
            // So many digits that they do not fit are more than everything, too.
            Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
        }
        _ => None,
    }
}

/// A percentage must not be more than everything; plain numbers have no bound.
pub(crate) fn at_most_all(path: &Path, value: &IntOrString, errors: &mut ErrorList) {
    if percentage(value).is_some_and(|percent| percent > 100) {
        errors.push(path.invalid(value, ABOVE_ALL));
    }
}

/// The number or the percentage, for rules about zero.
pub(crate) fn amount(value: &IntOrString) -> i64 {
    percentage(value).unwrap_or_else(|| value.int_value().into())
}

/// Counters of a status that must not be negative.
pub(crate) fn not_negative(path: &Path, fields: &[(&'static str, i64)], errors: &mut ErrorList) {
    for (field, value) in fields {
        rules::not_negative(&path.child(*field), *value, errors);
    }
}

/// Counters of a status that are parts of `replicas`.
pub(crate) fn parts_of(path: &Path, replicas: i32, fields: &[(&'static str, i32)], errors: &mut ErrorList) {
    for (field, value) in fields.iter().filter(|(_, value)| *value > replicas) {
        errors.push(path.child(*field).invalid(*value, "cannot be greater than status.replicas"));
    }
}

/// What is available is ready, too; `ready` is how upstream calls that counter there.
pub(crate) fn available_are_ready(path: &Path, counts: (i32, i32), ready: &str, errors: &mut ErrorList) {
    let (available, count) = counts;
    if available > count {
        let detail = format!("cannot be greater than {ready}");
        errors.push(path.child("availableReplicas").invalid(available, detail));
    }
}

/// The count of hash collisions never goes back, or names of old revisions would be used again.
pub(crate) fn not_decremented(path: &Path, new: Option<i32>, old: Option<i32>, errors: &mut ErrorList) {
    if old.is_some_and(|old| new.unwrap_or(0) < old || new.is_none()) {
        errors.push(path.child("collisionCount").invalid(new.unwrap_or(0), "cannot be decremented"));
    }
}

/// The warning for a name that is no DNS label, sent once, on create.
pub(crate) fn name_warnings(meta: &ObjectMeta, is_create: bool) -> Vec<String> {
    let problems = names::dns1123_label(&meta.name);
    if !is_create || problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        problems.join(" ")
    )]
}

/// The warnings of a workload's name and template, which is in the usual place.
pub(crate) fn warnings(meta: &ObjectMeta, old: Option<&ObjectMeta>, template: &PodTemplateSpec) -> Vec<String> {
    let mut texts = name_warnings(meta, old.is_none());
    texts.extend(template_warnings(&Path::new("spec").child("template"), meta, old, template));
    texts
}

/// The warnings of a workload's template, sent when it is created or its spec has changed; `path` is the template's.
pub(crate) fn template_warnings(
    path: &Path,
    meta: &ObjectMeta,
    old: Option<&ObjectMeta>,
    template: &PodTemplateSpec,
) -> Vec<String> {
    if old.is_some_and(|old| old.generation == meta.generation) {
        return Vec::new();
    }
    crate::pod_spec::warnings::of(path, &template.metadata, &template.spec)
}
