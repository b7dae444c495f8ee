//! Rules of the constraints that spread pods over a topology.

use std::collections::BTreeMap;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{node_inclusion_policy, unsatisfiable_constraint_action};
use api_types::core_v1::{PodSpec, TopologySpreadConstraint};
use feature_gates::shared::SPREAD_SELECTORS_BY_LABEL_KEYS;
use kinds_frame::field_rules::{self as rules, POSITIVE};
use kinds_frame::label_selector::{self, Values};

use super::Around;
use super::affinity::validate_label_keys;

pub(super) fn validate(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let constraints = &around.spec.topology_spread_constraints;
    let selectors = !around.stored(has_bad_selector);
    let as_before = !around.gates.enabled(SPREAD_SELECTORS_BY_LABEL_KEYS) || around.stored(has_odd_keys);
    let key = |own: &TopologySpreadConstraint| (own.topology_key.clone(), own.when_unsatisfiable.clone());
    let mut later: BTreeMap<_, usize> = BTreeMap::new();
    for constraint in constraints {
        *later.entry(key(constraint)).or_default() += 1;
    }
    for (index, constraint) in constraints.iter().enumerate() {
        let path = path.index(index);
        validate_constraint(constraint, &path, errors);
        validate_keys(constraint, as_before, &path, errors);
        let others = later.entry(key(constraint)).or_default();
        *others = others.saturating_sub(1);
        if *others > 0 {
            let pair = format!("{{{}, {}}}", constraint.topology_key, constraint.when_unsatisfiable);
            errors.push(path.child("{topologyKey, whenUnsatisfiable}").duplicate(pair));
        }
        if selectors && let Some(selector) = &constraint.label_selector {
            label_selector::validate(&path.child("labelSelector"), selector, Values::Checked, errors);
        }
    }
}

fn has_bad_selector(spec: &PodSpec) -> bool {
    spec.topology_spread_constraints
        .iter()
        .any(|constraint| constraint.label_selector.as_ref().is_some_and(label_selector::is_bad))
}

fn validate_constraint(constraint: &TopologySpreadConstraint, path: &Path, errors: &mut ErrorList) {
    if constraint.max_skew <= 0 {
        errors.push(path.child("maxSkew").invalid(constraint.max_skew, POSITIVE));
    }
    if constraint.topology_key.is_empty() {
        errors.push(path.child("topologyKey").required("can not be empty"));
    }
    let action = constraint.when_unsatisfiable.as_str();
    rules::one_of(&path.child("whenUnsatisfiable"), action, unsatisfiable_constraint_action::ALL, errors);
    if let Some(domains) = constraint.min_domains {
        let at = path.child("minDomains");
        if domains <= 0 {
            errors.push(at.invalid(domains, POSITIVE));
        }
        if action != "DoNotSchedule" {
            let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.push(at.invalid(BadValue::from(domains), detail));
        }
    }
    rules::one_of_if_set(
        &path.child("nodeAffinityPolicy"),
        constraint.node_affinity_policy.as_ref(),
        node_inclusion_policy::ALL,
        errors,
    );
    rules::one_of_if_set(
        &path.child("nodeTaintsPolicy"),
        constraint.node_taints_policy.as_ref(),
        node_inclusion_policy::ALL,
        errors,
    );
}

/// Keys whose values come from the pod's labels. Before the server itself put them into selectors there were other rules,
/// which a pod that was stored then keeps to.
fn validate_keys(constraint: &TopologySpreadConstraint, as_before: bool, path: &Path, errors: &mut ErrorList) {
    let (keys, selector) = (&constraint.match_label_keys, &constraint.label_selector);
    if !as_before {
        return validate_label_keys(keys, &[], selector, path, errors);
    }
    let at = path.child("matchLabelKeys");
    if selector.is_none() && !keys.is_empty() {
        errors.push(at.forbidden("must not be specified when labelSelector is not set"));
    }
    let Some(selector) = selector else { return };
    let selects = |key: &String| {
        selector.match_labels.contains_key(key) || selector.match_expressions.iter().any(|one| one.key == *key)
    };
    for (index, key) in keys.iter().enumerate() {
        errors.push_invalid(&at.index(index), key, names::qualified_name(key));
        if selects(key) {
            errors.push(at.index(index).invalid(key.as_str(), "exists in both matchLabelKeys and labelSelector"));
        }
    }
}

fn has_odd_keys(spec: &PodSpec) -> bool {
    let mut errors = ErrorList::new();
    for constraint in &spec.topology_spread_constraints {
        validate_keys(constraint, false, &Path::nil(), &mut errors);
    }
    !errors.is_empty()
}
