//! Eviction.

use api_machinery::api;
use api_machinery::meta::{DeleteOptions, ObjectMeta};

/// Asks to remove a pod, subject to disruption budgets.
#[api(kind = "Eviction")]
pub struct Eviction {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Options for deleting the pod.
    #[field(2)]
    pub delete_options: Option<DeleteOptions>,
}
