//! Metrics of one name, told apart by labels.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::proto::LabelPair;
use rustc_hash::FxHasher;

use super::native::{Counts, HistogramVec};
use super::{Desc, Natives, Resettable};

/// Counters of one name.
pub type Counters = Family<prometheus::CounterVec>;
/// Gauges of one name.
pub type Gauges = Family<prometheus::GaugeVec>;
/// Histograms of one name.
pub type Histograms = Family<HistogramVec>;

/// What counters, gauges and histograms by label have in common.
pub trait Vector: Collector + Clone + 'static {
    /// One series; clones share its numbers.
    type Series: Clone + Send + Sync;

    /// The series of these label values, made when it is not there.
    fn series(&self, values: &[&str]) -> Self::Series;

    /// Forgets the series of these label values.
    fn forget(&self, values: &[&str]);

    /// Forgets all series.
    fn forget_all(&self);
}

impl<B: MetricVecBuilder + 'static> Vector for MetricVec<B> {
    type Series = B::M;

    fn series(&self, values: &[&str]) -> B::M {
        self.with_label_values(values)
    }

    fn forget(&self, values: &[&str]) {
        // Not having been there is as good.
        let _ = self.remove_label_values(values);
    }

    fn forget_all(&self) {
        self.reset();
    }
}

/// The value of a label that is not on its list, or of a series too many.
const UNEXPECTED: &str = "unexpected";

/// The allowed values of each label that has a list.
pub(super) type Allowed = Vec<(usize, BTreeSet<String>)>;

/// Metrics of one name. Clones share the series.
pub struct Family<V: Vector> {
    desc: &'static Desc,
    vec: V,
    shared: Arc<Shared<V::Series>>,
}

struct Shared<S> {
    allowed: Allowed,
    /// The series there are, by the hash of their label values: what is counted with every request is looked up here, and
    /// only what is new in the vector. Two whose hashes are the same are counted as one.
    seen: RwLock<HashMap<u64, S, BuildHasherDefault<Given>>>,
    overflowed: AtomicBool,
}

impl<V: Vector> Clone for Family<V> {
    fn clone(&self) -> Self {
        Self { desc: self.desc, vec: self.vec.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<V: Vector> Family<V> {
    pub(super) fn new(desc: &'static Desc, vec: V, allowed: Allowed) -> Self {
        let shared = Shared { allowed, seen: RwLock::default(), overflowed: AtomicBool::new(false) };
        let family = Self { desc, vec, shared: Arc::new(shared) };
        if desc.label_names.is_empty() {
            // Shown as zero before its first use, as upstream's are.
            family.with(&[]);
        }
        family
    }

    /// The metric for these label values, in the order of the declaration. This looks the series up under a lock: keep
    /// the result where the values do not change. A wrong number of values is a mistake in the program and panics.
    #[track_caller]
    pub fn with(&self, values: &[&str]) -> V::Series {
        assert_eq!(values.len(), self.desc.label_names.len(), "label values of {}", self.desc.name);
        if self.shared.allowed.is_empty() {
            return self.within_bound(values);
        }
        let mut values = values.to_vec();
        for (label, allowed) in &self.shared.allowed {
            if let Some(value) = values.get_mut(*label).filter(|value| !allowed.contains(**value)) {
                *value = UNEXPECTED;
            }
        }
        self.within_bound(&values)
    }

    /// Forgets a series, such as that of an object that is gone.
    pub fn remove(&self, values: &[&str]) {
        let mut seen = self.shared.seen.write();
        seen.remove(&fingerprint(values));
        self.vec.forget(values);
    }

    fn within_bound(&self, values: &[&str]) -> V::Series {
        let hash = fingerprint(values);
        if let Some(series) = self.shared.seen.read().get(&hash) {
            return series.clone();
        }
        let mut seen = self.shared.seen.write();
        if seen.len() < self.desc.max_series {
            return seen.entry(hash).or_insert_with(|| self.vec.series(values)).clone();
        }
        drop(seen);
        if !self.shared.overflowed.swap(true, Ordering::Relaxed) {
            tracing::warn!(name = self.desc.name, limit = self.desc.max_series, "A metric has too many series");
        }
        self.vec.series(&vec![UNEXPECTED; values.len()])
    }
}

/// The hash of label values; where one ends and the next begins counts, too.
fn fingerprint(values: &[&str]) -> u64 {
    let mut hasher = FxHasher::default();
    for value in values {
        hasher.write(value.as_bytes());
    }
    hasher.finish()
}

/// The hash of what is one already.
#[derive(Default)]
struct Given(u64);

impl Hasher for Given {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Natives for Histograms {
    fn counts(&self, labels: &[LabelPair]) -> Option<Counts> {
        let value = |name: &&str| labels.iter().find(|label| label.name() == *name).map_or("", LabelPair::value);
        let values: Vec<&str> = self.desc.label_names.iter().map(value).collect();
        self.shared.seen.read().get(&fingerprint(&values))?.counts()
    }
}

impl<V: Vector> Resettable for Family<V> {
    fn reset(&self) {
        if !self.desc.label_names.is_empty() {
            let mut seen = self.shared.seen.write();
            seen.clear();
            self.vec.forget_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_have_one_hash_each_wherever_they_are_cut() {
        let long = "x".repeat(300);
        let fill = "y".repeat(191);
        let all: [&[&str]; 10] = [
            &[],
            &[""],
            &["", ""],
            &["ab", "c"],
            &["a", "bc"],
            &["abc"],
            &[&long],
            &[&long, ""],
            &[&fill, "z"],
            &["z", &fill],
        ];
        let mut seen = BTreeSet::new();
        for values in all {
            assert!(seen.insert(fingerprint(values)), "{values:?}");
            assert_eq!(fingerprint(values), fingerprint(values));
        }
    }
}
