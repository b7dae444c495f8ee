//! Bringing a stored role or binding up to its default: add what is missing, keep what is extra, leave alone what says
//! `autoupdate: "false"`.

use std::collections::BTreeMap;

use api_machinery::meta::ObjectMeta;
use api_types::rbac_v1::{ClusterRole, PolicyRule, Role, RoleRef, Subject};

use crate::rbac::covers;

const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// What to do with a binding.
#[derive(Debug, Clone, PartialEq)]
pub enum BindingPlan {
    /// It is as it should be, or is not ours to change.
    Keep,
    /// These are its metadata and subjects from now on.
    Update(Box<ObjectMeta>, Vec<Subject>),
    /// It refers to another role, which cannot be changed: delete and create.
    Replace,
}

/// The cluster role as it should be stored; nothing where it is so already.
#[must_use]
pub fn reconcile_cluster_role(stored: &ClusterRole, wanted: &ClusterRole) -> Option<ClusterRole> {
    let metadata = merged(&stored.metadata, &wanted.metadata)?;
    let mut next = ClusterRole { metadata, ..stored.clone() };
    match (&wanted.aggregation_rule, &mut next.aggregation_rule) {
        (None, own) => *own = None,
        (Some(rule), None) => next.aggregation_rule = Some(rule.clone()),
        (Some(rule), Some(own)) => {
            for selector in &rule.cluster_role_selectors {
                if !own.cluster_role_selectors.contains(selector) {
                    own.cluster_role_selectors.push(selector.clone());
                }
            }
        }
    }
    // The rules of an aggregated role are another controller's to fill.
    if next.aggregation_rule.is_none() {
        add_missing(&mut next.rules, &wanted.rules);
    }
    (next != *stored).then_some(next)
}

/// The role as it should be stored; nothing where it is so already.
#[must_use]
pub fn reconcile_role(stored: &Role, wanted: &Role) -> Option<Role> {
    let metadata = merged(&stored.metadata, &wanted.metadata)?;
    let mut next = Role { metadata, rules: stored.rules.clone() };
    add_missing(&mut next.rules, &wanted.rules);
    (next != *stored).then_some(next)
}

/// What to do with a stored binding, given the default one.
#[must_use]
pub fn reconcile_binding(
    stored: (&ObjectMeta, &RoleRef, &[Subject]),
    wanted: (&ObjectMeta, &RoleRef, &[Subject]),
) -> BindingPlan {
    let Some(metadata) = merged(stored.0, wanted.0) else { return BindingPlan::Keep };
    if stored.1 != wanted.1 {
        return BindingPlan::Replace;
    }
    let mut subjects = stored.2.to_vec();
    subjects.extend(wanted.2.iter().filter(|subject| !stored.2.contains(subject)).cloned());
    if metadata == *stored.0 && subjects.len() == stored.2.len() {
        BindingPlan::Keep
    } else {
        BindingPlan::Update(Box::new(metadata), subjects)
    }
}

/// The metadata with the default's labels and annotations added; nothing where the object is not ours to change.
fn merged(stored: &ObjectMeta, wanted: &ObjectMeta) -> Option<ObjectMeta> {
    if stored.annotations.get(AUTOUPDATE).is_some_and(|value| value == "false") {
        return None;
    }
    let mut next = stored.clone();
    add_absent(&mut next.labels, &wanted.labels);
    add_absent(&mut next.annotations, &wanted.annotations);
    Some(next)
}

fn add_absent(own: &mut BTreeMap<String, String>, wanted: &BTreeMap<String, String>) {
    for (key, value) in wanted {
        own.entry(key.clone()).or_insert_with(|| value.clone());
    }
}

fn add_missing(own: &mut Vec<PolicyRule>, wanted: &[PolicyRule]) {
    own.extend(covers(own, wanted));
}
