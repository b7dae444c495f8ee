//! Scale with selectors in two forms. It had the same form in apps/v1beta2 and extensions/v1beta1.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::autoscaling_v1::ScaleSpec;

/// The replicas of a workload, wanted and present.
#[api(kind = "Scale")]
pub struct Scale {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// How many are wanted.
    #[field(2)]
    pub spec: ScaleSpec,
    /// How many there are.
    #[field(3)]
    pub status: ScaleStatus,
}

/// The replicas that there are.
#[api]
pub struct ScaleStatus {
    /// Number of pods.
    #[field(1, always, required)]
    pub replicas: i32,
    /// Labels of the pods, where labels alone select them.
    #[field(2, atomic)]
    pub selector: BTreeMap<String, String>,
    /// Selector of the pods as text.
    #[field(3)]
    pub target_selector: String,
}
