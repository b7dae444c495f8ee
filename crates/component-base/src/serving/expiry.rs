//! The time by which an answer must have been taken. A client that does not read would otherwise keep it in memory for
//! as long as it likes.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// When the client must have taken the answer; in the extensions of a response. What is left then is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenBy(pub Instant);

tokio::task_local! {
    /// The end of the HTTP/2 stream that the running task serves.
    static STREAM: Arc<Expiry>;
}

/// An end that is set, or not, while something goes on.
#[derive(Debug, Default)]
pub(super) struct Expiry {
    at: Mutex<Option<Instant>>,
    set: Notify,
}

impl Expiry {
    pub(super) fn set(&self, TakenBy(at): TakenBy) {
        *self.at.lock() = Some(at);
        self.set.notify_one();
    }

    pub(super) fn clear(&self) {
        *self.at.lock() = None;
    }

    pub(super) fn has_passed(&self) -> bool {
        self.at.lock().is_some_and(|at| at <= Instant::now())
    }

    async fn passed(&self) {
        loop {
            self.set.notified().await;
            let at = *self.at.lock();
            if let Some(at) = at {
                return sleep_until(at).await;
            }
        }
    }
}

/// Runs what serves one HTTP/2 stream until its end, if it gets one; dropping it then resets the stream.
pub(super) async fn bounded(stream: impl Future<Output = ()>) {
    let expiry = Arc::<Expiry>::default();
    let ends = Arc::clone(&expiry);
    let running = async {
        tokio::select! {
            biased;
            () = stream => {}
            () = ends.passed() => tracing::debug!("An answer was not taken in time"),
        }
    };
    STREAM.scope(expiry, running).await;
}

/// Sets the end of the stream that the running task serves; it does nothing elsewhere.
pub(super) fn set_for_stream(taken_by: TakenBy) {
    // There is no stream on a connection of HTTP/1.1.
    let _ = STREAM.try_with(|expiry| expiry.set(taken_by));
}
