//! ControllerRevision.

use api_machinery::api;
use api_machinery::leaf::RawJson;
use api_machinery::meta::ObjectMeta;

/// An unchangeable snapshot of a workload's state, used for rollback.
#[api(kind = "ControllerRevision", resource = "controllerrevisions", namespaced)]
pub struct ControllerRevision {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The stored state in serialized form.
    #[field(2)]
    pub data: RawJson,
    /// Number that orders the revisions of one owner.
    #[field(3, always, required)]
    pub revision: i64,
}
