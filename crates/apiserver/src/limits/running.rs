//! The requests that shutdown waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts requests that are not to last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicUsize,
    closed: AtomicBool,
    ended: Notify,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Runs(Option<Arc<Shared>>);

impl Running {
    /// Lets nobody in any more.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
    }

    /// Waits until nobody is left.
    pub(crate) async fn drained(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Lets a request in, while anybody is let in.
    pub(crate) fn enter(&self) -> Option<Runs> {
        // Counted before the look, so that nobody slips in between the close and the count of the drain.
        self.0.count.fetch_add(1, Ordering::SeqCst);
        let runs = Runs(Some(Arc::clone(&self.0)));
        (!self.0.closed.load(Ordering::SeqCst)).then_some(runs)
    }
}

impl Runs {
    /// One that shutdown does not wait for.
    pub(crate) const UNCOUNTED: Self = Self(None);

    /// Whether shutdown waits for it.
    pub(crate) fn is_counted(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.count.fetch_sub(1, Ordering::SeqCst);
            shared.ended.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_drain_waits_and_refuses() {
        let running = Running::default();
        let one = running.enter().unwrap();
        running.close();
        assert!(running.enter().is_none());
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), running.drained()).await.is_err());
        drop(one);
        running.drained().await;
    }
}
