//! What a group of pods may ask for, in a group and in the template of one.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::scheduling_v1alpha2::constants::disruption_mode;
use api_types::scheduling_v1alpha2::{
    PodGroupResourceClaim, PodGroupSchedulingConstraints, PodGroupSchedulingPolicy, PodGroupSpec, PodGroupTemplate,
};
use feature_gates::Gates;

use crate::{field_rules as rules, gates};

/// Most claims of a group.
pub(super) const CLAIMS_MAX: usize = 4;
const DOMAINS_MAX: usize = 1;
const PRIORITY_MAX: i32 = 1_000_000_000;

/// What a group and a template of one have in common.
pub(super) struct Group<'a> {
    pub(super) policy: &'a PodGroupSchedulingPolicy,
    constraints: Option<&'a PodGroupSchedulingConstraints>,
    claims: &'a [PodGroupResourceClaim],
    disruption: Option<&'a String>,
    class: &'a str,
    priority: Option<i32>,
}

impl<'a> From<&'a PodGroupSpec> for Group<'a> {
    fn from(own: &'a PodGroupSpec) -> Self {
        Self {
            policy: &own.scheduling_policy,
            constraints: own.scheduling_constraints.as_ref(),
            claims: &own.resource_claims,
            disruption: own.disruption_mode.as_ref(),
            class: &own.priority_class_name,
            priority: own.priority,
        }
    }
}

impl<'a> From<&'a PodGroupTemplate> for Group<'a> {
    fn from(own: &'a PodGroupTemplate) -> Self {
        Self {
            policy: &own.scheduling_policy,
            constraints: own.scheduling_constraints.as_ref(),
            claims: &own.resource_claims,
            disruption: own.disruption_mode.as_ref(),
            class: &own.priority_class_name,
            priority: own.priority,
        }
    }
}

impl Group<'_> {
    /// Checks what is asked for; `needs_disruption` where the mode has a default.
    pub(super) fn validate(&self, path: &Path, gates: &Gates, needs_disruption: bool, errors: &mut ErrorList) {
        validate_policy(&path.child("schedulingPolicy"), self.policy, errors);
        if let Some(constraints) = self.constraints {
            let at = path.child("schedulingConstraints");
            if gates.enabled(gates::TOPOLOGY_AWARE_GROUPS) {
                validate_constraints(&at.child("topology"), constraints, errors);
            } else {
                errors.push(at.forbidden(""));
            }
        }
        validate_claims(&path.child("resourceClaims"), self.claims, errors);
        if gates.enabled(gates::GROUP_PREEMPTION) {
            self.validate_priority(path, needs_disruption, errors);
        } else {
            self.refuse_priority(path, errors);
        }
    }

    fn validate_priority(&self, path: &Path, needs_disruption: bool, errors: &mut ErrorList) {
        let at = path.child("disruptionMode");
        match self.disruption {
            Some(mode) => rules::one_of(&at, mode, disruption_mode::ALL, errors),
            None if needs_disruption => errors.push(at.required("")),
            None => {}
        }
        rules::named_if_set(&path.child("priorityClassName"), self.class, names::long_name, errors);
        if let Some(priority) = self.priority.filter(|priority| *priority > PRIORITY_MAX) {
            let detail = format!("must be less than or equal to {PRIORITY_MAX}");
            errors.push(path.child("priority").invalid(priority, detail));
        }
    }

    fn refuse_priority(&self, path: &Path, errors: &mut ErrorList) {
        for (name, is_set) in [
            ("disruptionMode", self.disruption.is_some()),
            ("priorityClassName", !self.class.is_empty()),
            ("priority", self.priority.is_some()),
        ] {
            if is_set {
                errors.push(path.child(name).forbidden(""));
            }
        }
    }
}

/// One of several members, and no more than one.
pub(super) fn one_member(path: &Path, members: &[(&str, bool)], errors: &mut ErrorList) {
    let listed = |all: &[&str]| all.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let all: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let set: Vec<&str> = members.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| *name).collect();
    match set.len() {
        0 => errors.push(path.invalid("", format!("must specify one of: {}", listed(&all)))),
        1 => {}
        _ => {
            let value = format!("{{{}}}", set.join(", "));
            errors.push(path.invalid(value, format!("must specify exactly one of: {}", listed(&all))));
        }
    }
}

fn validate_policy(path: &Path, policy: &PodGroupSchedulingPolicy, errors: &mut ErrorList) {
    one_member(path, &[("basic", policy.basic.is_some()), ("gang", policy.gang.is_some())], errors);
    if let Some(gang) = &policy.gang {
        let at = path.child("gang").child("minCount");
        match gang.min_count {
            0 => errors.push(at.required("")),
            count if count < 0 => errors.push(at.invalid(count, "must be greater than or equal to 1")),
            _ => {}
        }
    }
}

fn validate_constraints(path: &Path, constraints: &PodGroupSchedulingConstraints, errors: &mut ErrorList) {
    if constraints.topology.len() > DOMAINS_MAX {
        return errors.push(path.too_many(constraints.topology.len(), DOMAINS_MAX));
    }
    for (index, own) in constraints.topology.iter().enumerate() {
        rules::named(&path.index(index).child("key"), &own.key, names::qualified_name, errors);
    }
}

fn validate_claims(path: &Path, claims: &[PodGroupResourceClaim], errors: &mut ErrorList) {
    if claims.len() > CLAIMS_MAX {
        return errors.push(path.too_many(claims.len(), CLAIMS_MAX));
    }
    unique(path, claims.iter().map(|claim| claim.name.as_str()), errors);
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        rules::named(&path.child("name"), &claim.name, names::dns1123_label, errors);
        let sources = [
            ("resourceClaimName", &claim.resource_claim_name),
            ("resourceClaimTemplateName", &claim.resource_claim_template_name),
        ];
        one_member(&path, &sources.map(|(name, source)| (name, source.is_some())), errors);
        for (name, source) in sources {
            if let Some(source) = source {
                errors.push_invalid(&path.child(name), source, names::long_name(source));
            }
        }
    }
}

/// Reports the later ones of items with the same name.
pub(super) fn unique<'a>(path: &Path, names: impl Iterator<Item = &'a str>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let value = BadValue::json(format!("{{\"name\":{}}}", serde_json::Value::from(name)));
            errors.push(path.index(index).duplicate(value));
        }
    }
}
