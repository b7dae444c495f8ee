//! PodStatusResult.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::PodStatus;

/// A pod status as read from a kubelet.
#[api(kind = "PodStatusResult")]
pub struct PodStatusResult {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The reported status of the pod.
    #[field(2)]
    pub status: PodStatus,
}
