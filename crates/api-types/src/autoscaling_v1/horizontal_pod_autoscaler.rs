//! HorizontalPodAutoscaler as it was first: by processor time. What it has beyond that is in annotations.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

/// Keeps the replicas of a workload where the processor time of its pods wants them.
#[api(kind = "HorizontalPodAutoscaler", resource = "horizontalpodautoscalers", namespaced)]
pub struct HorizontalPodAutoscaler {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// What is scaled, and how far.
    #[field(2, required)]
    pub spec: HorizontalPodAutoscalerSpec,
    /// What was seen and done last.
    #[field(3)]
    pub status: HorizontalPodAutoscalerStatus,
}

/// What is scaled, and how far.
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
    /// The wanted processor time of the pods, in percent of what they ask for. Default 80 where no other metric is given.
    #[field(4, name = "targetCPUUtilizationPercentage")]
    pub target_cpu_utilization_percentage: Option<i32>,
}

/// Points to an object.
#[api(atomic)]
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
    #[field(3, always, required)]
    pub current_replicas: i32,
    /// How many there should be.
    #[field(4, always, required)]
    pub desired_replicas: i32,
    /// The processor time of the pods, in percent of what they ask for.
    #[field(5, name = "currentCPUUtilizationPercentage")]
    pub current_cpu_utilization_percentage: Option<i32>,
}
