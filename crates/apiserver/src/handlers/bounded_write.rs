//! The bound that writes have besides their deadline.

use std::future::Future;
use std::time::Duration;

use api_machinery::status::{ApiError, ErrorDetails};

/// How long a write may take, as upstream.
const WRITE_BOUND: Duration = Duration::from_secs(34);

/// Runs a write within the bound.
///
/// # Errors
/// 504 when it takes longer; it may still happen.
pub(super) async fn bounded<T>(write: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
    match tokio::time::timeout(WRITE_BOUND, write).await {
        Ok(outcome) => outcome,
        Err(_) => {
            let text = "request did not complete within requested timeout - context deadline exceeded";
            Err(ApiError::timeout(text, 0).with_details(ErrorDetails::default()))
        }
    }
}
