//! How many requests run at a time: one bound for reads, one for all others (`--max-requests-inflight` and its sibling).
//! Those that last are not counted. Nobody waits: who finds no seat is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use authz::in_group;
use component_base::metrics::Gauges;

use super::seats::{Admitted, Full, Seat, Seats, Wanted};
use crate::config::RequestConfig;

/// The two bounds.
pub(crate) struct InFlight {
    reads: Room,
    writes: Room,
}

struct Room {
    taken: Arc<AtomicUsize>,
    /// Zero is without limit.
    limit: usize,
    gauge: prometheus::Gauge,
}

struct Guard {
    taken: Arc<AtomicUsize>,
    gauge: prometheus::Gauge,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
        self.gauge.dec();
    }
}

impl InFlight {
    /// As many as the configuration says, shown by the gauges.
    pub(crate) fn new(limits: &RequestConfig, gauges: &Gauges) -> Self {
        let room = |kind, limit| Room { taken: Arc::default(), limit, gauge: gauges.with(&[kind]) };
        Self { reads: room("readOnly", limits.max_in_flight), writes: room("mutating", limits.max_mutating_in_flight) }
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
        room.gauge.inc();
        let guard = Guard { taken: Arc::clone(&room.taken), gauge: room.gauge.clone() };
        if room.limit == 0 || before < room.limit || in_group(wanted.user, authn::MASTERS) {
            return admitted(Ok(Seat::held_by(guard)));
        }
        admitted(Err(Full { retry_after: 1 }))
    }
}
