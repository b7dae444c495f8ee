//! `ApiError`: the one error of the API, free of transport; it becomes a `Status` object at the edge.
//!
//! One constructor per upstream constructor, with upstream's code, reason, message and details.
//! Concept: <https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#response-status-kind>

use std::borrow::Cow;
use std::fmt::Display;

use crate::field_path::{Cause, ErrorList};
use crate::gvk::{GroupKind, GroupResource};
use crate::quote::go_quote;

mod response;

pub use response::PlainResponse;

/// The `reason` of a status, by the names clients match on.
pub mod reason {
    /// 401.
    pub const UNAUTHORIZED: &str = "Unauthorized";
    /// 403.
    pub const FORBIDDEN: &str = "Forbidden";
    /// 404.
    pub const NOT_FOUND: &str = "NotFound";
    /// 409: the object exists.
    pub const ALREADY_EXISTS: &str = "AlreadyExists";
    /// 409: the object changed.
    pub const CONFLICT: &str = "Conflict";
    /// 410: never again.
    pub const GONE: &str = "Gone";
    /// 410: start over.
    pub const EXPIRED: &str = "Expired";
    /// 422.
    pub const INVALID: &str = "Invalid";
    /// 500: try again.
    pub const SERVER_TIMEOUT: &str = "ServerTimeout";
    /// 504.
    pub const TIMEOUT: &str = "Timeout";
    /// 429.
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
    /// 400.
    pub const BAD_REQUEST: &str = "BadRequest";
    /// 405.
    pub const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
    /// 406.
    pub const NOT_ACCEPTABLE: &str = "NotAcceptable";
    /// 413.
    pub const REQUEST_ENTITY_TOO_LARGE: &str = "RequestEntityTooLarge";
    /// 415.
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "UnsupportedMediaType";
    /// 500.
    pub const INTERNAL_ERROR: &str = "InternalError";
    /// 500: stored data cannot be read.
    pub const STORAGE_READ_ERROR: &str = "StorageReadError";
    /// 503.
    pub const SERVICE_UNAVAILABLE: &str = "ServiceUnavailable";
}

/// `reason` of the cause of an apply conflict.
pub const CAUSE_FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";
/// `reason` of the cause of a read at a revision that does not exist yet.
pub const CAUSE_RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
/// `reason` of the cause that holds a body which was no Status.
pub const CAUSE_UNEXPECTED_SERVER_RESPONSE: &str = "UnexpectedServerResponse";

/// Seconds a client waits after a `ServerTimeout` of the storage.
const SERVER_TIMEOUT_RETRY_SECONDS: i32 = 2;
/// Seconds a client waits after a clash of generated names.
const GENERATE_NAME_RETRY_SECONDS: i32 = 1;
/// Seconds a client waits for the server's cache to catch up.
const RESOURCE_VERSION_RETRY_SECONDS: i32 = 1;

/// Why the API refused or failed a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, see [`reason`]; empty for errors that have none.
    pub reason: Cow<'static, str>,
    /// Text for people.
    pub message: String,
    /// What the error is about; `None` leaves the field out, a default value prints `{}`.
    pub details: Option<Box<ErrorDetails>>,
    /// `metadata.continue`: where an expired list can go on, inconsistently.
    pub continue_token: String,
}

/// What an error is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorDetails {
    /// Name of the object, or of the operation.
    pub name: String,
    /// API group.
    pub group: String,
    /// Plural resource name; the kind for validation errors.
    pub kind: String,
    /// UID of the object.
    pub uid: String,
    /// One entry per field or conflict.
    pub causes: Vec<Cause>,
    /// After how many seconds to try again; 0 says nothing.
    pub retry_after_seconds: i32,
}

fn about(resource: &GroupResource, name: &str) -> ErrorDetails {
    ErrorDetails {
        name: name.to_owned(),
        group: resource.group.to_string(),
        kind: resource.resource.to_string(),
        ..ErrorDetails::default()
    }
}

fn retry_after(seconds: i32) -> ErrorDetails {
    ErrorDetails { retry_after_seconds: seconds, ..ErrorDetails::default() }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason: Cow::Borrowed(reason), message: message.into(), ..Self::default() }
    }

    /// The same with other details.
    #[must_use]
    pub fn with_details(mut self, details: ErrorDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The same with a delay after which the client should try again.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: i32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The same with a token for `metadata.continue`.
    #[must_use]
    pub fn with_continue(mut self, token: impl Into<String>) -> Self {
        self.continue_token = token.into();
        self
    }

    /// 404: no such object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::new(404, reason::NOT_FOUND, format!("{resource} {} not found", go_quote(name)))
            .with_details(about(resource, name))
    }

    /// 404: no such resource or path inside a served version.
    pub fn unknown_resource() -> Self {
        Self::new(404, reason::NOT_FOUND, "the server could not find the requested resource")
            .with_details(ErrorDetails::default())
    }

    /// 409: the object exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::new(409, reason::ALREADY_EXISTS, format!("{resource} {} already exists", go_quote(name)))
            .with_details(about(resource, name))
    }

    /// 409: the object exists and is being deleted.
    pub fn already_exists_terminating(resource: &GroupResource, name: &str) -> Self {
        let mut error = Self::already_exists(resource, name);
        error.message.insert_str(0, "object is being deleted: ");
        error
    }

    /// 409: no unique name was found in all attempts.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str) -> Self {
        let mut error = Self::already_exists(resource, name).with_retry_after(GENERATE_NAME_RETRY_SECONDS);
        error.message.push_str(", the server was not able to generate a unique name for the object");
        error
    }

    /// 409: the object is not as the request presumed.
    pub fn conflict(resource: &GroupResource, name: &str, cause: impl Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {cause}", go_quote(name));
        Self::new(409, reason::CONFLICT, message).with_details(about(resource, name))
    }

    /// 409: the resourceVersion of an update is stale.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let cause = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, cause)
    }

    /// 409: other field managers own applied fields.
    pub fn apply_conflict(message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self::new(409, reason::CONFLICT, message).with_details(ErrorDetails { causes, ..ErrorDetails::default() })
    }

    /// 422: fields break rules. `kind` is a kind, not a resource.
    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Self {
        let details = ErrorDetails {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes: errors.causes(),
            ..ErrorDetails::default()
        };
        let message = format!("{kind} {} is invalid: {errors}", go_quote(name));
        Self::new(422, reason::INVALID, message).with_details(details)
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, reason::BAD_REQUEST, message)
    }

    /// 401: an empty message becomes `not authorized`.
    pub fn unauthorized(message: &str) -> Self {
        Self::new(401, reason::UNAUTHORIZED, if message.is_empty() { "not authorized" } else { message })
    }

    /// 403: name and resource may be empty.
    pub fn forbidden(resource: &GroupResource, name: &str, cause: impl Display) -> Self {
        let message = match (resource.resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {cause}"),
            (false, true) => format!("{resource} is forbidden: {cause}"),
            (false, false) => format!("{resource} {} is forbidden: {cause}", go_quote(name)),
        };
        Self::new(403, reason::FORBIDDEN, message).with_details(about(resource, name))
    }

    /// 405: the resource knows no such action.
    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Self {
        let message = format!("{action} is not supported on resources of kind {}", go_quote(&resource.to_string()));
        Self::new(405, reason::METHOD_NOT_ALLOWED, message).with_details(about(resource, ""))
    }

    /// 405: the route knows no such method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, reason::METHOD_NOT_ALLOWED, message).with_details(ErrorDetails::default())
    }

    /// 406.
    pub fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, reason::NOT_ACCEPTABLE, message)
    }

    /// 410: what was asked for is gone for good.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, reason::GONE, message)
    }

    /// 410: the revision or token is too old; start over.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, reason::EXPIRED, message)
    }

    /// 413: the text follows `Request entity too large: `.
    pub fn request_entity_too_large(message: impl Display) -> Self {
        Self::new(413, reason::REQUEST_ENTITY_TOO_LARGE, format!("Request entity too large: {message}"))
    }

    /// 415.
    pub fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, reason::UNSUPPORTED_MEDIA_TYPE, message)
    }

    /// 429 with the text as given.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Self {
        Self::new(429, reason::TOO_MANY_REQUESTS, message).with_details(retry_after(retry_after_seconds))
    }

    /// 500: a failure with a cause to report.
    pub fn internal(error: impl Display) -> Self {
        let text = error.to_string();
        let message = format!("Internal error occurred: {text}");
        let causes = vec![Cause { message: text, ..Cause::default() }];
        Self::new(500, reason::INTERNAL_ERROR, message).with_details(ErrorDetails { causes, ..ErrorDetails::default() })
    }

    /// 500 without a reason: an error that has no status form.
    pub fn unclassified(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 500: the storage did not answer in time.
    pub fn server_timeout(resource: &GroupResource, operation: &str) -> Self {
        let details = ErrorDetails { retry_after_seconds: SERVER_TIMEOUT_RETRY_SECONDS, ..about(resource, operation) };
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Self::new(500, reason::SERVER_TIMEOUT, message).with_details(details)
    }

    /// 500: stored objects cannot be read; one cause per object.
    pub fn storage_read(resource: &GroupResource, name: &str, message: impl Into<String>, causes: Vec<Cause>) -> Self {
        Self::new(500, reason::STORAGE_READ_ERROR, message)
            .with_details(ErrorDetails { causes, ..about(resource, name) })
    }

    /// 503.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::new(503, reason::SERVICE_UNAVAILABLE, message)
    }

    /// 504: the text follows `Timeout: `.
    pub fn timeout(message: impl Display, retry_after_seconds: i32) -> Self {
        Self::new(504, reason::TIMEOUT, format!("Timeout: {message}")).with_details(retry_after(retry_after_seconds))
    }

    /// 504: a read at a revision that the server has not seen yet.
    pub fn resource_version_too_large(asked: u64, have: u64) -> Self {
        let mut error = Self::timeout(
            format_args!("Too large resource version: {asked}, current: {have}"),
            RESOURCE_VERSION_RETRY_SECONDS,
        );
        error.details.get_or_insert_default().causes.push(Cause {
            reason: CAUSE_RESOURCE_VERSION_TOO_LARGE.into(),
            message: "Too large resource version".into(),
            field: String::new(),
        });
        error
    }

    /// After how many seconds the client was told to try again.
    pub fn retry_after_seconds(&self) -> Option<i32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|&seconds| seconds > 0)
    }

    /// Whether a cause has this reason.
    pub fn has_cause(&self, reason: &str) -> bool {
        self.details.as_ref().is_some_and(|details| details.causes.iter().any(|cause| cause.reason == reason))
    }

    /// The reason decides; the code only where the reason is unknown.
    fn is(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (!self.has_known_reason() && self.code == code)
    }

    /// Whether the object or resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is(reason::NOT_FOUND, 404)
    }

    /// Whether the object exists already.
    pub fn is_already_exists(&self) -> bool {
        self.reason == reason::ALREADY_EXISTS
    }

    /// Whether the object changed in between.
    pub fn is_conflict(&self) -> bool {
        self.is(reason::CONFLICT, 409)
    }

    /// Whether fields break rules.
    pub fn is_invalid(&self) -> bool {
        self.is(reason::INVALID, 422)
    }

    /// Whether the revision is gone: list again.
    pub fn is_expired(&self) -> bool {
        self.reason == reason::EXPIRED || self.is(reason::GONE, 410)
    }

    /// Whether the caller may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.is(reason::FORBIDDEN, 403)
    }

    /// Whether the caller is not known.
    pub fn is_unauthorized(&self) -> bool {
        self.is(reason::UNAUTHORIZED, 401)
    }

    /// Whether the server is too busy.
    pub fn is_too_many_requests(&self) -> bool {
        self.reason == reason::TOO_MANY_REQUESTS || self.code == 429
    }

    /// Whether a time limit passed, on the way or in the storage.
    pub fn is_timeout(&self) -> bool {
        self.is(reason::TIMEOUT, 504) || self.reason == reason::SERVER_TIMEOUT
    }
}

#[cfg(test)]
mod tests;
