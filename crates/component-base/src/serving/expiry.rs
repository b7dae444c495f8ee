//! The time by which an answer must have been taken. A client that does not read would otherwise keep it in memory for
//! as long as it likes.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// When the client must have taken the answer; in the extensions of a response. What is left then is cut off.
#[derive(Clone)]
pub struct TakenBy {
    at: Instant,
    told: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl TakenBy {
    /// By this moment.
    #[must_use]
    pub fn new(at: Instant) -> Self {
        Self { at, told: None }
    }

    /// Has `told` called once if the answer is cut off. What a connection of HTTP/1.1 has in its buffers is not followed.
    pub fn tell(&mut self, told: impl Fn() + Send + Sync + 'static) {
        self.told = Some(Arc::new(told));
    }

    /// Says that what is left is cut off.
    pub fn cut(self) {
        if let Some(told) = self.told {
            told();
        }
    }
}

tokio::task_local! {
    /// The end of the HTTP/2 stream that the running task serves.
    static STREAM: Arc<Expiry>;
}

/// An end that is set, or not, while something goes on.
#[derive(Default)]
pub(super) struct Expiry {
    end: Mutex<Option<TakenBy>>,
    set: Notify,
}

impl Expiry {
    pub(super) fn set(&self, taken_by: TakenBy) {
        *self.end.lock() = Some(taken_by);
        self.set.notify_one();
    }

    pub(super) fn clear(&self) {
        *self.end.lock() = None;
    }

    pub(super) fn has_passed(&self) -> bool {
        self.end.lock().as_ref().is_some_and(|end| end.at <= Instant::now())
    }

    /// Says that what is left is cut off.
    pub(super) fn cut(&self) {
        let end = self.end.lock().take();
        if let Some(end) = end {
            end.cut();
        }
        tracing::debug!("An answer was not taken in time");
    }

    async fn passed(&self) {
        loop {
            self.set.notified().await;
            let at = self.end.lock().as_ref().map(|end| end.at);
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
            () = ends.passed() => ends.cut(),
        }
    };
    STREAM.scope(expiry, running).await;
}

/// Sets the end of the stream that the running task serves; it does nothing elsewhere.
pub(super) fn set_for_stream(taken_by: TakenBy) {
    // There is no stream on a connection of HTTP/1.1.
    let _ = STREAM.try_with(|expiry| expiry.set(taken_by));
}
