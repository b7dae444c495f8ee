//! What is counted, with upstream's names: per schema as it happens, per level when somebody looks.

use std::sync::{Arc, Weak};
use std::time::Duration;

use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Sample, Stability, Value};
use flow_control::{LevelState, Reason, Utilization, Work};

use super::FlowControl;
use super::seat::Asker;

const SECONDS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
const FLOW: &[&str] = &["priority_level", "flow_schema"];
const LEVEL: &[&str] = &["priority_level"];

macro_rules! families {
    ($($name:ident: $stability:ident $metric:literal $help:literal $labels:expr $(, $buckets:expr)?;)+) => {
        $(const $name: Desc = Desc::new(concat!("apiserver_flowcontrol_", $metric), $help, Stability::$stability)
            .labels($labels)$(.buckets($buckets))?;)+
    };
}

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
    NO_ROOM: Alpha "request_dispatch_no_accommodation_total" "Requests whose turn came too early for their seats." FLOW;
    NOMINAL: Beta "nominal_limit_seats" "Seats that are the level's own." LEVEL;
    LOWER: Alpha "lower_limit_seats" "Seats that the level keeps." LEVEL;
    UPPER: Alpha "upper_limit_seats" "Seats that the level has at most." LEVEL;
    CURRENT: Alpha "current_limit_seats" "Seats that the level has." LEVEL;
    HIGHEST: Alpha "demand_seats_high_watermark" "The most seats that were needed lately." LEVEL;
    AVERAGE: Alpha "demand_seats_average" "Seats that were needed lately, on average." LEVEL;
    DEVIATION: Alpha "demand_seats_stdev" "Deviation of the seats that were needed lately." LEVEL;
    SMOOTHED: Alpha "demand_seats_smoothed" "Seats needed, smoothed." LEVEL;
    TARGET: Alpha "target_seats" "Seats that the level was to have." LEVEL;
    CURRENT_R: Alpha "current_r" "Virtual time." LEVEL;
    DISPATCH_R: Alpha "dispatch_r" "Virtual time of the last dispatch." LEVEL;
    LATEST_S: Alpha "latest_s" "Start of the queue that was served last." LEVEL;
    DEMAND: Alpha "demand_seats" "Seats needed to nominal ones, over nanoseconds." LEVEL;
    SEATS: Alpha "priority_level_seat_utilization" "Seats in use to those there are, over nanoseconds."
        &["priority_level", "phase"];
    REQUESTS: Alpha "priority_level_request_utilization" "Requests to those there may be, over nanoseconds."
        &["priority_level", "phase"];
    EPOCHS: Alpha "epoch_advance_total" "How often virtual time was set back." &["priority_level", "success"];
    BOUNDS: Alpha "next_s_bounds" "Least and greatest start of queues." &["priority_level", "bound"];
    DISCOUNTED: Alpha "next_discounted_s_bounds" "The same without what runs." &["priority_level", "bound"];
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
    no_room: Counters,
}

/// What is counted of one schema.
pub(super) struct Series {
    rejected: Counters,
    names: [String; 2],
    dispatched: prometheus::Counter,
    queued: prometheus::Gauge,
    queued_seats: prometheus::Gauge,
    queue_length: prometheus::Histogram,
    executing: prometheus::Gauge,
    executing_seats: prometheus::Gauge,
    waited: prometheus::Histogram,
    waited_in_vain: prometheus::Histogram,
    ran: prometheus::Histogram,
    held: prometheus::Histogram,
    work: prometheus::Histogram,
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
            no_room: self.no_room.with(flow),
        })
    }
}

impl Series {
    pub(super) fn estimated(&self, work: &Work) {
        self.work.observe(work.max_seats().into());
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

/// Shows the levels whenever somebody looks.
pub(super) fn show_levels(control: &Arc<FlowControl>, metrics: &Metrics) {
    type Look = fn(&LevelState<Asker>) -> f64;
    let gauges: [(&'static Desc, Look); 12] = [
        (&NOMINAL, |state| state.limits.nominal.into()),
        (&LOWER, |state| state.limits.min.into()),
        (&UPPER, |state| state.limits.max.into()),
        (&CURRENT, |state| state.current.into()),
        (&HIGHEST, |state| state.demand()[0]),
        (&AVERAGE, |state| state.demand()[1]),
        (&DEVIATION, |state| state.demand()[2]),
        (&SMOOTHED, |state| state.demand()[3]),
        (&TARGET, |state| state.target),
        (&CURRENT_R, |state| state.level.queues().virtual_times().now.as_f64()),
        (&DISPATCH_R, |state| state.level.queues().virtual_times().dispatched.as_f64()),
        (&LATEST_S, |state| state.level.queues().virtual_times().latest_start.as_f64()),
    ];
    for (desc, look) in gauges {
        let samples = each(control, move |_, state| vec![(vec![], Value::Gauge(look(state)))]);
        metrics.computed_gauges(desc, samples);
    }
    metrics.computed_histograms(&DEMAND, ratios(control, |own| vec![(None, &mut own.demand)]));
    metrics.computed_histograms(&SEATS, ratios(control, |own| vec![(Some("executing"), &mut own.seats)]));
    metrics.computed_histograms(
        &REQUESTS,
        ratios(control, |own| vec![(Some("waiting"), &mut own.waiting), (Some("executing"), &mut own.executing)]),
    );
    let epochs = each(control, |_, state| {
        let (exact, inexact) = state.level.queues().counts().epochs;
        #[expect(clippy::cast_precision_loss, reason = "a counter")]
        let sample = |name: &str, count: u64| (vec![name.to_owned()], Value::Counter(count as f64));
        vec![sample("true", exact), sample("false", inexact)]
    });
    metrics.computed_counters(&EPOCHS, epochs);
    let bounds = |(min, max): (flow_control::SeatSeconds, flow_control::SeatSeconds)| {
        let sample = |name: &str, at: flow_control::SeatSeconds| (vec![name.to_owned()], Value::Gauge(at.as_f64()));
        vec![sample("min", min), sample("max", max)]
    };
    let starts = each(control, move |_, state| bounds(state.level.queues().virtual_times().next_starts));
    metrics.computed_gauges(&BOUNDS, starts);
    let starts = each(control, move |_, state| bounds(state.level.queues().virtual_times().next_discounted_starts));
    metrics.computed_gauges(&DISCOUNTED, starts);
}

type Samples = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

/// Samples of each level, with its name before their own labels.
fn each(
    control: &Arc<FlowControl>,
    look: impl Fn(flow_control::Moment, &LevelState<Asker>) -> Vec<Sample> + Send + Sync + 'static,
) -> Samples {
    let control: Weak<FlowControl> = Arc::downgrade(control);
    Box::new(move || {
        let Some(control) = control.upgrade() else { return Vec::new() };
        let now = control.now();
        let controller = control.controller.lock();
        let of = |state: &LevelState<Asker>| {
            let name = state.level.name().to_owned();
            look(now, state)
                .into_iter()
                .map(move |(labels, value)| (std::iter::once(name.clone()).chain(labels).collect(), value))
        };
        controller.states().flat_map(of).collect()
    })
}

/// A ratio and the phase that it is of, where there are several.
type LabelledRatio<'a> = (Option<&'static str>, &'a mut flow_control::Ratio);

fn ratios(control: &Arc<FlowControl>, of: fn(&mut Utilization) -> Vec<LabelledRatio<'_>>) -> Samples {
    each(control, move |now, state| {
        let mut queues = state.level.queues();
        let sample = |(phase, ratio): (Option<&str>, &mut flow_control::Ratio)| {
            let counts = ratio.counts(now);
            let labels = phase.into_iter().map(str::to_owned).collect();
            (labels, Value::Histogram(counts.buckets, counts.count, counts.sum))
        };
        of(queues.utilization()).into_iter().map(sample).collect()
    })
}
