//! Asking a plug-in: each call has a limit of its own, within which the plug-in is waited for where it is not there yet.

use std::error::Error;
use std::time::Duration;

use base::SharedClock;
use grpc::{UnixSocket, code_name};
use server_api::tonic::transport::Channel;
use server_api::tonic::{Code, ConnectError, Response, Status};

use crate::Surroundings;
use crate::metrics::EncryptionMetrics;

/// How often it is tried to connect while a call waits.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);

/// What a plug-in, or the way to it, answered instead; in gRPC's words.
#[derive(Debug, Clone, thiserror::Error)]
#[error("rpc error: code = {} desc = {message}", self.code_name())]
pub(crate) struct CallError {
    code: Code,
    message: String,
}

impl CallError {
    fn late(unreachable: Option<String>) -> Self {
        let message = match unreachable {
            None => "context deadline exceeded".to_owned(),
            Some(why) => format!("latest balancer error: connection error: desc = {why:?}"),
        };
        Self { code: Code::DeadlineExceeded, message }
    }

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
        let (began, mut unreachable) = (self.clock.monotonic(), None);
        let waiting = async {
            loop {
                match attempt(self.channel.clone()).await {
                    Err(status) if was_not_connected(&status) => unreachable = Some(status.message().to_owned()),
                    answer => return answer,
                }
                tokio::time::sleep(RECONNECT_INTERVAL).await;
            }
        };
        let result = match tokio::time::timeout(self.limit, waiting).await {
            Ok(answer) => answer.map(Response::into_inner).map_err(CallError::from),
            Err(_) => Err(CallError::late(unreachable)),
        };
        let code = result.as_ref().map_or_else(CallError::code_name, |_| code_name(Code::Ok));
        self.metrics.called(&self.provider, method, code, self.clock.monotonic() - began);
        result
    }
}

/// Whether nothing was sent, as there was nobody to send it to.
fn was_not_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}
