//! Validation of stateful sets.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::apps_v1::constants::persistent_volume_claim_retention_policy_type;
use api_types::apps_v1::{StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy};
use api_types::core_v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};
use component_helpers::selectors::selector_of;
use feature_gates::Gates;

use crate::claim_spec;
use crate::field_rules as rules;
use crate::internal_json;
use crate::pod_spec::validation::validate_template;
use crate::workload;

const FIXED: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                     'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                     'minReadySeconds' are forbidden";

/// Checks the spec of a new set.
pub(super) fn validate_create(path: &Path, spec: &StatefulSetSpec, gates: &Gates, errors: &mut ErrorList) {
    validate_head(path, spec, errors);
    for (index, claim) in spec.volume_claim_templates.iter().enumerate() {
        let at = path.child("volumeClaimTemplates").index(index).child("spec");
        claim_spec::validate(&at, &claim.spec, None, errors);
    }
    rules::named_if_set(&path.child("serviceName"), &spec.service_name, names::dns1123_label, errors);
    validate_pods(path, spec, Template::Checked(None, gates), errors);
}

/// Checks a spec that is to replace `old`. A stored set that breaks a rule keeps its template unchecked.
pub(super) fn validate_update(
    path: &Path,
    spec: &StatefulSetSpec,
    old: &StatefulSetSpec,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    let mut stored = ErrorList::new();
    validate_create(path, old, gates, &mut stored);
    let template = if stored.is_empty() { Template::Checked(Some(&old.template), gates) } else { Template::AsStored };
    validate_head(path, spec, errors);
    validate_pods(path, spec, template, errors);

    let mut fixed = spec.clone();
    fixed.replicas = old.replicas;
    fixed.template = old.template.clone();
    fixed.update_strategy = old.update_strategy.clone();
    fixed.min_ready_seconds = old.min_ready_seconds;
    fixed.ordinals = old.ordinals.clone();
    fixed.revision_history_limit = old.revision_history_limit;
    fixed.persistent_volume_claim_retention_policy = old.persistent_volume_claim_retention_policy.clone();
    if !api_machinery::reflect::equal(&fixed, old) {
        errors.push(path.forbidden(FIXED));
    }
}

/// The rules before those of the selector and the template.
fn validate_head(path: &Path, spec: &StatefulSetSpec, errors: &mut ErrorList) {
    let at = path.child("podManagementPolicy");
    match spec.pod_management_policy.as_str() {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(at.required("")),
        other => errors.push(at.invalid(BadValue::named(other), "must be 'OrderedReady' or 'Parallel'")),
    }
    validate_strategy(&path.child("updateStrategy"), &spec.update_strategy, errors);
    if let Some(policy) = &spec.persistent_volume_claim_retention_policy {
        let path = path.child("persistentVolumeClaimRetentionPolicy");
        rules::one_of(
            &path.child("whenDeleted"),
            &policy.when_deleted,
            persistent_volume_claim_retention_policy_type::ALL,
            errors,
        );
        rules::one_of(
            &path.child("whenScaled"),
            &policy.when_scaled,
            persistent_volume_claim_retention_policy_type::ALL,
            errors,
        );
    }
    rules::not_negative(&path.child("replicas"), spec.replicas.unwrap_or(0).into(), errors);
    rules::not_negative(&path.child("minReadySeconds"), spec.min_ready_seconds.into(), errors);
    if let Some(ordinals) = &spec.ordinals {
        rules::not_negative(&path.child("ordinals").child("start"), ordinals.start.into(), errors);
    }
}

fn validate_strategy(path: &Path, strategy: &StatefulSetUpdateStrategy, errors: &mut ErrorList) {
    let at = path.child("rollingUpdate");
    match (strategy.type_.as_str(), &strategy.rolling_update) {
        ("", _) => errors.push(path.required("")),
        ("OnDelete", None) | ("RollingUpdate", None) => {}
        ("OnDelete", Some(_)) => {
            let value = internal_json::bad_value(strategy);
            errors.push(at.invalid(value, "only allowed for updateStrategy 'RollingUpdate'"));
        }
        ("RollingUpdate", Some(rolling)) => {
            rules::not_negative(&at.child("partition"), rolling.partition.unwrap_or(0).into(), errors);
            if let Some(unavailable) = &rolling.max_unavailable {
                let at = at.child("maxUnavailable");
                workload::int_or_percent(&at, unavailable, errors);
                if workload::amount(unavailable) == 0 {
                    errors.push(at.invalid(unavailable, "cannot be 0"));
                }
                workload::at_most_all(&at, unavailable, errors);
            }
        }
        _ => {
            let value = internal_json::bad_value(strategy);
            errors.push(path.invalid(value, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// What of the template is checked.
#[derive(Clone, Copy)]
enum Template<'a> {
    /// All of it; on updates against the stored one.
    Checked(Option<&'a PodTemplateSpec>, &'a Gates),
    /// The rules of pod templates are left out.
    AsStored,
}

fn validate_pods(path: &Path, spec: &StatefulSetSpec, template: Template<'_>, errors: &mut ErrorList) {
    let selector = spec.selector.as_ref();
    let at = path.child("selector");
    workload::validate_selector(&at, selector, "empty selector is invalid for statefulset", errors);
    let path = path.child("template");
    if selector_of(selector).is_err() {
        errors.push(at.invalid(workload::selector_value(selector), ""));
    } else {
        workload::validate_selects(&path, selector, &spec.template, errors);
        if let Template::Checked(old, gates) = template {
            let old = old.map(|old| as_pods_see_it(old, spec));
            errors.extend(validate_template(&path, &as_pods_see_it(&spec.template, spec), old.as_ref(), gates));
        }
        // Upstream looks at these a second time, under these paths.
        errors.extend(names::labels(&path.child("labels"), &spec.template.metadata.labels));
        errors.extend(names::annotations(&path.child("annotations"), &spec.template.metadata.annotations));
    }
    workload::validate_endless(&path, &spec.template, "StatefulSet", errors);
}

/// The template with what the controller sets on each pod: names of its own, and a volume for each claim template.
fn as_pods_see_it(template: &PodTemplateSpec, spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    template.spec.hostname.clear();
    template.spec.subdomain.clear();
    for claim in &spec.volume_claim_templates {
        let name = &claim.metadata.name;
        template.spec.volumes.retain(|volume| volume.name != *name);
        let mut volume = Volume { name: name.clone(), ..Volume::default() };
        let source = PersistentVolumeClaimVolumeSource { claim_name: name.clone(), ..Default::default() };
        volume.volume_source.persistent_volume_claim = Some(source);
        template.spec.volumes.push(volume);
    }
    template
}

/// Checks a status that is to replace `old`.
pub(super) fn validate_status(
    path: &Path,
    status: &StatefulSetStatus,
    old: &StatefulSetStatus,
    errors: &mut ErrorList,
) {
    let counters = [
        ("replicas", status.replicas.into()),
        ("readyReplicas", status.ready_replicas.into()),
        ("currentReplicas", status.current_replicas.into()),
        ("updatedReplicas", status.updated_replicas.into()),
        ("availableReplicas", status.available_replicas.into()),
        ("observedGeneration", status.observed_generation),
        ("collisionCount", status.collision_count.unwrap_or(0).into()),
    ];
    workload::not_negative(path, &counters, errors);
    let parts = [
        ("readyReplicas", status.ready_replicas),
        ("currentReplicas", status.current_replicas),
        ("updatedReplicas", status.updated_replicas),
        ("availableReplicas", status.available_replicas),
    ];
    workload::parts_of(path, status.replicas, &parts, errors);
    let ready = (status.available_replicas, status.ready_replicas);
    workload::available_are_ready(path, ready, "status.readyReplicas", errors);
    workload::not_decremented(path, status.collision_count, old.collision_count, errors);
}
