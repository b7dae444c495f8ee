//! Start-up work that is tried again for a while: the store may need a moment.

use std::time::Duration;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);
/// How long work is tried; then the server ends.
const LIMIT: Duration = Duration::from_secs(30);
/// How long one try may take.
const TRY_LIMIT: Duration = Duration::from_secs(10);

/// Tries until it works.
///
/// # Errors
/// The last error, behind `what`, once time is up.
pub(super) async fn until_done<F, A>(what: &str, work: F) -> Result<(), String>
where
    F: Fn() -> A,
    A: Future<Output = Result<(), client::ClientError>>,
{
    let started = tokio::time::Instant::now();
    loop {
        let error = match tokio::time::timeout(TRY_LIMIT, work()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "timed out".to_owned(),
        };
        if started.elapsed() >= LIMIT {
            return Err(format!("{what}: {error}"));
        }
        tracing::debug!(error, "Start-up work failed; it will be tried again");
        tokio::time::sleep(PAUSE).await;
    }
}
