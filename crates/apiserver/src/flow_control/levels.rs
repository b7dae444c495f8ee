//! What is shown of each level whenever somebody looks, with upstream's names.

use std::sync::Arc;

use component_base::metrics::{Desc, Metrics, Sample, Stability, Value};
use flow_control::{Controller, LevelState, Utilization};
use parking_lot::Mutex;

use super::metrics::families;
use super::seat::{Asker, Shared};

const LEVEL: &[&str] = &["priority_level"];

families! {
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
    FAIR_FRACTION: Alpha "seat_fair_frac" "Part of its target that each level got when seats were shared out." &[];
    DISCOUNTED: Alpha "next_discounted_s_bounds" "The same without what runs." &["priority_level", "bound"];
}

type Levels = Arc<Mutex<Controller<Asker>>>;

/// Shows the levels whenever somebody looks.
pub(super) fn show(controller: &Levels, shared: &Arc<Shared>, metrics: &Metrics) {
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
        let samples = each(controller, shared, move |_, state| vec![(vec![], Value::Gauge(look(state)))]);
        metrics.computed_gauges(desc, samples);
    }
    let levels = Arc::downgrade(controller);
    let fraction = move || {
        let fraction = levels.upgrade().map(|levels| levels.lock().fair_fraction());
        fraction.into_iter().map(|fraction| (vec![], Value::Gauge(fraction))).collect()
    };
    metrics.computed_gauges(&FAIR_FRACTION, Box::new(fraction));
    metrics.computed_histograms(&DEMAND, ratios(controller, shared, |own| vec![(None, &mut own.demand)]));
    metrics.computed_histograms(&SEATS, ratios(controller, shared, |own| vec![(Some("executing"), &mut own.seats)]));
    metrics.computed_histograms(
        &REQUESTS,
        ratios(controller, shared, |own| {
            vec![(Some("waiting"), &mut own.waiting), (Some("executing"), &mut own.executing)]
        }),
    );
    let epochs = each(controller, shared, |_, state| {
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
    let starts = each(controller, shared, move |_, state| bounds(state.level.queues().virtual_times().next_starts));
    metrics.computed_gauges(&BOUNDS, starts);
    let starts =
        each(controller, shared, move |_, state| bounds(state.level.queues().virtual_times().next_discounted_starts));
    metrics.computed_gauges(&DISCOUNTED, starts);
}

type Samples = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

/// Samples of each level, with its name before their own labels.
fn each(
    controller: &Levels,
    shared: &Arc<Shared>,
    look: impl Fn(flow_control::Moment, &LevelState<Asker>) -> Vec<Sample> + Send + Sync + 'static,
) -> Samples {
    let (controller, shared) = (Arc::downgrade(controller), Arc::clone(shared));
    Box::new(move || {
        let Some(controller) = controller.upgrade() else { return Vec::new() };
        let now = shared.now();
        let controller = controller.lock();
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

fn ratios(controller: &Levels, shared: &Arc<Shared>, of: fn(&mut Utilization) -> Vec<LabelledRatio<'_>>) -> Samples {
    each(controller, shared, move |now, state| {
        let mut queues = state.level.queues();
        let sample = |(phase, ratio): (Option<&str>, &mut flow_control::Ratio)| {
            let counts = ratio.counts(now);
            let labels = phase.into_iter().map(str::to_owned).collect();
            (labels, Value::Histogram(counts.buckets, counts.count, counts.sum))
        };
        of(queues.utilization()).into_iter().map(sample).collect()
    })
}
