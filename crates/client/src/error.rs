//! The one error of clients: what the server said, or why it could not say anything.

use std::time::Duration;

use api_machinery::field_path::Cause;
use api_machinery::meta::Status;
use api_machinery::status::{ApiError, CAUSE_RESOURCE_VERSION_TOO_LARGE, ErrorDetails};

use crate::transport::TransportError;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with a failure.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// No answer came.
    #[error("{method} \"{url}\": {source}")]
    Transport {
        /// The method.
        method: String,
        /// The URL.
        url: String,
        /// Why.
        source: TransportError,
    },
    /// The request took longer than it may.
    #[error("{method} \"{url}\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)")]
    Timeout {
        /// The method.
        method: String,
        /// The URL.
        url: String,
    },
    /// The answer broke off.
    #[error("unexpected error when reading response body. Please retry. Original error: {0}")]
    Body(String),
    /// The answer is not what was asked for.
    #[error("{what}: {reason}")]
    Decode {
        /// What was to be read.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request could not be made: a name is missing or impossible.
    #[error("{0}")]
    Invalid(String),
}

impl ClientError {
    /// What the server said, if it said something.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    fn is(&self, test: fn(&ApiError) -> bool) -> bool {
        self.api().is_some_and(test)
    }

    /// 404: the object or the resource does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.is(ApiError::is_not_found)
    }

    /// 409: an object of this name exists.
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.is(ApiError::is_already_exists)
    }

    /// 409: the object has changed since it was read.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.is(ApiError::is_conflict)
    }

    /// 410: the version is too old, list again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is(ApiError::is_expired)
    }

    /// 403.
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.is(ApiError::is_forbidden)
    }

    /// 401.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.is(ApiError::is_unauthorized)
    }

    /// 422.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.is(ApiError::is_invalid)
    }

    /// 429.
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.is(ApiError::is_too_many_requests)
    }

    /// Whether time ran out, on either side.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Transport { source, .. } => source.is_timeout(),
            _ => self.is(ApiError::is_timeout),
        }
    }

    /// Whether the namespace is being deleted, so that creating in it is pointless.
    #[must_use]
    pub fn is_namespace_terminating(&self) -> bool {
        self.is_forbidden() && self.api().is_some_and(|error| error.has_cause("NamespaceTerminating"))
    }

    /// Whether nobody listens at the server's address.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        matches!(self, Self::Transport { source, .. } if source.is_connection_refused())
    }

    /// Whether the version asked for is newer than the server has.
    #[must_use]
    pub fn is_resource_version_too_large(&self) -> bool {
        let Some(error) = self.api() else { return false };
        let told = "Too large resource version";
        let causes = || error.details.iter().flat_map(|details| &details.causes);
        error.has_cause(CAUSE_RESOURCE_VERSION_TOO_LARGE)
            || (error.is_timeout()
                && (error.message.contains(told) || causes().any(|cause| cause.message.contains(told))))
    }

    /// How long the server asked to wait before trying again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.api()?.retry_after_seconds()?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }
}

/// The error that a Status object stands for.
#[must_use]
pub fn error_from_status(status: Status) -> ApiError {
    let details = status.details.map(|details| {
        let causes = details.causes.into_iter();
        Box::new(ErrorDetails {
            name: details.name,
            group: details.group,
            kind: details.kind,
            uid: details.uid,
            causes: causes
                .map(|cause| Cause { reason: cause.reason, message: cause.message, field: cause.field })
                .collect(),
            retry_after_seconds: details.retry_after_seconds,
        })
    });
    ApiError {
        code: u16::try_from(status.code).unwrap_or(500),
        reason: status.reason.into(),
        message: status.message,
        details,
        continue_token: status.metadata.continue_,
    }
}

/// How often [`retry_on_conflict`] tries, as upstream's default.
const CONFLICT_TRIES: usize = 5;
/// Its delay, lengthened by up to a tenth.
const CONFLICT_DELAY: Duration = Duration::from_millis(10);

/// Runs `attempt` again while it ends in a conflict, five times in all. The attempt must read the object anew.
///
/// # Errors
/// The last error.
pub async fn retry_on_conflict<R, F>(rng: &base::Rng, mut attempt: impl FnMut() -> F) -> Result<R, ClientError>
where
    F: Future<Output = Result<R, ClientError>>,
{
    for _ in 1..CONFLICT_TRIES {
        match attempt().await {
            Err(error) if error.is_conflict() => {}
            outcome => return outcome,
        }
        tokio::time::sleep(CONFLICT_DELAY.mul_f64(1.0 + 0.1 * rng.unit())).await;
    }
    attempt().await
}
