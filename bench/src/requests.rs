//! Many requests at a time.

use std::future::Future;

use anyhow::Result;
use client::ClientError;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

/// Requests under way while objects are made.
const PARALLEL: usize = 64;

/// Makes all of them; the first failure ends it.
pub(crate) async fn all<T>(requests: impl Iterator<Item = impl Future<Output = Result<T, ClientError>>>) -> Result<()> {
    stream::iter(requests).buffer_unordered(PARALLEL).try_for_each(|_| async { Ok(()) }).await?;
    Ok(())
}
