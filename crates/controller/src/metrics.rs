//! The `workqueue_*` metrics, with upstream's names and buckets.

use std::sync::Arc;
use std::time::Duration;

use client::QueueMetrics;
use component_base::metrics::{Counters, Desc, Gauges, Histogram, Histograms, Metrics, Stability};

/// 10 ns times powers of ten, as upstream.
const BUCKETS: &[f64] = &[1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];
const LABELS: &[&str] = &["name"];

const fn desc(name: &'static str, help: &'static str) -> Desc {
    Desc::new(name, help, Stability::Beta).labels(LABELS)
}

const DEPTH: Desc = desc("workqueue_depth", "Keys that wait in the queue.");
const ADDS: Desc = desc("workqueue_adds_total", "Keys that were added to the queue.");
const QUEUE_DURATION: Desc =
    desc("workqueue_queue_duration_seconds", "How long keys waited before they were taken.").buckets(BUCKETS);
const WORK_DURATION: Desc = desc("workqueue_work_duration_seconds", "How long working on a key took.").buckets(BUCKETS);
const UNFINISHED: Desc =
    desc("workqueue_unfinished_work_seconds", "How long the keys that are worked on have been, in total.");
const LONGEST: Desc =
    desc("workqueue_longest_running_processor_seconds", "How long the key that is worked on longest has been.");
const RETRIES: Desc = desc("workqueue_retries_total", "Keys that were added with a delay.");

/// The families, made once for a registry.
#[derive(Clone)]
pub struct QueueMetricFamilies {
    depth: Gauges,
    adds: Counters,
    queue_duration: Histograms,
    work_duration: Histograms,
    unfinished: Gauges,
    longest: Gauges,
    retries: Counters,
}

impl QueueMetricFamilies {
    /// Registers the families.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            depth: metrics.gauges(&DEPTH),
            adds: metrics.counters(&ADDS),
            queue_duration: metrics.histograms(&QUEUE_DURATION),
            work_duration: metrics.histograms(&WORK_DURATION),
            unfinished: metrics.gauges(&UNFINISHED),
            longest: metrics.gauges(&LONGEST),
            retries: metrics.counters(&RETRIES),
        }
    }

    /// What a queue of this name reports to. The series are looked up once.
    #[must_use]
    pub fn queue(&self, name: &str) -> Arc<dyn QueueMetrics> {
        let label = &[name];
        Arc::new(Series {
            depth: self.depth.with(label),
            adds: self.adds.with(label),
            queue_duration: self.queue_duration.with(label),
            work_duration: self.work_duration.with(label),
            retries: self.retries.with(label),
        })
    }

    /// Sets what must be sampled: the age of what is worked on, in total and at most.
    pub(crate) fn sample(&self, name: &str, (total, longest): (Duration, Duration)) {
        self.unfinished.with(&[name]).set(total.as_secs_f64());
        self.longest.with(&[name]).set(longest.as_secs_f64());
    }
}

struct Series {
    depth: prometheus::Gauge,
    adds: prometheus::Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    retries: prometheus::Counter,
}

impl QueueMetrics for Series {
    #[expect(clippy::cast_precision_loss, reason = "a queue is never that long")]
    fn depth(&self, waiting: usize) {
        self.depth.set(waiting as f64);
    }
    fn added(&self) {
        self.adds.inc();
    }
    fn taken(&self, waited: Duration) {
        self.queue_duration.observe(waited.as_secs_f64());
    }
    fn done(&self, worked: Duration) {
        self.work_duration.observe(worked.as_secs_f64());
    }
    fn retried(&self) {
        self.retries.inc();
    }
}
