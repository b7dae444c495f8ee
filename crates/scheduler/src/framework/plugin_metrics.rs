//! What is measured of the plugins of a profile one by one: how often those are asked that are asked the most, and how long
//! plugins take, in every tenth cycle only, as looking at a clock for each plugin and node has its price.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use component_base::metrics::Counter;
use tokio::time::Instant;

use super::points::{PreFiltered, PreScored};
use super::profile::At;
use super::status::{Status, StatusResult};
use crate::metrics::SchedulerMetrics;

/// One cycle of so many is a sample; upstream leaves it to chance, and takes as many.
const CYCLES_FOR_SAMPLE: u64 = 10;
/// How metrics call the answer of a plugin that has nothing to say about a pod.
pub(crate) const SKIP: &str = "Skip";

/// The measures of one profile's plugins.
pub struct PluginMetrics {
    metrics: Arc<SchedulerMetrics>,
    cycles: AtomicU64,
    pub(super) pre_filter: Vec<Counter>,
    pub(super) filter: Vec<Counter>,
    pub(super) pre_score: Vec<Counter>,
    pub(super) score: Vec<Counter>,
}

/// The names of plugins at a point.
pub(crate) fn names<T: ?Sized>(plugins: &[At<T>]) -> Vec<&'static str> {
    plugins.iter().map(|at| at.name).collect()
}

/// The look at the clock before a plugin runs, in cycles that are samples.
#[derive(Clone, Copy)]
pub(crate) struct Started(Option<Instant>);

impl Started {
    /// Now, if the cycle is a sample.
    pub(crate) fn now(is_sampled: bool) -> Self {
        Self(is_sampled.then(Instant::now))
    }

    fn elapsed(self) -> Option<Duration> {
        self.0.map(|started| started.elapsed())
    }
}

impl PluginMetrics {
    /// Nothing is measured yet. It is counted how often the plugins are asked at `PreFilter`, `Filter`, `PreScore` and
    /// `Score`: these, in this order.
    pub(crate) fn new(metrics: &Arc<SchedulerMetrics>, profile: &str, counted: [Vec<&str>; 4]) -> Self {
        let counters = |point: &str, plugins: &[&str]| -> Vec<Counter> {
            plugins.iter().map(|name| metrics.evaluations(name, point, profile)).collect()
        };
        let [pre_filter, filter, pre_score, score] = counted;
        Self {
            metrics: Arc::clone(metrics),
            cycles: AtomicU64::new(0),
            pre_filter: counters("PreFilter", &pre_filter),
            filter: counters("Filter", &filter),
            pre_score: counters("PreScore", &pre_score),
            score: counters("Score", &score),
        }
    }

    /// A cycle begins; whether it is a sample.
    pub(crate) fn begins_sample(&self) -> bool {
        self.cycles.fetch_add(1, Ordering::Relaxed).is_multiple_of(CYCLES_FOR_SAMPLE)
    }

    /// A plugin has run.
    pub(crate) fn ran(&self, started: Started, point: &str, plugin: &str, status: &str) {
        if let Some(took) = started.elapsed() {
            self.metrics.plugin_ran(plugin, point, status, took);
        }
    }

    /// All plugins of a point have run that cannot fail.
    pub(crate) fn point(&self, point: &str, profile: &str, began: Instant) {
        self.metrics.point(point, profile, "Success", began.elapsed());
    }

    /// A pre-filter has run; one that has nothing to say is not counted.
    pub(super) fn pre_filtered(
        &self,
        place: usize,
        started: Started,
        plugin: &str,
        found: &Result<PreFiltered, Status>,
    ) {
        let is_skip = matches!(found, Ok(PreFiltered::Skip));
        self.ran(started, "PreFilter", plugin, if is_skip { SKIP } else { Status::label(found) });
        count(&self.pre_filter, place, u64::from(!is_skip));
    }

    /// A plugin has prepared its scores; one that has nothing to say is not counted.
    pub(super) fn pre_scored(&self, place: usize, started: Started, plugin: &str, found: &Result<PreScored, Status>) {
        let is_skip = matches!(found, Ok(PreScored::Skip));
        self.ran(started, "PreScore", plugin, if is_skip { SKIP } else { Status::label(found) });
        count(&self.pre_score, place, u64::from(!is_skip));
    }

    /// A plugin gave scores that were not known.
    pub(super) fn scored(&self, place: usize, nodes: u64) {
        count(&self.score, place, nodes);
    }
}

fn count(counters: &[Counter], place: usize, times: u64) {
    if let Some(counter) = counters.get(place).filter(|_| times > 0) {
        #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
        counter.inc_by(times as f64);
    }
}

/// What the filters said of a node, and which of them were asked.
pub(crate) struct Asked {
    pub(crate) filters: Range<usize>,
    pub(crate) outcome: StatusResult,
}

/// How often each filter was asked in one look at many nodes: the counters are shared, this is not.
#[derive(Default)]
pub(crate) struct FilterTally {
    /// At each filter, how many looks began there more than ended before it.
    changes: Vec<i64>,
}

impl FilterTally {
    /// Some filters were asked about a node.
    pub(crate) fn add(&mut self, asked: &Range<usize>) {
        if self.changes.len() <= asked.end {
            self.changes.resize(asked.end + 1, 0);
        }
        for (place, change) in [(asked.start, 1), (asked.end, -1)] {
            if let Some(changes) = self.changes.get_mut(place) {
                *changes += change;
            }
        }
    }

    /// How often each was asked, in order.
    pub(super) fn asked(&self) -> impl Iterator<Item = u64> + '_ {
        let running = self.changes.iter().scan(0_i64, |sum, change| {
            *sum += change;
            Some(*sum)
        });
        running.map(|sum| u64::try_from(sum).unwrap_or(0))
    }
}

impl super::Profile {
    /// Counts the filters that were asked about one node.
    pub(super) fn count_filters_once(&self, asked: Range<usize>, skip: super::PluginMask) {
        for (place, at) in self.filter.iter().enumerate().take(asked.end).skip(asked.start) {
            if !skip.contains(at.place) {
                count(&self.measured.filter, place, 1);
            }
        }
    }

    /// Counts the filters that were asked; those with nothing to say about the pod were not.
    pub(crate) fn count_filters(&self, tally: &FilterTally, skip: super::PluginMask) {
        for (place, (at, asked)) in self.filter.iter().zip(tally.asked()).enumerate() {
            if !skip.contains(at.place) {
                count(&self.measured.filter, place, asked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_counted_as_far_as_they_were_asked() {
        let mut tally = FilterTally::default();
        for asked in [0..5, 0..2, 3..5, 0..1] {
            tally.add(&asked);
        }
        assert_eq!(tally.asked().collect::<Vec<_>>(), [3, 2, 1, 2, 2, 0]);
        assert_eq!(FilterTally::default().asked().count(), 0);
    }
}
