//! How many requests run at a time: one bound for reads, one for all others (`--max-requests-inflight` and its sibling).
//! Those that last are not counted. Nobody waits: who finds no seat is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use authz::in_group;
use base::SharedClock;
use component_base::metrics::Metrics;

use super::concurrency::{Concurrency, Present};
use super::seats::{Admitted, Full, Seat, Seats, Wanted};
use crate::config::RequestConfig;

/// The two bounds.
pub(crate) struct InFlight {
    reads: Room,
    writes: Room,
    concurrency: Concurrency,
}

struct Room {
    taken: Arc<AtomicUsize>,
    /// Zero is without limit.
    limit: usize,
}

struct Guard {
    taken: Arc<AtomicUsize>,
    _counted: Present,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl InFlight {
    /// As many as the configuration says.
    pub(crate) fn new(limits: &RequestConfig, metrics: &Metrics, clock: &SharedClock) -> Self {
        let room = |limit| Room { taken: Arc::default(), limit };
        let (reads, writes) = (limits.max_in_flight, limits.max_mutating_in_flight);
        #[expect(clippy::cast_precision_loss, reason = "limits are small")]
        let parts = [reads, writes].map(|limit| limit.max(1) as f64);
        Self { reads: room(reads), writes: room(writes), concurrency: Concurrency::new(metrics, clock, parts) }
    }
}

#[async_trait]
impl Seats for InFlight {
    /// The superusers always get one, so that they can repair an overloaded server.
    async fn take(&self, wanted: &Wanted<'_>) -> Admitted {
        let admitted = |seat| Admitted { classified: None, seat };
        let info = wanted.info;
        if info.is_long_running() {
            return admitted(Ok(Seat::held_by(())));
        }
        let room = if info.is_read_only() { &self.reads } else { &self.writes };
        let before = room.taken.fetch_add(1, Ordering::Relaxed);
        let counted = self.concurrency.runs(info.is_read_only());
        let guard = Guard { taken: Arc::clone(&room.taken), _counted: counted };
        if room.limit == 0 || before < room.limit || in_group(wanted.user, authn::MASTERS) {
            return admitted(Ok(Seat::held_by(guard)));
        }
        admitted(Err(Full { retry_after: 1 }))
    }
}
