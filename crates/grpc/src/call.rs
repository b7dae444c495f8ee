//! Calls that wait for their server.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use tonic::{ConnectError, Response, Status};

/// Between two looks whether the server is there.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(100);

/// Makes a call, and waits for the server where nobody listens yet or any more (gRPC's "wait for ready"): both together
/// within `limit`. Nothing is asked twice that was sent.
///
/// # Errors
/// What the server answered, or that it was too late, in grpc-go's words.
pub async fn wait_for_ready<T, F>(limit: Duration, attempt: impl Fn() -> F) -> Result<Response<T>, Status>
where
    F: Future<Output = Result<Response<T>, Status>>,
{
    let mut unreachable = None;
    let waiting = async {
        loop {
            match attempt().await {
                Err(status) if connect_failure(&status).is_some() => unreachable = Some(status.message().to_owned()),
                answer => return answer,
            }
            tokio::time::sleep(RECONNECT_INTERVAL).await;
        }
    };
    tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| {
        Err(Status::deadline_exceeded(match unreachable {
            None => "context deadline exceeded".to_owned(),
            Some(why) => format!("latest balancer error: connection error: desc = {why:?}"),
        }))
    })
}

/// Why nothing was sent, where there was nobody to send it to: the last cause that is known.
#[must_use]
pub fn connect_failure(status: &Status) -> Option<&(dyn Error + 'static)> {
    let causes = || std::iter::successors(status.source(), |&error| error.source());
    causes().any(|error| error.is::<ConnectError>()).then(|| causes().last()).flatten()
}
