//! NodeMetrics.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::{GoDuration, Time};

use crate::core_v1::ResourceList;

/// What a node used on average over a window of time.
#[api(kind = "NodeMetrics", resource = "nodes")]
pub struct NodeMetrics {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The end of the window.
    #[field(2, always, required)]
    pub timestamp: Time,
    /// How long the window is.
    #[field(3, always, required)]
    pub window: GoDuration,
    /// What was used of each resource.
    #[field(4, always, required)]
    pub usage: ResourceList,
}
