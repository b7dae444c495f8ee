//! PriorityClass.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use crate::core_v1::constants::preemption_policy;

/// Maps a name to a pod priority.
#[api(kind = "PriorityClass", resource = "priorityclasses")]
pub struct PriorityClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Priority of pods in this class; higher goes first. Immutable.
    #[field(2, always)]
    pub value: i32,
    /// Whether pods without a class use this one.
    #[field(3)]
    pub global_default: bool,
    /// Text on when to use the class.
    #[field(4)]
    pub description: String,
    /// Whether pods may evict others: PreemptLowerPriority (default) or Never. Immutable.
    #[field(5, fill = "\"PreemptLowerPriority\"", go = "v1.PreemptionPolicy", values = preemption_policy::ALL)]
    pub preemption_policy: Option<String>,
}
