//! WatchEvent.

use crate::leaf::RawJson;
use api_derive::api;

/// One event in a watch stream.
#[api(group = "", version = "v1", kind = "WatchEvent")]
pub struct WatchEvent {
    /// Kind of event: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
    #[field(1, always, required)]
    pub type_: String,
    /// The changed object, or a Status for errors.
    #[field(2, always, required)]
    pub object: RawJson,
}
