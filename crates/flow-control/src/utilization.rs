//! How busy a level is, over time: what its histograms show.

use crate::Moment;
use crate::queues::{Counts, Kind};
use crate::ratio::Ratio;

const DEMAND_BOUNDS: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];
const REQUEST_BOUNDS: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const SEAT_BOUNDS: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// The ratios of a level.
#[derive(Debug, Clone)]
pub struct Utilization {
    /// Seats that are needed, to the level's own.
    pub demand: Ratio,
    /// Seats in use, to those that the level has.
    pub seats: Ratio,
    /// Requests that wait, to those that may.
    pub waiting: Ratio,
    /// Requests that run, to the seats.
    pub executing: Ratio,
}

impl Utilization {
    pub(crate) fn new(now: Moment) -> Self {
        let ratio = |bounds| Ratio::new(now, bounds, 1.0);
        Self {
            demand: ratio(DEMAND_BOUNDS),
            seats: ratio(SEAT_BOUNDS),
            waiting: ratio(REQUEST_BOUNDS),
            executing: ratio(REQUEST_BOUNDS),
        }
    }

    pub(crate) fn resize(&mut self, now: Moment, kind: Kind, nominal: u32) {
        let room = match kind {
            Kind::Queue(queuing) => queuing.dealer.deck() * queuing.length_limit,
            Kind::Exempt | Kind::Reject => 1,
        };
        self.waiting.set_denominator(now, room.max(1) as f64);
        self.demand.set_denominator(now, nominal.max(1).into());
    }

    pub(crate) fn note(&mut self, now: Moment, counts: &Counts, limit: u32) {
        let limit = f64::from(limit.max(1));
        self.seats.set_denominator(now, limit);
        self.executing.set_denominator(now, limit);
        self.demand.set(now, f64::from(counts.seats_in_use) + f64::from(counts.seats_waiting));
        self.seats.set(now, counts.seats_in_use.into());
        self.waiting.set(now, counts.waiting as f64);
        self.executing.set(now, counts.executing as f64);
    }
}
