//! The watches that shutdown ends: at once, or one after another, so that their clients do not all come to the next server
//! at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::CancellationToken;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How many end in a second at least, as upstream.
const LEAST_RATE: f64 = 200.0;

/// Counts watches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watches(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    ending: CancellationToken,
    count: AtomicUsize,
    /// How fast they end; nothing for all at once.
    pace: Mutex<Option<Pace>>,
    ended: Notify,
}

#[derive(Debug)]
struct Pace {
    /// When the next one may end.
    next: Instant,
    interval: Duration,
    /// When all of them must have ended.
    last: Instant,
}

impl Pace {
    /// For so many watches that have so long.
    fn new(count: usize, grace: Duration, now: Instant) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = (count as f64 / grace.as_secs_f64()).max(LEAST_RATE);
        Self { next: now, interval: Duration::from_secs_f64(1.0 / rate), last: now + grace }
    }

    fn turn(&mut self) -> Instant {
        let turn = self.next.min(self.last);
        self.next = turn + self.interval;
        turn
    }
}

impl Watches {
    /// One more.
    pub(crate) fn enter(&self) -> Watched {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        Watched { shared: Arc::clone(&self.0), turn: None }
    }

    /// Whether they end: there are to be no new ones then.
    pub(crate) fn are_ending(&self) -> bool {
        self.0.ending.is_cancelled()
    }

    /// Ends them: at once where they have no time, else at a rate at which the last one ends just in time. Waits until they
    /// have, or their time is up.
    pub(crate) async fn end(&self, grace: Duration) {
        if !grace.is_zero() {
            let count = self.0.count.load(Ordering::SeqCst);
            *self.0.pace.lock() = Some(Pace::new(count, grace, Instant::now()));
        }
        self.0.ending.cancel();
        if tokio::time::timeout(grace, self.none_left()).await.is_err() && !grace.is_zero() {
            tracing::warn!("Watches were still running when their time was up");
        }
    }

    async fn none_left(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.count.load(Ordering::SeqCst) == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    shared: Arc<Shared>,
    /// When it ends, once that is known.
    turn: Option<Instant>,
}

impl Watched {
    /// Waits until watches end, and it is this one's turn. Given up and begun again, it waits for the same turn.
    pub(crate) async fn over(&mut self) {
        self.shared.ending.cancelled().await;
        let turn = self.turn.or_else(|| self.shared.pace.lock().as_mut().map(Pace::turn));
        self.turn = turn;
        if let Some(turn) = turn {
            tokio::time::sleep_until(turn).await;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shared.count.fetch_sub(1, Ordering::SeqCst);
        self.shared.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    /// When each of so many watches ends, in milliseconds. They are busy: each is disturbed at every millisecond.
    async fn ends(count: usize, grace: Duration) -> Vec<u128> {
        let (watches, begun) = (Watches::default(), Instant::now());
        let all = (0..count).map(|_| {
            let mut watched = watches.enter();
            async move {
                while tokio::time::timeout(Duration::from_millis(1), watched.over()).await.is_err() {}
                begun.elapsed().as_millis()
            }
        });
        let (mut ends, ()) = tokio::join!(join_all(all), watches.end(grace));
        assert!(begun.elapsed() <= grace + Duration::from_millis(1));
        ends.sort_unstable();
        ends
    }

    #[tokio::test(start_paused = true)]
    async fn they_end_in_turn_and_in_time() {
        assert_eq!(ends(3, Duration::ZERO).await, [0; 3], "at once");
        let few = ends(3, Duration::from_secs(60)).await;
        assert!(few[0] <= 1 && (9..=12).contains(&few[2]), "two hundred a second: {few:?}");
        let many = ends(1000, Duration::from_secs(2)).await;
        let early = many.iter().filter(|end| **end <= 1000).count();
        assert!((450..=550).contains(&early), "five hundred a second: {early}");
        assert!(many.iter().all(|end| *end <= 2001));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_end_holds_nothing_up_for_long() {
        let (watches, begun) = (Watches::default(), Instant::now());
        let stuck = watches.enter();
        watches.end(Duration::from_secs(3)).await;
        assert_eq!(begun.elapsed().as_secs(), 3);
        assert!(watches.are_ending());
        drop(stuck);
    }
}
