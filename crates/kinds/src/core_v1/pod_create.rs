//! What the server makes of a pod's spec when the pod is created: expressions from the pod's own labels, and security
//! profiles from annotations that came before the fields.

use std::collections::BTreeMap;

use api_machinery::meta::{LabelSelector, LabelSelectorRequirement};
use api_types::core_v1::{AppArmorProfile, Pod, PodAffinityTerm, SecurityContext};
use feature_gates::Gates;

use crate::gates::{SPREAD_BY_LABEL_KEYS, SPREAD_SELECTORS_BY_LABEL_KEYS};
use crate::pod_spec::validation::{APPARMOR, apparmor_of};

/// Turns the keys of terms and constraints into expressions over the pod's labels. Keys without a label are left out.
pub(super) fn merge_label_keys(pod: &mut Pod, gates: &Gates) {
    let labels = pod.metadata.labels.clone();
    if let Some(affinity) = &mut pod.spec.affinity {
        let mut terms: Vec<&mut PodAffinityTerm> = Vec::new();
        if let Some(pods) = &mut affinity.pod_affinity {
            terms.extend(&mut pods.required_during_scheduling_ignored_during_execution);
            let preferred = &mut pods.preferred_during_scheduling_ignored_during_execution;
            terms.extend(preferred.iter_mut().map(|weighted| &mut weighted.pod_affinity_term));
        }
        if let Some(pods) = &mut affinity.pod_anti_affinity {
            terms.extend(&mut pods.required_during_scheduling_ignored_during_execution);
            let preferred = &mut pods.preferred_during_scheduling_ignored_during_execution;
            terms.extend(preferred.iter_mut().map(|weighted| &mut weighted.pod_affinity_term));
        }
        for term in terms {
            if let Some(selector) = &mut term.label_selector {
                append(selector, &labels, &term.match_label_keys, "In");
                append(selector, &labels, &term.mismatch_label_keys, "NotIn");
            }
        }
    }
    if !gates.enabled(SPREAD_BY_LABEL_KEYS) || !gates.enabled(SPREAD_SELECTORS_BY_LABEL_KEYS) {
        return;
    }
    for constraint in &mut pod.spec.topology_spread_constraints {
        if let Some(selector) = &mut constraint.label_selector {
            append(selector, &labels, &constraint.match_label_keys, "In");
        }
    }
}

fn append(selector: &mut LabelSelector, labels: &BTreeMap<String, String>, keys: &[String], operator: &str) {
    for key in keys {
        let Some(value) = labels.get(key) else { continue };
        let (key, operator, values) = (key.clone(), operator.to_owned(), vec![value.clone()]);
        selector.match_expressions.push(LabelSelectorRequirement { key, operator, values });
    }
}

/// Sets the profiles of containers that only have the older annotation, unless the pod's own profile says the same.
pub(super) fn sync_apparmor(pod: &mut Pod) {
    if pod.spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return;
    }
    let shared = pod.spec.security_context.as_ref().and_then(|context| context.app_armor_profile.clone());
    for container in pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers) {
        let Some(annotation) = pod.metadata.annotations.get(&format!("{APPARMOR}{}", container.name)) else { continue };
        let Some((type_, file)) = apparmor_of(annotation) else { continue };
        // A file that could not be a field's is left to the annotation.
        if file.is_some_and(|file| file.is_empty() || file.trim() != file) {
            continue;
        }
        let profile = AppArmorProfile { type_: type_.into(), localhost_profile: file.map(ToOwned::to_owned) };
        let has_own = container.security_context.as_ref().is_some_and(|context| context.app_armor_profile.is_some());
        if !has_own && shared.as_ref() != Some(&profile) {
            container.security_context.get_or_insert_with(SecurityContext::default).app_armor_profile = Some(profile);
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{Container, TopologySpreadConstraint};

    use super::*;

    #[test]
    fn keys_become_expressions_where_the_pod_has_the_label() {
        let mut pod = Pod::default();
        pod.metadata.labels.insert("hash".into(), "1".into());
        pod.spec.topology_spread_constraints = vec![TopologySpreadConstraint {
            label_selector: Some(LabelSelector::default()),
            match_label_keys: vec!["hash".into(), "absent".into()],
            ..TopologySpreadConstraint::default()
        }];
        merge_label_keys(&mut pod, &Gates::default());
        let selector = pod.spec.topology_spread_constraints[0].label_selector.clone().unwrap_or_default();
        let shown: Vec<_> = selector.match_expressions.iter().map(|one| (one.key.as_str(), &one.values)).collect();
        assert_eq!(shown, [("hash", &vec!["1".to_owned()])]);
    }

    #[test]
    fn annotated_profiles_become_fields() {
        let mut pod = Pod::default();
        pod.spec.containers = vec![Container { name: "c".into(), ..Container::default() }];
        pod.metadata.annotations.insert(format!("{APPARMOR}c"), "localhost/tight".into());
        sync_apparmor(&mut pod);
        let context = pod.spec.containers[0].security_context.clone().unwrap_or_default();
        let expected = AppArmorProfile { type_: "Localhost".into(), localhost_profile: Some("tight".into()) };
        assert_eq!(context.app_armor_profile, Some(expected));
        pod.spec.containers = vec![Container { name: "c".into(), ..Container::default() }];
        pod.metadata.annotations.insert(format!("{APPARMOR}c"), "localhost/".into());
        sync_apparmor(&mut pod);
        assert_eq!(pod.spec.containers[0].security_context, None);
    }
}
