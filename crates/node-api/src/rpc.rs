//! Calls of plugins on the same node, each with a deadline.

use std::time::Duration;

use grpc::code_name;
use tonic::{Code, Response, Status};

/// A call that failed. The text is what gRPC clients in Go print, because events and scripts carry it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {} desc = {message}", code_name(*.code))]
pub struct RpcError {
    /// `DeadlineExceeded` where the plugin took too long, `Unavailable` where nobody listens.
    pub code: Code,
    /// The plugin's own text.
    pub message: String,
}

impl RpcError {
    /// An error with a code, as a plugin would answer it.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Whether the plugin has decided: otherwise what was asked for may still happen, or have happened.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(
            self.code,
            Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::ResourceExhausted | Code::Aborted
        )
    }
}

impl From<Status> for RpcError {
    fn from(status: Status) -> Self {
        Self::new(status.code(), status.message())
    }
}

/// Makes a call within a time.
pub(crate) async fn within<T>(
    limit: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, RpcError> {
    match tokio::time::timeout(limit, call).await {
        Ok(answer) => Ok(answer?.into_inner()),
        Err(_) => Err(RpcError::new(Code::DeadlineExceeded, "context deadline exceeded")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_is_late_and_has_not_decided() {
        let never = std::future::pending::<Result<Response<()>, Status>>();
        let late = within(Duration::from_secs(5), never).await.unwrap_err();
        assert_eq!(late.to_string(), "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
        let cases = [
            (Code::DeadlineExceeded, false),
            (Code::Aborted, false),
            (Code::Unavailable, false),
            (Code::ResourceExhausted, false),
            (Code::Cancelled, false),
            (Code::Internal, true),
            (Code::Unknown, true),
            (Code::InvalidArgument, true),
        ];
        for (code, expected) in cases {
            assert_eq!(RpcError::new(code, "").is_final(), expected, "{code:?}");
        }
    }
}
