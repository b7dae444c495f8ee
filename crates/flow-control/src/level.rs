//! A priority level, as requests meet it.

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::Moment;
use crate::demand::Statistics;
use crate::drops::Drops;
use crate::limits::Limits;
use crate::queues::{FairQueues, Kind};

/// A level, for as long as a request of it is there.
pub struct Level<T> {
    name: String,
    queues: Mutex<FairQueues<T>>,
    /// The seats that one request takes at most.
    widest: AtomicU32,
    drops: Drops,
}

impl<T> std::fmt::Debug for Level<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Level({})", self.name)
    }
}

impl<T: crate::Caller> Level<T> {
    pub(crate) fn new(name: &str, now: Moment, kind: Kind, limit: u32) -> Self {
        Self {
            name: name.to_owned(),
            queues: Mutex::new(FairQueues::new(now, kind, limit)),
            widest: AtomicU32::new(1),
            drops: Drops::default(),
        }
    }

    /// Its seats and queues.
    pub fn queues(&self) -> MutexGuard<'_, FairQueues<T>> {
        self.queues.lock()
    }
}

impl<T> Level<T> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The seats that one request takes at most.
    #[must_use]
    pub fn widest_request(&self) -> u32 {
        self.widest.load(Ordering::Relaxed)
    }

    pub(crate) fn set_widest_request(&self, seats: u32) {
        self.widest.store(seats, Ordering::Relaxed);
    }

    /// What was refused.
    #[must_use]
    pub fn drops(&self) -> &Drops {
        &self.drops
    }
}

/// How a level stands, for dumps and gauges.
#[derive(Debug, Clone)]
pub struct LevelState<T> {
    /// The level.
    pub level: std::sync::Arc<Level<T>>,
    /// Its limits.
    pub limits: Limits,
    /// What it has now.
    pub current: u32,
    /// What it was to have.
    pub target: f64,
    /// Whether it ends with its last request.
    pub is_removed: bool,
    pub(crate) statistics: Statistics,
}

impl<T> LevelState<T> {
    /// Of the seats needed lately: the most, the average, the deviation, and all of that smoothed.
    #[must_use]
    pub fn demand(&self) -> [f64; 4] {
        let Statistics { highest, average, deviation, smoothed } = self.statistics;
        [highest.into(), average, deviation, smoothed]
    }
}
