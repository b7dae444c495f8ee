//! Time as a dependency, so that tests run on paused time and a simulation replays from a seed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

/// A source of wall time (stamps that others read) and of monotonic time (timeouts and intervals).
pub trait Clock: Send + Sync + 'static {
    /// The wall time now; it can jump in either direction.
    fn wall(&self) -> SystemTime;

    /// The monotonic time now; it follows tokio's clock, paused or not.
    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// A clock that many tasks share.
pub type SharedClock = Arc<dyn Clock>;

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// The machine's clock, ready to be shared.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self)
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where real time enters the process")]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A wall clock that starts at a chosen moment and advances with tokio's time, so that pausing one pauses both.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: SystemTime,
    start: Instant,
}

impl TokioClock {
    /// Starts a clock whose wall time is now `epoch`.
    #[must_use]
    pub fn starting_at(epoch: SystemTime) -> Self {
        Self { epoch, start: Instant::now() }
    }

    /// A shared clock that starts at 2026-01-01T00:00:00Z.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self::starting_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)))
    }
}

impl Clock for TokioClock {
    fn wall(&self) -> SystemTime {
        self.epoch + self.start.elapsed()
    }
}

/// A wall clock that stands, while monotonic time goes on.
#[derive(Debug, Clone, Copy)]
pub struct StandingClock(pub SystemTime);

impl Clock for StandingClock {
    fn wall(&self) -> SystemTime {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_wall_follows_paused_time() {
        let clock = TokioClock::starting_at(SystemTime::UNIX_EPOCH);
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.wall(), SystemTime::UNIX_EPOCH + Duration::from_secs(90));
    }
}
