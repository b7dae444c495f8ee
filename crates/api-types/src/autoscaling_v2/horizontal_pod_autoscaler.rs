//! HorizontalPodAutoscaler and what it is made of, but for metrics.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

use super::{MetricSpec, MetricStatus};

/// Keeps the replicas of a workload where its metrics want them.
#[api(kind = "HorizontalPodAutoscaler", resource = "horizontalpodautoscalers", namespaced)]
pub struct HorizontalPodAutoscaler {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What is scaled, by what, and how far.
    #[field(2, required)]
    pub spec: HorizontalPodAutoscalerSpec,
    /// What was seen and done last.
    #[field(3)]
    pub status: HorizontalPodAutoscalerStatus,
}

/// What is scaled, by what, and how far.
#[api]
pub struct HorizontalPodAutoscalerSpec {
    /// The workload; it needs a scale.
    #[field(1, always, required)]
    pub scale_target_ref: CrossVersionObjectReference,
    /// The fewest replicas. Default 1.
    #[field(2, fill = "1")]
    pub min_replicas: Option<i32>,
    /// The most replicas.
    #[field(3, always, required)]
    pub max_replicas: i32,
    /// What decides; the metric that wants most counts. Default 80 % of the processor time asked for.
    #[field(4, atomic)]
    pub metrics: Vec<MetricSpec>,
    /// How fast it goes up and down.
    #[field(5)]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// Points to an object.
#[api]
pub struct CrossVersionObjectReference {
    /// Its kind.
    #[field(1, always, required)]
    pub kind: String,
    /// Its name.
    #[field(2, always, required)]
    pub name: String,
    /// Its group and version.
    #[field(3)]
    pub api_version: String,
}

/// How fast scaling goes in each direction.
#[api]
pub struct HorizontalPodAutoscalerBehavior {
    /// Upwards. Default: at once by 4 pods or to the double each 15 seconds, whichever is more.
    #[field(1)]
    pub scale_up: Option<HPAScalingRules>,
    /// Downwards. Default: as far as wanted, after the controller's window.
    #[field(2)]
    pub scale_down: Option<HPAScalingRules>,
}

/// How fast scaling goes in one direction.
#[api]
pub struct HPAScalingRules {
    /// How far back recommendations are looked at, in seconds, so that replicas do not flap; at most 3600.
    #[field(3)]
    pub stabilization_window_seconds: Option<i32>,
    /// Which policy counts: Max (default), Min or Disabled.
    #[field(1, go = "v2.ScalingPolicySelect")]
    pub select_policy: Option<String>,
    /// What may change in how much time.
    #[field(2, atomic)]
    pub policies: Vec<HPAScalingPolicy>,
    /// How far a metric may be from its target without effect, as a share.
    #[field(4)]
    pub tolerance: Option<Quantity>,
}

/// What may change in how much time.
#[api]
pub struct HPAScalingPolicy {
    /// Whether `value` counts Pods or Percent of them.
    #[field(1, name = "type", always, required, go = "v2.HPAScalingPolicyType")]
    pub type_: String,
    /// How many; more than 0.
    #[field(2, always, required)]
    pub value: i32,
    /// In how many seconds; from 1 to 1800.
    #[field(3, always, required)]
    pub period_seconds: i32,
}

/// What was seen and done last.
#[api]
pub struct HorizontalPodAutoscalerStatus {
    /// The generation that was acted on.
    #[field(1)]
    pub observed_generation: Option<i64>,
    /// When replicas were changed last.
    #[field(2)]
    pub last_scale_time: Option<Time>,
    /// How many replicas there were.
    #[field(3)]
    pub current_replicas: i32,
    /// How many there should be.
    #[field(4, always, required)]
    pub desired_replicas: i32,
    /// What the metrics were.
    #[field(5, always, atomic)]
    pub current_metrics: Vec<MetricStatus>,
    /// Whether scaling works, and what limits it.
    #[field(6, keys("type"), merge_key = "type", merge)]
    pub conditions: Vec<HorizontalPodAutoscalerCondition>,
}

/// One aspect of an autoscaler.
#[api]
pub struct HorizontalPodAutoscalerCondition {
    /// ScalingActive, AbleToScale or ScalingLimited.
    #[field(1, name = "type", always, required, go = "v2.HorizontalPodAutoscalerConditionType")]
    pub type_: String,
    /// True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// Since when.
    #[field(3)]
    pub last_transition_time: Time,
    /// Why, in a word.
    #[field(4)]
    pub reason: String,
    /// Why, in words.
    #[field(5)]
    pub message: String,
}
