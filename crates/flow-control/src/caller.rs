//! What somebody who asked for seats is told, and why a request is refused.

use std::time::Duration;

/// Why a request does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The queue that it would wait in is full.
    QueueFull,
    /// There is no free seat, and the level has no queues.
    ConcurrencyLimit,
    /// It waited for too long.
    TimeOut,
    /// Its client is gone.
    Cancelled,
}

impl Reason {
    /// The word in metrics.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::ConcurrencyLimit => "concurrency-limit",
            Self::TimeOut => "time-out",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Somebody who asked for seats. Called with the level locked: what is done with it must be short.
pub trait Caller {
    /// It waits now, in a queue that is `length` long with it.
    fn queued(&mut self, _seats: u32, _length: usize) {}
    /// It does not wait any more, as it gave up.
    fn gave_up(&mut self, _seats: u32) {}
    /// It waits on, as its turn has come but there are not seats enough.
    fn passed_over(&mut self) {}
    /// It runs now. Whoever did not pass a queue has not waited.
    fn dispatched(&mut self, _seats: u32, _waited: Option<Duration>) {}
    /// It ran for a time; its seats may be held for longer.
    fn finished(&mut self, _ran: Duration) {}
    /// Its seats are free, after they were held for `held` longer than it ran.
    fn released(&mut self, _seats: u32, _held: Duration) {}
}
