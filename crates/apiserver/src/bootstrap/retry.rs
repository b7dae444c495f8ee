//! Start-up work that is tried again: for a while, as the store may need a moment, or for as long as the server runs.

use std::time::Duration;

use client::ClientError;
use tokio::sync::Notify;

use crate::hooks::{HookError, TryError};

/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// The least time between two rounds of work that somebody asks for.
const TOLD_PAUSE: Duration = Duration::from_secs(1);
/// How long work is tried; then the server ends.
const LIMIT: Duration = Duration::from_secs(30);
/// How long one try may take.
const TRY_LIMIT: Duration = Duration::from_secs(10);

/// Tries until it works.
///
/// # Errors
/// The last error, behind `what`, once time is up.
pub(super) async fn until_done<F, A>(what: &'static str, work: F) -> Result<(), HookError>
where
    F: Fn() -> A,
    A: Future<Output = Result<(), ClientError>>,
{
    let started = tokio::time::Instant::now();
    loop {
        let error = match tokio::time::timeout(TRY_LIMIT, work()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => TryError::Client(error),
            Err(_) => TryError::TimedOut,
        };
        if started.elapsed() >= LIMIT {
            return Err(HookError::Failing { what, source: error });
        }
        tracing::debug!(%error, "Start-up work failed; it will be tried again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Works for as long as the server runs: after `period` again, sooner after a failure.
pub(super) async fn repeat<F, A, E>(what: &str, period: Duration, after_failure: Duration, work: F)
where
    F: Fn() -> A,
    A: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    repeat_when_told(what, period, after_failure, &Notify::new(), work).await;
}

/// The same, and also as soon as it is told to, unless it has just failed.
pub(super) async fn repeat_when_told<F, A, E>(
    what: &str,
    period: Duration,
    after_failure: Duration,
    told: &Notify,
    work: F,
) where
    F: Fn() -> A,
    A: Future<Output = Result<(), E>>,
    E: std::fmt::Display,
{
    loop {
        if let Err(error) = work().await {
            tracing::warn!(%error, "{what} failed");
            tokio::time::sleep(after_failure).await;
            continue;
        }
        // Who goes back and forth with another server does so within bounds.
        tokio::time::sleep(TOLD_PAUSE).await;
        // Not being told is the usual way.
        let _ = tokio::time::timeout(period.saturating_sub(TOLD_PAUSE), told.notified()).await;
    }
}
