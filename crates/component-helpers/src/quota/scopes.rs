//! The scopes of a quota.

use std::collections::BTreeSet;

use api_types::core_v1::{
    PersistentVolumeClaim, Pod, PodAffinityTerm, ResourceQuotaSpec, ScopedResourceSelectorRequirement,
};

use crate::qos;

const BEST_EFFORT: &str = "BestEffort";

/// One term: an entry of `scopes` says that the scope exists.
pub(super) struct Term<'a> {
    scope: &'a str,
    operator: &'a str,
    values: &'a [String],
}

/// All terms of a quota.
pub(super) fn of(quota: &ResourceQuotaSpec) -> Vec<Term<'_>> {
    let plain = quota.scopes.iter().map(|scope| Term { scope, operator: "Exists", values: &[] });
    let selected = quota.scope_selector.iter().flat_map(|selector| &selector.match_expressions);
    plain.chain(selected.map(Term::from)).collect()
}

impl<'a> From<&'a ScopedResourceSelectorRequirement> for Term<'a> {
    fn from(own: &'a ScopedResourceSelectorRequirement) -> Self {
        Self { scope: &own.scope_name, operator: &own.operator, values: &own.values }
    }
}

impl Term<'_> {
    /// The scope that it is about.
    pub(super) fn scope(&self) -> &str {
        self.scope
    }

    /// Whether it chooses a pod.
    pub(super) fn chooses_pod(&self, pod: &Pod) -> bool {
        let terminating = pod.spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0);
        match self.scope {
            "Terminating" => terminating,
            "NotTerminating" => !terminating,
            "BestEffort" => qos::class_of(pod) == BEST_EFFORT,
            "NotBestEffort" => qos::class_of(pod) != BEST_EFFORT,
            "PriorityClass" => {
                let class = pod.spec.priority_class_name.as_str();
                self.compares(&(!class.is_empty()).then_some(class).into_iter().collect())
            }
            "CrossNamespacePodAffinity" => crosses_namespaces(pod),
            _ => false,
        }
    }

    /// Whether it chooses a claim: by any of the classes that it has, is getting or wants.
    pub(super) fn chooses_claim(&self, claim: &PersistentVolumeClaim) -> bool {
        if self.scope != "VolumeAttributesClass" {
            return false;
        }
        let current = claim.status.current_volume_attributes_class_name.as_deref();
        let target = claim.status.modify_volume_status.as_ref();
        let target = target.map(|status| status.target_volume_attributes_class_name.as_str());
        let all = [claim.spec.volume_attributes_class_name.as_deref(), current, target];
        self.compares(&all.into_iter().flatten().filter(|name| !name.is_empty()).collect())
    }

    /// Compares what the object has with the values, as a label selector would.
    fn compares(&self, found: &BTreeSet<&str>) -> bool {
        let listed = |name: &&str| self.values.iter().any(|value| value == name);
        match self.operator {
            "Exists" => !found.is_empty(),
            "DoesNotExist" => found.is_empty(),
            "In" => found.iter().any(listed),
            "NotIn" => found.is_empty() || found.iter().any(|name| !listed(name)),
            _ => false,
        }
    }
}

/// Whether the pod wants to be near, or far from, pods of other namespaces.
fn crosses_namespaces(pod: &Pod) -> bool {
    let crosses = |term: &PodAffinityTerm| !term.namespaces.is_empty() || term.namespace_selector.is_some();
    let Some(affinity) = &pod.spec.affinity else { return false };
    let near = affinity.pod_affinity.iter().any(|own| {
        let preferred = &own.preferred_during_scheduling_ignored_during_execution;
        own.required_during_scheduling_ignored_during_execution.iter().any(crosses)
            || preferred.iter().any(|weighted| crosses(&weighted.pod_affinity_term))
    });
    let far = affinity.pod_anti_affinity.iter().any(|own| {
        let preferred = &own.preferred_during_scheduling_ignored_during_execution;
        own.required_during_scheduling_ignored_during_execution.iter().any(crosses)
            || preferred.iter().any(|weighted| crosses(&weighted.pod_affinity_term))
    });
    near || far
}
