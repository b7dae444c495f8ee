//! Many requests, so many on the way at a time.

use std::ops::Range;

use anyhow::Result;
use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::sample::Stopwatch;

/// Does `operation` for every number, `parallel` at a time, and returns the real time that one of them took of the
/// whole, in microseconds.
pub(super) async fn microseconds_each<F>(
    numbers: Range<usize>,
    parallel: usize,
    operation: impl Fn(usize) -> F,
) -> Result<f64>
where
    F: Future<Output = Result<()>>,
{
    let count = numbers.len().max(1);
    let watch = Stopwatch::start();
    futures_util::stream::iter(numbers)
        .map(operation)
        .buffer_unordered(parallel)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let each = watch.elapsed_ms() * 1e3 / count as f64;
    Ok(each)
}
