//! The garbage collector's finalizers: who gets which on deletion, and when the last one is gone.

use api_machinery::meta::constants::{FINALIZER_DELETE_DEPENDENTS, FINALIZER_ORPHAN_DEPENDENTS, deletion_propagation};
use api_machinery::meta::{DeleteOptions, ObjectMeta};
use kinds::lifecycle::{Dependents, Lifecycle};

/// Whether an update took the last finalizer of an object that only waited for that.
pub(crate) fn last_one_gone(new: &ObjectMeta, old: &ObjectMeta) -> bool {
    new.finalizers.is_empty()
        && old.deletion_timestamp.is_some()
        && old.deletion_grace_period_seconds.unwrap_or_default() == 0
}

/// The finalizers that an object has to have once its deletion begins.
pub(crate) fn for_deletion(lifecycle: &Lifecycle, meta: &ObjectMeta, options: &DeleteOptions) -> Vec<String> {
    let collectors = [FINALIZER_ORPHAN_DEPENDENTS, FINALIZER_DELETE_DEPENDENTS];
    let (orphan, foreground) = wanted(lifecycle, meta, options);
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

/// Whether to orphan dependents, and whether to delete them first.
fn wanted(lifecycle: &Lifecycle, meta: &ObjectMeta, options: &DeleteOptions) -> (bool, bool) {
    if lifecycle.dependents == Dependents::Unsupported {
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
    (lifecycle.dependents == Dependents::Orphan, false)
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;

    #[test]
    fn an_update_removes_what_only_finalizers_held() {
        let meta = |finalizers: &[&str], marked: bool, grace: Option<i64>| ObjectMeta {
            finalizers: finalizers.iter().map(|name| (*name).to_owned()).collect(),
            deletion_timestamp: marked.then(|| Time::from_unix_seconds(1)),
            deletion_grace_period_seconds: grace,
            ..ObjectMeta::default()
        };
        for (name, left, marked, grace, goes) in [
            ("not marked", &[][..], false, None, false),
            ("without grace", &[], true, None, true),
            ("its grace is over", &[], true, Some(0), true),
            ("it ends gracefully", &[], true, Some(30), false),
            ("one second left", &[], true, Some(1), false),
            ("another holds it", &["b"], true, Some(0), false),
        ] {
            let old = meta(&["a"], marked, grace);
            let new = ObjectMeta { finalizers: meta(left, marked, grace).finalizers, ..old.clone() };
            assert_eq!(last_one_gone(&new, &old), goes, "{name}");
        }
    }

    #[test]
    fn what_is_not_said_of_dependents_the_kind_says() {
        let with = |dependents| Lifecycle { dependents, ..Lifecycle::DEFAULT };
        let options = |policy: &str| DeleteOptions {
            propagation_policy: (!policy.is_empty()).then(|| policy.to_owned()),
            ..DeleteOptions::default()
        };
        for (dependents, policy, expected) in [
            (Dependents::Orphan, "", &["orphan"][..]),
            (Dependents::Orphan, "Background", &[]),
            (Dependents::Orphan, "Foreground", &["foregroundDeletion"]),
            (Dependents::Background, "", &[]),
            (Dependents::Background, "Orphan", &["orphan"]),
            (Dependents::Unsupported, "Orphan", &[]),
        ] {
            let found = for_deletion(&with(dependents), &ObjectMeta::default(), &options(policy));
            assert_eq!(found, expected, "{dependents:?} {policy:?}");
        }
    }
}
