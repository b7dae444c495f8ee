//! How many requests run and wait at a time, reads and all others: as numbers of now, and as parts of what there may be,
//! weighed by how long it was so.

use std::sync::Arc;

use base::SharedClock;
use component_base::metrics::{Desc, Gauges, Metrics, Stability, Value};
use flow_control::Ratio;
use parking_lot::Mutex;
use tokio::time::Instant;

const IN_FLIGHT: Desc =
    Desc::new("apiserver_current_inflight_requests", "Requests that are running now.", Stability::Stable)
        .labels(&["request_kind"]);
const IN_QUEUE: Desc =
    Desc::new("apiserver_current_inqueue_requests", "Requests that are waiting now.", Stability::Alpha)
        .labels(&["request_kind"]);
static PARTS: Desc = Desc::new(
    "apiserver_flowcontrol_read_vs_write_current_requests",
    "Requests that wait or run, as a part of those that may, over nanoseconds.",
    Stability::Alpha,
)
.labels(&["phase", "request_kind"]);
const BOUNDS: &[f64] = &[0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Reads, and all others.
const KINDS: [&str; 2] = ["readOnly", "mutating"];

/// Requests of both kinds, those that run and those that wait.
pub(crate) struct Concurrency {
    executing: [Arc<Place>; 2],
    waiting: [Arc<Place>; 2],
}

/// Where requests of a kind are.
struct Place {
    gauge: prometheus::Gauge,
    part: Mutex<Ratio>,
    clock: SharedClock,
    /// The moment that the ratio counts from.
    begun: Instant,
}

/// A request that is counted where it is, until this is dropped.
pub(crate) struct Present(Arc<Place>);

impl Concurrency {
    /// None so far, of so many reads and others that may run at a time; of those that wait nobody says how many may.
    pub(crate) fn new(metrics: &Metrics, clock: &SharedClock, limits: [f64; 2]) -> Self {
        let places = |gauges: &Gauges, limits: [f64; 2]| {
            [0, 1].map(|kind: usize| Arc::new(Place::new(gauges.with(&[KINDS[kind]]), clock, limits[kind])))
        };
        let own = Self {
            executing: places(&metrics.gauges(&IN_FLIGHT), limits),
            waiting: places(&metrics.gauges(&IN_QUEUE), [1.0; 2]),
        };
        let shown = [("executing", own.executing.clone()), ("waiting", own.waiting.clone())];
        let samples = move || {
            let all = shown.iter().flat_map(|(phase, places)| {
                KINDS
                    .iter()
                    .zip(places)
                    .map(move |(kind, place)| ([*phase, *kind].map(str::to_owned).into(), place.shown()))
            });
            all.collect()
        };
        metrics.computed_histograms(&PARTS, Box::new(samples));
        own
    }

    /// Counts a request that runs.
    pub(crate) fn runs(&self, is_read_only: bool) -> Present {
        Present::at(&self.executing, is_read_only)
    }

    /// Counts a request that waits.
    pub(crate) fn waits(&self, is_read_only: bool) -> Present {
        Present::at(&self.waiting, is_read_only)
    }
}

impl Place {
    fn new(gauge: prometheus::Gauge, clock: &SharedClock, limit: f64) -> Self {
        let part = Mutex::new(Ratio::new(std::time::Duration::ZERO, BOUNDS, limit));
        Self { gauge, part, clock: Arc::clone(clock), begun: clock.monotonic() }
    }

    fn now(&self) -> flow_control::Moment {
        self.clock.monotonic().saturating_duration_since(self.begun)
    }

    fn change(&self, by: f64) {
        self.gauge.add(by);
        self.part.lock().add(self.now(), by);
    }

    fn shown(&self) -> Value {
        let counts = self.part.lock().counts(self.now());
        Value::Histogram(counts.buckets, counts.count, counts.sum)
    }
}

impl Present {
    fn at([reads, others]: &[Arc<Place>; 2], is_read_only: bool) -> Self {
        let place = if is_read_only { reads } else { others };
        place.change(1.0);
        Self(Arc::clone(place))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.change(-1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use base::TokioClock;
    use component_base::metrics::MetricsOptions;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_runs_and_waits_is_told_by_number_and_by_part_of_the_time() {
        let metrics = Metrics::new(MetricsOptions::default());
        let concurrency = Concurrency::new(&metrics, &TokioClock::shared(), [4.0, 2.0]);
        let waits = concurrency.waits(false);
        let reads = [concurrency.runs(true), concurrency.runs(true)];
        tokio::time::sleep(Duration::from_nanos(10)).await;
        let text = metrics.text();
        for line in [
            "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 2",
            "apiserver_current_inflight_requests{request_kind=\"mutating\"} 0",
            "apiserver_current_inqueue_requests{request_kind=\"mutating\"} 1",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
        }
        drop((waits, reads));
        tokio::time::sleep(Duration::from_millis(1)).await;
        let text = metrics.text();
        assert!(text.contains("apiserver_current_inqueue_requests{request_kind=\"mutating\"} 0"), "{text}");
        // Two of four for a millisecond, which is the shortest that a paused clock sleeps; then none for another one.
        let bucket = |bound: &str| {
            let head = format!(
                "apiserver_flowcontrol_read_vs_write_current_requests_bucket{{phase=\"executing\",request_kind=\"readOnly\",le=\"{bound}\"}} "
            );
            text.lines().find_map(|line| line.strip_prefix(head.as_str())).and_then(|number| number.parse::<f64>().ok())
        };
        let (none, below, half) = (bucket("0"), bucket("0.4"), bucket("0.5"));
        assert!(none.is_some_and(|none| none > 0.0), "{text}");
        assert_eq!(none, below);
        assert!(half > below, "{text}");
    }
}
