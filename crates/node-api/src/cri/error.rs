//! Why a runtime call failed. The text is what gRPC clients in Go print, because events and scripts carry it.

use grpc::code_name;
use tonic::Code;

/// A failed call to the runtime or image service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CriError {
    /// The runtime answered with an error, or could not be reached (`Unavailable`), or took too long
    /// (`DeadlineExceeded`).
    #[error("rpc error: code = {} desc = {message}", code_name(*.code))]
    Rpc {
        /// The call in metric spelling, such as `run_podsandbox`.
        operation: &'static str,
        /// The gRPC code.
        code: Code,
        /// The runtime's own text.
        message: String,
    },
    /// A command run by `exec_sync` did not end in time.
    #[error("command timed out: {command:?} timed out after {after}")]
    CommandTimeout {
        /// The command, joined by blanks.
        command: String,
        /// The limit it had, as Go prints durations (`10s`).
        after: String,
    },
    /// The endpoint is not something that can be dialled.
    #[error("invalid runtime endpoint {endpoint:?}: {reason}")]
    Endpoint {
        /// What was given.
        endpoint: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The runtime does not serve the API at start.
    #[error("validate CRI v1 {service} API for endpoint {endpoint:?}: {reason}")]
    Validate {
        /// `runtime` or `image`.
        service: &'static str,
        /// The endpoint.
        endpoint: String,
        /// Why.
        reason: String,
    },
    /// The Version answer names another API version or misses fields.
    #[error("{0}")]
    Version(String),
    /// The answer misses a part that the API promises.
    #[error("{operation}: the runtime's answer has no {field}")]
    Incomplete {
        /// The call.
        operation: &'static str,
        /// The missing field.
        field: &'static str,
    },
}

impl CriError {
    /// An error with a code, as a runtime would answer it.
    #[must_use]
    pub fn rpc(operation: &'static str, code: Code, message: impl Into<String>) -> Self {
        Self::Rpc { operation, code, message: message.into() }
    }

    pub(crate) fn from_status(operation: &'static str, status: &tonic::Status) -> Self {
        Self::rpc(operation, status.code(), status.message())
    }

    pub(crate) fn deadline(operation: &'static str) -> Self {
        Self::rpc(operation, Code::DeadlineExceeded, "context deadline exceeded")
    }

    /// The gRPC code; `DeadlineExceeded` for a command that took too long, `Unknown` for what never reached gRPC.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Rpc { code, .. } => *code,
            Self::CommandTimeout { .. } => Code::DeadlineExceeded,
            _ => Code::Unknown,
        }
    }

    /// The text without the gRPC prefix.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Rpc { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }

    /// Whether the sandbox, container or image does not exist (any more).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Code::NotFound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_go_clients() {
        let missing = CriError::rpc("container_status", Code::NotFound, "an error occurred");
        assert_eq!(missing.to_string(), "rpc error: code = NotFound desc = an error occurred");
        assert!(missing.is_not_found());
        let late = CriError::CommandTimeout { command: "sh -c x".into(), after: "1s".into() };
        assert_eq!(late.to_string(), "command timed out: \"sh -c x\" timed out after 1s");
        assert_eq!(late.code(), Code::DeadlineExceeded);
    }
}
