//! Somebody who asked for seats, and the seats of a request.

use std::sync::Arc;
use std::time::Duration;

use base::SharedClock;
use flow_control::{Caller, Level, Moment, Reason, Schema, Ticket};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::metrics::Series;
use crate::limits::{Concurrency, Present};
use crate::request::RequestInfo;

/// What dumps tell of a request.
pub(super) struct Details {
    pub(super) user: String,
    pub(super) info: Arc<RequestInfo>,
    pub(super) schema: Arc<Schema<Asker>>,
}

/// Somebody who asked for seats.
pub(crate) struct Asker {
    pub(super) details: Details,
    series: Arc<Series>,
    wake: Option<oneshot::Sender<()>>,
}

impl Asker {
    pub(super) fn new(details: Details, series: Arc<Series>) -> Self {
        Self { details, series, wake: None }
    }

    pub(super) fn wake_by(&mut self, wake: oneshot::Sender<()>) {
        self.wake = Some(wake);
    }
}

impl Caller for Asker {
    fn queued(&mut self, seats: u32, length: usize) {
        self.series.queued(seats, length);
    }

    fn gave_up(&mut self, seats: u32) {
        self.series.unqueued(seats);
    }

    fn passed_over(&mut self) {
        self.series.passed_over();
    }

    fn dispatched(&mut self, seats: u32, waited: Option<Duration>) {
        if let Some(waited) = waited {
            self.series.unqueued(seats);
            self.series.waited(waited);
        }
        self.series.dispatched(seats);
        if let Some(wake) = self.wake.take() {
            // Whoever does not listen any more gives the place up itself.
            _ = wake.send(());
        }
    }

    fn finished(&mut self, ran: Duration) {
        self.series.finished(ran);
    }

    fn released(&mut self, seats: u32, held: Duration) {
        self.series.released(seats, held);
    }
}

/// What all requests have in common that take seats: the time, and who is told of what they do with them.
pub(super) struct Shared {
    clock: SharedClock,
    /// The moment that [`Moment`]s count from.
    begun: Instant,
    /// Seats are held for a while; somebody has to see to it that they are freed.
    held: Notify,
    /// Requests that run and wait.
    concurrency: Concurrency,
}

impl Shared {
    pub(super) fn new(clock: &SharedClock, concurrency: Concurrency) -> Self {
        Self { clock: Arc::clone(clock), begun: clock.monotonic(), held: Notify::new(), concurrency }
    }

    pub(super) fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// The moment that it is.
    pub(super) fn now(&self) -> Moment {
        self.clock.monotonic().saturating_duration_since(self.begun)
    }

    /// When a moment is.
    pub(super) fn at(&self, moment: Moment) -> Instant {
        self.begun + moment
    }

    /// Told of seats that are held for a while.
    pub(super) fn held(&self) -> &Notify {
        &self.held
    }
}

/// The place of a request in its level, which is free again when this is dropped.
pub(super) struct Turn {
    level: Arc<Level<Asker>>,
    ticket: Ticket,
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    Waits { _counted: Present },
    Runs { _counted: Present },
    GaveUp,
}

impl Turn {
    pub(super) fn waiting(shared: &Arc<Shared>, level: Arc<Level<Asker>>, ticket: Ticket, is_read_only: bool) -> Self {
        let stage = Stage::Waits { _counted: shared.concurrency.waits(is_read_only) };
        Self { level, ticket, shared: Arc::clone(shared), stage }
    }

    pub(super) fn new(shared: &Arc<Shared>, level: Arc<Level<Asker>>, ticket: Ticket, is_read_only: bool) -> Self {
        let stage = Stage::Runs { _counted: shared.concurrency.runs(is_read_only) };
        Self { level, ticket, shared: Arc::clone(shared), stage }
    }

    pub(super) fn runs(&mut self, is_read_only: bool) {
        self.stage = Stage::Runs { _counted: self.shared.concurrency.runs(is_read_only) };
    }

    /// Does not wait any longer; false where its turn has come.
    pub(super) fn give_up(&mut self, reason: Reason) -> bool {
        let gave_up = self.level.queues().give_up(self.shared.now(), self.ticket, reason);
        if gave_up {
            self.stage = Stage::GaveUp;
        }
        gave_up
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // Of one that waits nobody has heard yet whether its turn has come.
        if matches!(self.stage, Stage::Waits { .. }) {
            self.give_up(Reason::Cancelled);
        }
        if matches!(self.stage, Stage::GaveUp) {
            return;
        }
        if self.level.queues().finish(self.shared.now(), self.ticket).is_some() {
            self.shared.held.notify_one();
        }
    }
}
