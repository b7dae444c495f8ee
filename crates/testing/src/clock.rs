//! The clock of one part, which can be wrong or stand still while the others' go on.

use std::time::{Duration, SystemTime};

use base::{Clock, SharedClock};
use parking_lot::Mutex;

/// What is wrong with the wall clock of a part. Timeouts and intervals are not touched: they are of the monotonic clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClockFault {
    /// Nothing.
    #[default]
    Right,
    /// It is ahead by so much.
    Ahead(Duration),
    /// It is behind by so much.
    Behind(Duration),
    /// It shows this and goes no further.
    Stands(SystemTime),
}

/// A clock with a fault.
pub(crate) struct PartClock {
    inner: SharedClock,
    fault: Mutex<ClockFault>,
}

impl PartClock {
    pub(crate) fn new(inner: SharedClock) -> Self {
        Self { inner, fault: Mutex::default() }
    }

    pub(crate) fn set(&self, fault: ClockFault) {
        *self.fault.lock() = fault;
    }
}

impl Clock for PartClock {
    fn wall(&self) -> SystemTime {
        let right = self.inner.wall();
        match *self.fault.lock() {
            ClockFault::Right => right,
            ClockFault::Ahead(by) => right + by,
            ClockFault::Behind(by) => right.checked_sub(by).unwrap_or(SystemTime::UNIX_EPOCH),
            ClockFault::Stands(at) => at,
        }
    }
}
