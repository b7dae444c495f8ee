//! Affinity and what it is made of.

use api_machinery::api;
use api_machinery::meta::LabelSelector;

use super::constants::{
    node_inclusion_policy, node_selector_operator, taint_effect, toleration_operator, unsatisfiable_constraint_action,
};

/// Scheduling rules of a pod.
#[api]
pub struct Affinity {
    /// Rules about the nodes to use.
    #[field(1)]
    pub node_affinity: Option<NodeAffinity>,
    /// Rules to place the pod near certain other pods.
    #[field(2)]
    pub pod_affinity: Option<PodAffinity>,
    /// Rules to keep the pod away from certain other pods.
    #[field(3)]
    pub pod_anti_affinity: Option<PodAntiAffinity>,
}

/// Rules about the nodes a pod may use.
#[api]
pub struct NodeAffinity {
    /// Node requirements that must hold to schedule the pod.
    #[field(1)]
    pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    /// Weighted node preferences that the scheduler tries to satisfy.
    #[field(2)]
    pub preferred_during_scheduling_ignored_during_execution: Vec<PreferredSchedulingTerm>,
}

/// Selects nodes; matches when any of its terms matches.
#[api(atomic)]
pub struct NodeSelector {
    /// Terms of which at least one must match.
    #[field(1, always, required)]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements that must all hold; an empty term matches nothing.
#[api(atomic)]
pub struct NodeSelectorTerm {
    /// Requirements on node labels.
    #[field(1)]
    pub match_expressions: Vec<NodeSelectorRequirement>,
    /// Requirements on node fields.
    #[field(2)]
    pub match_fields: Vec<NodeSelectorRequirement>,
}

/// Compares one node label or field with values.
#[api]
pub struct NodeSelectorRequirement {
    /// Label key or field that is compared.
    #[field(1, always, required)]
    pub key: String,
    /// Comparison: In, NotIn, Exists, DoesNotExist, Gt or Lt.
    #[field(2, always, required, go = "v1.NodeSelectorOperator", values = node_selector_operator::ALL)]
    pub operator: String,
    /// Values to compare; none for Exists, one integer for Gt and Lt.
    #[field(3)]
    pub values: Vec<String>,
}

/// A node preference with a weight.
#[api]
pub struct PreferredSchedulingTerm {
    /// Weight of the preference, 1 to 100.
    #[field(1, always, required)]
    pub weight: i32,
    /// Node term that the weight applies to.
    #[field(2, always, required)]
    pub preference: NodeSelectorTerm,
}

/// Rules to place a pod in the same topology as others.
#[api]
pub struct PodAffinity {
    /// Terms that must all hold to schedule the pod.
    #[field(1)]
    pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
    /// Weighted terms that the scheduler tries to satisfy.
    #[field(2)]
    pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
}

/// Selects pods and the topology they are compared in.
#[api]
pub struct PodAffinityTerm {
    /// Pods to compare with; unset matches no pods.
    #[field(1)]
    pub label_selector: Option<LabelSelector>,
    /// Namespaces to search; with no selector, empty means the pod's own.
    #[field(2)]
    pub namespaces: Vec<String>,
    /// Node label whose equal value means the same place; required.
    #[field(3, always, required)]
    pub topology_key: String,
    /// Selects namespaces to search; empty selector means all of them.
    #[field(4)]
    pub namespace_selector: Option<LabelSelector>,
    /// Keys whose values from the new pod must equal the others'.
    #[field(5)]
    pub match_label_keys: Vec<String>,
    /// Keys whose values from the new pod must differ from the others'.
    #[field(6)]
    pub mismatch_label_keys: Vec<String>,
}

/// A pod affinity term with a weight.
#[api]
pub struct WeightedPodAffinityTerm {
    /// Weight of the term, 1 to 100.
    #[field(1, always, required)]
    pub weight: i32,
    /// The term that the weight applies to.
    #[field(2, always, required)]
    pub pod_affinity_term: PodAffinityTerm,
}

/// Rules to keep a pod out of other pods' topology.
#[api]
pub struct PodAntiAffinity {
    /// Terms that must all hold to schedule the pod.
    #[field(1)]
    pub required_during_scheduling_ignored_during_execution: Vec<PodAffinityTerm>,
    /// Weighted terms that the scheduler tries to satisfy.
    #[field(2)]
    pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedPodAffinityTerm>,
}

/// Lets a pod run on nodes with a matching taint.
#[api]
pub struct Toleration {
    /// Taint key to match; empty with Exists matches every key.
    #[field(1)]
    pub key: String,
    /// Comparison: Exists, Equal (default), Lt or Gt.
    #[field(2, go = "v1.TolerationOperator", values = toleration_operator::ALL)]
    pub operator: String,
    /// Taint value to match; must be empty with Exists.
    #[field(3)]
    pub value: String,
    /// Taint effect to match; empty matches all effects.
    #[field(4, go = "v1.TaintEffect", values = taint_effect::ALL)]
    pub effect: String,
    /// Seconds a NoExecute taint is tolerated; unset means forever.
    #[field(5)]
    pub toleration_seconds: Option<i64>,
}

/// Tells how matching pods spread over topology domains.
#[api]
pub struct TopologySpreadConstraint {
    /// Largest allowed difference in pod count between domains; above 0.
    #[field(1, always, required)]
    pub max_skew: i32,
    /// Node label whose values define the domains.
    #[field(2, always, required)]
    pub topology_key: String,
    /// Reaction when it cannot hold: DoNotSchedule or ScheduleAnyway.
    #[field(
        3,
        always,
        required,
        go = "v1.UnsatisfiableConstraintAction",
        values = unsatisfiable_constraint_action::ALL
    )]
    pub when_unsatisfiable: String,
    /// Pods that are counted.
    #[field(4)]
    pub label_selector: Option<LabelSelector>,
    /// Least number of eligible domains; needs DoNotSchedule; default 1.
    #[field(5)]
    pub min_domains: Option<i32>,
    /// Node affinity when counting: Honor (default) or Ignore.
    #[field(6, go = "v1.NodeInclusionPolicy", values = node_inclusion_policy::ALL)]
    pub node_affinity_policy: Option<String>,
    /// Node taints when counting: Honor or Ignore (default).
    #[field(7, go = "v1.NodeInclusionPolicy", values = node_inclusion_policy::ALL)]
    pub node_taints_policy: Option<String>,
    /// Label keys whose values on the new pod narrow the count.
    #[field(8)]
    pub match_label_keys: Vec<String>,
}

/// Label requirements on topology that must all hold.
#[api(atomic)]
pub struct TopologySelectorTerm {
    /// Requirements on topology labels.
    #[field(1)]
    pub match_label_expressions: Vec<TopologySelectorLabelRequirement>,
}

/// Requires a topology label to have one of the values.
#[api]
pub struct TopologySelectorLabelRequirement {
    /// Label key that is compared.
    #[field(1, always, required)]
    pub key: String,
    /// Allowed values, of which one must match.
    #[field(2, always, required)]
    pub values: Vec<String>,
}
