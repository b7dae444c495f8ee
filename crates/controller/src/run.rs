//! The workers' loop: take a key, reconcile, decide when it is due again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use base::CancellationToken;
use client::ObjectKey;
use futures_util::FutureExt as _;

use crate::build::Workers;
use crate::cx::{Controller, Cx, Next, ReconcileError, Retry};
use crate::refused::Refused;

/// What one worker needs.
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    pub(crate) cx: Cx,
    pub(crate) controller: Arc<dyn Controller>,
    drop_after: Option<u32>,
    every: Option<Duration>,
    refused: Option<Arc<Refused>>,
}

/// When a key is due again.
#[derive(Debug, PartialEq, Eq)]
enum Due {
    /// With the next change.
    OnChange,
    /// After this time.
    After(Duration),
    /// After a delay that grows.
    Backoff,
}

impl Worker {
    pub(crate) fn new(name: &'static str, workers: &Workers, cx: Cx) -> Self {
        let Workers { controller, drop_after, every, refused, .. } = workers;
        let (controller, refused) = (Arc::clone(controller), refused.clone());
        Self { name, cx, controller, drop_after: *drop_after, every: *every, refused }
    }

    /// Works until the queue is shut down, or `stop` is cancelled between two keys.
    pub(crate) async fn run(self, stop: CancellationToken) {
        loop {
            let key = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                key = self.cx.queue.next() => key,
            };
            let Some(key) = key else { return };
            self.work(&key).await;
            self.cx.queue.done(&key);
        }
    }

    async fn work(&self, key: &ObjectKey) {
        let queue = &self.cx.queue;
        let since = self.refused.as_ref().map(|refused| refused.times());
        let reconciling = AssertUnwindSafe(self.controller.reconcile(&self.cx, key)).catch_unwind();
        let outcome = reconciling.await.unwrap_or_else(|_| {
            tracing::error!(controller = self.name, %key, "Reconciliation panicked");
            Err(ReconcileError::failed("reconciliation panicked"))
        });
        if let Some((refused, since)) = self.refused.as_ref().zip(since) {
            refused.note(key, since, outcome.as_ref().err());
        }
        match self.due(key, outcome) {
            Due::OnChange => queue.forget(key),
            Due::After(delay) => {
                queue.forget(key);
                queue.add_after(key.clone(), delay);
            }
            Due::Backoff => queue.add_rate_limited(key.clone()),
        }
    }

    fn due(&self, key: &ObjectKey, outcome: Result<Next, ReconcileError>) -> Due {
        let error = match outcome {
            Ok(Next::Done) => return self.every.map_or(Due::OnChange, Due::After),
            Ok(Next::After(delay)) => return Due::After(delay),
            Ok(Next::Again) => return Due::Backoff,
            Err(error) => error,
        };
        if error.is_conflict() {
            tracing::debug!(controller = self.name, %key, %error, "Conflict, trying again");
        } else {
            tracing::warn!(controller = self.name, %key, %error, "Reconciliation failed");
        }
        // What is called on a schedule keeps it, whatever happened.
        if let Some(period) = self.every {
            return Due::After(period);
        }
        match error.retry() {
            Retry::Never => Due::OnChange,
            _ if self.drop_after.is_some_and(|limit| self.cx.queue.failures(key) >= limit) => {
                tracing::error!(controller = self.name, %key, %error, "Dropping key after too many failures");
                Due::OnChange
            }
            Retry::After(delay) => Due::After(delay),
            Retry::Backoff => Due::Backoff,
        }
    }
}
