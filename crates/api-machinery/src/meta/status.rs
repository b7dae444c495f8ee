//! Status and what it is made of.

use api_derive::api;

use super::ListMeta;

/// The outcome of a request that does not return another object.
#[api(group = "", version = "v1", kind = "Status")]
pub struct Status {
    /// Standard list metadata.
    #[field(1)]
    pub metadata: ListMeta,
    /// Outcome of the operation, either Success or Failure.
    #[field(2)]
    pub status: String,
    /// Text for people that describes the outcome.
    #[field(3)]
    pub message: String,
    /// Machine-readable word for why the request failed.
    #[field(4, go = "v1.StatusReason")]
    pub reason: String,
    /// Extra data about the failure, depending on the reason.
    #[field(5)]
    pub details: Option<StatusDetails>,
    /// Suggested HTTP status code, 0 if not set.
    #[field(6)]
    pub code: i32,
}

/// Extra data about a failure.
#[api]
pub struct StatusDetails {
    /// Name of the affected object, when there is one.
    #[field(1)]
    pub name: String,
    /// API group of the affected object.
    #[field(2)]
    pub group: String,
    /// Kind or resource of the affected object.
    #[field(3)]
    pub kind: String,
    /// Unique identifier of the affected object.
    #[field(6, go = "types.UID")]
    pub uid: String,
    /// Individual problems that led to the failure.
    #[field(4)]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before trying again.
    #[field(5)]
    pub retry_after_seconds: i32,
}

/// One of the problems behind a failure.
#[api]
pub struct StatusCause {
    /// Machine-readable word for the problem.
    #[field(1, go = "v1.CauseType")]
    pub reason: String,
    /// Text for people that describes the problem.
    #[field(2)]
    pub message: String,
    /// Path of the field at fault, such as items[0].name.
    #[field(3)]
    pub field: String,
}
