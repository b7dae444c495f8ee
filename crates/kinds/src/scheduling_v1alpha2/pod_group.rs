//! PodGroup of scheduling.k8s.io/v1alpha2: its names, and its rules.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::meta::Condition;
use api_machinery::names;
use api_machinery::reflect::{Field, equal};
use api_types::scheduling_v1alpha2::{PodGroup, PodGroupTemplateReference};
use feature_gates::MinorVersion;

use super::group_validation::{CLAIMS_MAX, Group, one_member, unique};
use crate::gated::Gated;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use crate::strategy::Strategy;
use crate::table::{Cell, or_none};
use crate::{conditions, field_rules as rules, gates};

static INFO: ResourceInfo<'static> = ResourceInfo {
    storage: Some(StorageInfo::of::<PodGroup>("podgroups", "YYgX3v5V204=")),
    unconditional_update: true,
    subresources: &[SubresourceInfo::status("PodGroup")],
    introduced: MinorVersion::one(36),
    gates: &[gates::GENERIC_WORKLOAD],
    ..ResourceInfo::of::<PodGroup>()
};

/// The rules of the kind.
pub(crate) struct PodGroupRules;

impl TypedRules for PodGroupRules {
    type Object = PodGroup;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<PodGroup>] = &[
        Cell::NAME,
        Cell::text("Policy", |group, _| policy(group).into()),
        Cell::text("Workload", |group, _| or_none(workload(group)).into()),
        Cell::text("Status", |group, _| state(group).into()),
        Cell::AGE,
    ];
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update];
    const STRATEGY: Strategy = Strategy::Status;
    const STATUS_KEEPS_METADATA: bool = true;
    const GATED: &'static [Gated<PodGroup>] = &[
        Gated {
            features: &[gates::TOPOLOGY_AWARE_GROUPS],
            used: |group| group.spec.scheduling_constraints.is_some(),
            drop: |group| group.spec.scheduling_constraints = None,
        },
        Gated {
            features: &[gates::GROUP_CLAIMS],
            used: |group| !group.spec.resource_claims.is_empty(),
            drop: |group| {
                group.spec.resource_claims.clear();
                group.status.resource_claim_statuses.clear();
            },
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |group| group.spec.disruption_mode.is_some(),
            drop: |group| group.spec.disruption_mode = None,
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |group| !group.spec.priority_class_name.is_empty(),
            drop: |group| group.spec.priority_class_name.clear(),
        },
        Gated {
            features: &[gates::GROUP_PREEMPTION],
            used: |group| group.spec.priority.is_some(),
            drop: |group| group.spec.priority = None,
        },
    ];

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_subdomain(name, prefix)
    }

    fn validate(cx: &RuleContext, object: &PodGroup) -> ErrorList {
        let (mut errors, path) = (ErrorList::new(), Path::new("spec"));
        if let Some(reference) = &object.spec.pod_group_template_ref {
            validate_reference(&path.child("podGroupTemplateRef"), reference, &mut errors);
        }
        Group::from(&object.spec).validate(&path, &cx.gates, true, &mut errors);
        errors
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &PodGroup, old: &PodGroup) -> ErrorList {
        let mut errors = ErrorList::new();
        if endpoint == Endpoint::Status {
            validate_status(object, &mut errors);
        } else {
            validate_change(cx, object, old, &mut errors);
        }
        errors
    }
}

fn validate_reference(path: &Path, reference: &PodGroupTemplateReference, errors: &mut ErrorList) {
    one_member(path, &[("workload", reference.workload.is_some())], errors);
    if let Some(workload) = &reference.workload {
        let path = path.child("workload");
        rules::named(&path.child("workloadName"), &workload.workload_name, names::long_name, errors);
        let at = path.child("podGroupTemplateName");
        rules::named(&at, &workload.pod_group_template_name, names::dns1123_label, errors);
    }
}

/// Nothing of a spec changes; what came with a feature that is off may not even be there to be changed.
fn validate_change(cx: &RuleContext, object: &PodGroup, old: &PodGroup, errors: &mut ErrorList) {
    let (path, new, old) = (Path::new("spec"), &object.spec, &old.spec);
    let topology = cx.gates.enabled(gates::TOPOLOGY_AWARE_GROUPS);
    let preemption = cx.gates.enabled(gates::GROUP_PREEMPTION);
    let fields: [(&str, &dyn Field, &dyn Field, bool); 7] = [
        ("podGroupTemplateRef", &new.pod_group_template_ref, &old.pod_group_template_ref, true),
        ("schedulingPolicy", &new.scheduling_policy, &old.scheduling_policy, true),
        ("schedulingConstraints", &new.scheduling_constraints, &old.scheduling_constraints, topology),
        ("resourceClaims", &new.resource_claims, &old.resource_claims, true),
        ("disruptionMode", &new.disruption_mode, &old.disruption_mode, preemption),
        ("priorityClassName", &new.priority_class_name, &old.priority_class_name, preemption),
        ("priority", &new.priority, &old.priority, preemption),
    ];
    for (name, new, _, is_there) in fields.into_iter().filter(|(_, new, old, _)| !equal(*new, *old)) {
        let at = path.child(name.to_owned());
        if is_there {
            errors.push(at.invalid(BadValue::null(), rules::IMMUTABLE));
        } else if !new.is_unset() {
            errors.push(at.forbidden(""));
        }
    }
}

fn validate_status(object: &PodGroup, errors: &mut ErrorList) {
    let (path, status) = (Path::new("status"), &object.status);
    conditions::validate(&path.child("conditions"), &status.conditions, errors);
    let path = path.child("resourceClaimStatuses");
    let known = |name: &str| object.spec.resource_claims.iter().any(|claim| claim.name == name);
    for (index, own) in status.resource_claim_statuses.iter().enumerate().filter(|(_, own)| !known(&own.name)) {
        let detail = "must match the name of an entry in `spec.resourceClaims`";
        errors.push(path.index(index).child("name").invalid(&own.name, detail));
    }
    if status.resource_claim_statuses.len() > CLAIMS_MAX {
        return errors.push(path.too_many(status.resource_claim_statuses.len(), CLAIMS_MAX));
    }
    unique(&path, status.resource_claim_statuses.iter().map(|own| own.name.as_str()), errors);
    for (index, own) in status.resource_claim_statuses.iter().enumerate() {
        if let Some(name) = &own.resource_claim_name {
            let at = path.index(index).child("resourceClaimName");
            errors.push_invalid(&at, name, names::long_name(name));
        }
    }
}

fn policy(group: &PodGroup) -> &'static str {
    match (&group.spec.scheduling_policy.basic, &group.spec.scheduling_policy.gang) {
        (Some(_), _) => "Basic",
        (None, Some(_)) => "Gang",
        (None, None) => "<none>",
    }
}

fn workload(group: &PodGroup) -> &str {
    let workload = group.spec.pod_group_template_ref.as_ref().and_then(|reference| reference.workload.as_ref());
    workload.map(|workload| workload.workload_name.as_str()).unwrap_or_default()
}

fn state(group: &PodGroup) -> String {
    let find = |name: &str| group.status.conditions.iter().find(|own: &&Condition| own.type_ == name);
    if let Some(disrupted) = find("DisruptionTarget").filter(|own| own.status == "True") {
        return disrupted.reason.clone();
    }
    match find("PodGroupScheduled") {
        Some(own) if own.status == "True" => "Scheduled".to_owned(),
        Some(_) => "Unschedulable".to_owned(),
        None => "Pending".to_owned(),
    }
}
