//! One queue of a level, and what it holds.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Moment;
use crate::seat_seconds::SeatSeconds;

/// How long a request is expected to run.
pub(crate) const EXPECTED_TIME: Duration = Duration::from_millis(3);

/// What a request takes: seats while it runs, and others for what follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Seats while it runs.
    pub initial_seats: u32,
    /// Seats for what follows.
    pub final_seats: u32,
    /// For how long that takes them.
    pub extra: Duration,
}

impl Default for Work {
    /// One seat, and nothing follows.
    fn default() -> Self {
        Self { initial_seats: 1, final_seats: 0, extra: Duration::ZERO }
    }
}

impl Work {
    /// What is held from its beginning to its very end.
    #[must_use]
    pub fn max_seats(&self) -> u32 {
        self.initial_seats.max(self.final_seats)
    }

    /// All of it, with the time that it is expected to run.
    #[must_use]
    pub fn total(&self) -> SeatSeconds {
        let running = SeatSeconds::of(self.initial_seats.into(), EXPECTED_TIME);
        running.plus(SeatSeconds::of(self.final_seats.into(), self.extra))
    }

    /// The same work with no more final seats than there are, for as much longer.
    pub(crate) fn fit(&mut self, limit: u32) {
        if self.final_seats > limit && limit > 0 {
            self.extra = SeatSeconds::of(self.final_seats.into(), self.extra).spread_over(limit);
            self.final_seats = limit;
        }
    }
}

/// A request that waits or runs.
pub(crate) struct Entry<T> {
    pub(crate) id: u64,
    /// The queue that it came by.
    pub(crate) queue: Option<usize>,
    pub(crate) work: Work,
    pub(crate) arrived: Moment,
    /// The virtual time of its arrival.
    pub(crate) arrived_virtually: SeatSeconds,
    pub(crate) started: Option<Moment>,
    pub(crate) caller: T,
}

impl<T> Entry<T> {
    pub(crate) fn seats(&self) -> u32 {
        self.work.max_seats()
    }
}

/// A queue.
pub(crate) struct Queue<T> {
    pub(crate) waiting: VecDeque<Entry<T>>,
    pub(crate) executing: usize,
    /// Of what runs, and of what ran and still holds its seats.
    pub(crate) seats_in_use: u32,
    /// The virtual time at which its oldest request would begin.
    pub(crate) start: SeatSeconds,
    /// The work of all that wait.
    pub(crate) waiting_work: SeatSeconds,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let start = SeatSeconds::default();
        Self { waiting: VecDeque::new(), executing: 0, seats_in_use: 0, start, waiting_work: start }
    }
}

impl<T> Queue<T> {
    /// Whether it takes part in sharing the level.
    pub(crate) fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    /// Whether nothing comes of forgetting it.
    pub(crate) fn is_spent(&self) -> bool {
        !self.is_active() && self.seats_in_use == 0
    }

    pub(crate) fn push(&mut self, entry: Entry<T>) {
        self.waiting_work = self.waiting_work.plus(entry.work.total());
        self.waiting.push_back(entry);
    }

    /// The virtual time at which its oldest request would be done.
    pub(crate) fn next_finish(&self) -> Option<SeatSeconds> {
        self.waiting.front().map(|oldest| self.start.plus(oldest.work.total()))
    }

    /// Takes the request at a place out.
    pub(crate) fn remove(&mut self, place: usize) -> Option<Entry<T>> {
        let entry = self.waiting.remove(place)?;
        self.waiting_work = self.waiting_work.minus(entry.work.total());
        Some(entry)
    }

    /// It cannot begin before what waits in it arrived.
    pub(crate) fn bound_start(&mut self) {
        if let Some(oldest) = self.waiting.front() {
            self.start = self.start.max(oldest.arrived_virtually);
        }
    }

    pub(crate) fn row(&self) -> QueueRow {
        QueueRow {
            waiting: self.waiting.len(),
            executing: self.executing,
            seats_in_use: self.seats_in_use,
            start: self.start,
            initial_seats: self.waiting.iter().map(|entry| u64::from(entry.work.initial_seats)).sum(),
            max_seats: self.waiting.iter().map(|entry| u64::from(entry.seats())).sum(),
            work: self.waiting_work,
        }
    }
}

/// A queue, as a dump shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRow {
    /// Requests that wait.
    pub waiting: usize,
    /// Requests that came by it and run.
    pub executing: usize,
    /// Seats that those have, and those that are done and still hold some.
    pub seats_in_use: u32,
    /// The virtual time at which its oldest request would begin.
    pub start: SeatSeconds,
    /// Sum of what waits: initial seats.
    pub initial_seats: u64,
    /// Sum of what waits: the larger of initial and final seats.
    pub max_seats: u64,
    /// Sum of what waits: work.
    pub work: SeatSeconds,
}

/// A request, as a dump shows it.
#[derive(Debug)]
pub struct RequestRow<'a, T> {
    /// The queue, and the place in it; nothing once the request runs, or where there are no queues.
    pub place: Option<(usize, usize)>,
    /// When it came.
    pub arrived: Moment,
    /// When it began to run.
    pub started: Option<Moment>,
    /// What it takes.
    pub work: Work,
    /// Who asked.
    pub caller: &'a T,
}
