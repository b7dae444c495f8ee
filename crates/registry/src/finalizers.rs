//! The garbage collector's finalizers: who gets which on deletion, and when the last one is gone.

use api_machinery::meta::constants::{FINALIZER_DELETE_DEPENDENTS, FINALIZER_ORPHAN_DEPENDENTS, deletion_propagation};
use api_machinery::meta::{DeleteOptions, ObjectMeta};
use kinds::apiextensions_v1;
use kinds::info::ResourceInfo;

/// Whether an update took the last finalizer of an object that only waited for that.
pub(crate) fn last_one_gone(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    new.finalizers.is_empty()
        && old.deletion_timestamp.is_some()
        && old.deletion_grace_period_seconds.unwrap_or_default() == 0
}

/// What a kind does with dependents when nobody says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WithoutPolicy {
    Unsupported,
    Orphan,
    Background,
}

fn default_of(info: &ResourceInfo<'_>) -> WithoutPolicy {
    match (info.group, info.version, info.resource) {
        ("" | "events.k8s.io", _, "events") => WithoutPolicy::Unsupported,
        ("", "v1", "replicationcontrollers") | ("batch", "v1", "jobs") | ("batch", "v1beta1", "cronjobs") => {
            WithoutPolicy::Orphan
        }
        _ => WithoutPolicy::Background,
    }
}

/// Whether a deletion without a policy orphans dependents to the surprise of many, so that clients are warned.
pub(crate) fn orphans_by_default(info: &ResourceInfo<'_>) -> bool {
    (info.group, info.resource) == ("batch", "jobs")
}

/// The finalizers that an object has to have once its deletion begins.
pub(crate) fn for_deletion(info: &ResourceInfo<'_>, meta: &ObjectMeta, options: &DeleteOptions) -> Vec<String> {
    let collectors = [FINALIZER_ORPHAN_DEPENDENTS, FINALIZER_DELETE_DEPENDENTS];
    let (orphan, foreground) = wanted(info, meta, options);
    let mut finalizers: Vec<String> =
        meta.finalizers.iter().filter(|name| !collectors.contains(&name.as_str())).cloned().collect();
    if orphan {
        finalizers.push(FINALIZER_ORPHAN_DEPENDENTS.to_owned());
    }
    if foreground {
        finalizers.push(FINALIZER_DELETE_DEPENDENTS.to_owned());
    }
    finalizers
}

/// A definition must not go before its objects: it is held from the moment that its deletion begins.
pub(crate) fn hold_definition(info: &ResourceInfo<'_>, meta: &ObjectMeta, finalizers: &mut Vec<String>) {
    let held = apiextensions_v1::FINALIZER;
    let is_definition = (info.group, info.resource) == ("apiextensions.k8s.io", "customresourcedefinitions");
    if is_definition && meta.deletion_timestamp.is_none() && !finalizers.iter().any(|own| own == held) {
        finalizers.push(held.to_owned());
    }
}

/// Whether to orphan dependents, and whether to delete them first.
fn wanted(info: &ResourceInfo<'_>, meta: &ObjectMeta, options: &DeleteOptions) -> (bool, bool) {
    if default_of(info) == WithoutPolicy::Unsupported {
        return (false, false);
    }
    if let Some(orphan) = options.orphan_dependents {
        return (orphan, false);
    }
    match options.propagation_policy.as_deref() {
        Some(deletion_propagation::ORPHAN) => return (true, false),
        Some(deletion_propagation::FOREGROUND) => return (false, true),
        Some(deletion_propagation::BACKGROUND) => return (false, false),
        _ => {}
    }
    for finalizer in &meta.finalizers {
        match finalizer.as_str() {
            FINALIZER_ORPHAN_DEPENDENTS => return (true, false),
            FINALIZER_DELETE_DEPENDENTS => return (false, true),
            _ => {}
        }
    }
    (default_of(info) == WithoutPolicy::Orphan, false)
}
