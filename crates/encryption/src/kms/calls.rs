//! Asking a plug-in: each call has a limit of its own, within which the plug-in is waited for where it is not there yet.

use std::time::Duration;

use base::SharedClock;
use grpc::{UnixSocket, code_name, wait_for_ready};
use server_api::tonic::transport::Channel;
use server_api::tonic::{Code, Response, Status};

use crate::Surroundings;
use crate::metrics::EncryptionMetrics;

/// What a plug-in, or the way to it, answered instead; in gRPC's words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("rpc error: code = {} desc = {message}", self.code_name())]
pub(crate) struct CallError {
    code: Code,
    message: String,
}

impl CallError {
    pub(crate) fn code_name(&self) -> &'static str {
        code_name(self.code)
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self { code: status.code(), message: status.message().to_owned() }
    }
}

/// The connection to one plug-in.
pub(super) struct Calls {
    /// The provider's name.
    pub(super) provider: String,
    channel: Channel,
    limit: Duration,
    clock: SharedClock,
    metrics: EncryptionMetrics,
}

impl Calls {
    /// `limit` is how long a call may take.
    pub(super) fn new(provider: String, socket: &UnixSocket, limit: Duration, around: &Surroundings) -> Self {
        let (clock, metrics) = (SharedClock::clone(&around.clock), around.metrics.clone());
        Self { provider, channel: socket.channel(), limit, clock, metrics }
    }

    /// How long a call may take.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Calls a method, by its full name.
    pub(super) async fn call<T, F>(&self, method: &str, attempt: impl Fn(Channel) -> F) -> Result<T, CallError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let began = self.clock.monotonic();
        let answer = wait_for_ready(self.limit, || attempt(self.channel.clone())).await;
        let result = answer.map(Response::into_inner).map_err(CallError::from);
        let code = result.as_ref().map_or_else(CallError::code_name, |_| code_name(Code::Ok));
        self.metrics.called(&self.provider, method, code, self.clock.monotonic() - began);
        result
    }
}
