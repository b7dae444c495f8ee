//! What is counted of each schema as it happens, with upstream's names.

use std::sync::Arc;
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};
use flow_control::{Reason, Work};

const SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const FLOW: &[&str] = &["priority_level", "flow_schema"];

/// Declares families of the subsystem.
macro_rules! families {
    ($($name:ident: $stability:ident $metric:literal $help:literal $labels:expr $(, $buckets:expr)?;)+) => {
        $(const $name: Desc = Desc::new(concat!("apiserver_flowcontrol_", $metric), $help, Stability::$stability)
            .labels($labels)$(.buckets($buckets))?;)+
    };
}

pub(super) use families;

families! {
    REJECTED: Beta "rejected_requests_total" "Requests that were refused." &["priority_level", "flow_schema", "reason"];
    DISPATCHED: Beta "dispatched_requests_total" "Requests that began to run." FLOW;
    QUEUED: Beta "current_inqueue_requests" "Requests that wait." FLOW;
    QUEUED_SEATS: Alpha "current_inqueue_seats" "Seats of requests that wait." FLOW;
    QUEUE_LENGTH: Alpha "request_queue_length_after_enqueue" "Length of the queue that a request joined, with it." FLOW,
        &[0.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0];
    EXECUTING: Beta "current_executing_requests" "Requests that run." FLOW;
    EXECUTING_SEATS: Beta "current_executing_seats" "Seats in use." FLOW;
    WAITED: Beta "request_wait_duration_seconds" "Time that requests waited."
        &["priority_level", "flow_schema", "execute"], SECONDS;
    RAN: Alpha "request_execution_seconds" "Time that requests ran." &["priority_level", "flow_schema", "type"], SECONDS;
    WORK: Alpha "work_estimated_seats" "Seats that requests were expected to need." FLOW,
        &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
    WATCHES: Alpha "watch_count_samples" "Watches that a write concerned." FLOW,
        &[0.0, 1.0, 10.0, 100.0, 1000.0, 10000.0];
    NO_ROOM: Alpha "request_dispatch_no_accommodation_total" "Requests whose turn came too early for their seats." FLOW;
}

/// The families that count as it happens.
pub(super) struct FlowMetrics {
    rejected: Counters,
    dispatched: Counters,
    queued: Gauges,
    queued_seats: Gauges,
    queue_length: Histograms,
    executing: Gauges,
    executing_seats: Gauges,
    waited: Histograms,
    ran: Histograms,
    work: Histograms,
    watches: Histograms,
    no_room: Counters,
}

/// What is counted of one schema.
pub(super) struct Series {
    rejected: Counters,
    names: [String; 2],
    dispatched: prometheus::Counter,
    queued: prometheus::Gauge,
    queued_seats: prometheus::Gauge,
    queue_length: component_base::metrics::Histogram,
    executing: prometheus::Gauge,
    executing_seats: prometheus::Gauge,
    waited: component_base::metrics::Histogram,
    waited_in_vain: component_base::metrics::Histogram,
    ran: component_base::metrics::Histogram,
    held: component_base::metrics::Histogram,
    work: component_base::metrics::Histogram,
    watches: component_base::metrics::Histogram,
    no_room: prometheus::Counter,
}

impl FlowMetrics {
    pub(super) fn new(metrics: &Metrics) -> Self {
        Self {
            rejected: metrics.counters(&REJECTED),
            dispatched: metrics.counters(&DISPATCHED),
            queued: metrics.gauges(&QUEUED),
            queued_seats: metrics.gauges(&QUEUED_SEATS),
            queue_length: metrics.histograms(&QUEUE_LENGTH),
            executing: metrics.gauges(&EXECUTING),
            executing_seats: metrics.gauges(&EXECUTING_SEATS),
            waited: metrics.histograms(&WAITED),
            ran: metrics.histograms(&RAN),
            work: metrics.histograms(&WORK),
            watches: metrics.histograms(&WATCHES),
            no_room: metrics.counters(&NO_ROOM),
        }
    }

    pub(super) fn series(&self, level: &str, schema: &str) -> Arc<Series> {
        let flow = &[level, schema];
        Arc::new(Series {
            rejected: self.rejected.clone(),
            names: [level.to_owned(), schema.to_owned()],
            dispatched: self.dispatched.with(flow),
            queued: self.queued.with(flow),
            queued_seats: self.queued_seats.with(flow),
            queue_length: self.queue_length.with(flow),
            executing: self.executing.with(flow),
            executing_seats: self.executing_seats.with(flow),
            waited: self.waited.with(&[level, schema, "true"]),
            waited_in_vain: self.waited.with(&[level, schema, "false"]),
            ran: self.ran.with(&[level, schema, "regular"]),
            held: self.ran.with(&[level, schema, "final"]),
            work: self.work.with(flow),
            watches: self.watches.with(flow),
            no_room: self.no_room.with(flow),
        })
    }
}

impl Series {
    pub(super) fn estimated(&self, work: &Work) {
        self.work.observe(work.max_seats().into());
    }

    pub(super) fn concerned(&self, watches: u32) {
        self.watches.observe(watches.into());
    }

    pub(super) fn queued(&self, seats: u32, length: usize) {
        self.queued.inc();
        self.queued_seats.add(seats.into());
        #[expect(clippy::cast_precision_loss, reason = "a histogram of lengths")]
        self.queue_length.observe(length as f64);
    }

    pub(super) fn unqueued(&self, seats: u32) {
        self.queued.dec();
        self.queued_seats.sub(seats.into());
    }

    pub(super) fn passed_over(&self) {
        self.no_room.inc();
    }

    pub(super) fn waited(&self, time: Duration) {
        self.waited.observe(time.as_secs_f64());
    }

    pub(super) fn waited_in_vain(&self, time: Duration) {
        self.waited_in_vain.observe(time.as_secs_f64());
    }

    pub(super) fn dispatched(&self, seats: u32) {
        self.dispatched.inc();
        self.executing.inc();
        self.executing_seats.add(seats.into());
    }

    pub(super) fn finished(&self, ran: Duration) {
        self.executing.dec();
        self.ran.observe(ran.as_secs_f64());
    }

    pub(super) fn released(&self, seats: u32, held: Duration) {
        self.executing_seats.sub(seats.into());
        if !held.is_zero() {
            self.held.observe(held.as_secs_f64());
        }
    }

    pub(super) fn rejected(&self, reason: Reason) {
        let [level, schema] = &self.names;
        self.rejected.with(&[level, schema, reason.label()]).inc();
    }
}
