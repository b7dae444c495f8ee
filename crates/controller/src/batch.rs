//! Slow start: many equal calls in batches that double, so that what always fails fails once and not a thousand times.

use std::future::Future;

use futures_util::future::join_all;

/// How the calls went.
#[derive(Debug)]
pub struct Batched<E> {
    /// How many succeeded.
    pub done: usize,
    /// How many were not tried after a failure.
    pub skipped: usize,
    /// What failed.
    pub errors: Vec<E>,
}

/// Calls `call` for `0..count`: first once, then twice as many each time, stopping after a batch with a failure.
pub async fn in_batches<E, F>(count: usize, mut call: impl FnMut(usize) -> F) -> Batched<E>
where
    F: Future<Output = Result<(), E>>,
{
    let mut outcome = Batched { done: 0, skipped: 0, errors: Vec::new() };
    let (mut next, mut size) = (0, 1);
    while next < count {
        let end = count.min(next + size);
        for result in join_all((next..end).map(&mut call)).await {
            match result {
                Ok(()) => outcome.done += 1,
                Err(error) => outcome.errors.push(error),
            }
        }
        next = end;
        if !outcome.errors.is_empty() {
            break;
        }
        size *= 2;
    }
    outcome.skipped = count - next;
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_ends_the_batches() {
        let all = in_batches(10, |_| async { Ok::<_, ()>(()) }).await;
        assert_eq!((all.done, all.skipped, all.errors.len()), (10, 0, 0));
        let some = in_batches(10, |index| async move { if index == 2 { Err(index) } else { Ok(()) } }).await;
        assert_eq!((some.done, some.skipped, some.errors.as_slice()), (2, 7, [2].as_slice()));
    }
}
