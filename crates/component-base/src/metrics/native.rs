//! Native histograms (KEP-5808): counts in buckets whose bounds grow by a factor, kept beside the classic ones and shown in
//! protobuf only. See <https://prometheus.io/docs/specs/native_histograms/>.

use std::collections::BTreeMap;
use std::sync::Arc;

use feature_gates::Feature;
use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;

use super::family::Vector;

/// Histograms have native buckets.
pub(super) const GATE: Feature = Feature::named("NativeHistograms");

/// The finest resolution: each bound is 2^(2^-3) times the one before, the first factor of this form that is not above 1.1.
const FINEST: i32 = 3;
/// The coarsest one: a factor of 2^16.
const COARSEST: i32 = -4;
/// More buckets in use than this make all of them wider.
const MAX_BUCKETS: usize = 160;
/// What is no farther from zero than this counts as zero: 2^-128.
pub(super) const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;
/// The bounds of the finest resolution between a half and one.
const BOUNDS: [f64; 8] = [
    0.5,
    0.545_253_866_332_628_8,
    0.594_603_557_501_360_5,
    0.648_419_777_325_504_8,
    0.707_106_781_186_547_5,
    0.771_105_412_703_970_4,
    0.840_896_415_253_714_4,
    0.917_004_043_204_671_1,
];
/// Buckets without anything in them that are written out rather than begin a new span after them.
const MAX_GAP: i32 = 2;

/// One series of histograms. Clones share its numbers.
#[derive(Debug, Clone)]
pub struct Histogram {
    classic: prometheus::Histogram,
    /// None where the process has no native buckets, which then cost nothing.
    native: Option<Arc<Mutex<Counts>>>,
}

impl Histogram {
    /// Counts a value.
    pub fn observe(&self, value: f64) {
        // First here, so that whoever reads the classic buckets first never finds fewer here.
        if let Some(native) = &self.native {
            native.lock().observe(value);
        }
        self.classic.observe(value);
    }

    /// What the native buckets hold, where there are any.
    pub(super) fn counts(&self) -> Option<Counts> {
        self.native.as_ref().map(|native| native.lock().clone())
    }
}

/// Histograms of one name.
#[derive(Clone)]
pub struct HistogramVec {
    pub(super) classic: prometheus::HistogramVec,
    pub(super) has_natives: bool,
}

impl Collector for HistogramVec {
    fn desc(&self) -> Vec<&Desc> {
        self.classic.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.classic.collect()
    }
}

impl Vector for HistogramVec {
    type Series = Histogram;

    fn series(&self, values: &[&str]) -> Histogram {
        Histogram { classic: self.classic.series(values), native: self.has_natives.then(Arc::default) }
    }

    fn forget(&self, values: &[&str]) {
        self.classic.forget(values);
    }

    fn forget_all(&self) {
        self.classic.forget_all();
    }
}

/// What native buckets hold. Bounded: where too many are in use, they become wider.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counts {
    /// Each bound is 2^(2^-schema) times the one before.
    pub(super) schema: i32,
    /// All values.
    pub(super) count: u64,
    pub(super) sum: f64,
    /// Those about zero.
    pub(super) zero: u64,
    /// By the index of the bucket, whose upper bound, which belongs to it, is the factor to the power of the index.
    positive: BTreeMap<i32, u64>,
    negative: BTreeMap<i32, u64>,
}

impl Default for Counts {
    fn default() -> Self {
        let (positive, negative) = (BTreeMap::new(), BTreeMap::new());
        Self { schema: FINEST, count: 0, sum: 0.0, zero: 0, positive, negative }
    }
}

impl Counts {
    fn observe(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if value.is_nan() {
            return;
        }
        if value.abs() <= ZERO_THRESHOLD {
            self.zero += 1;
            return;
        }
        let index = index(value.abs(), self.schema);
        let side = if value > 0.0 { &mut self.positive } else { &mut self.negative };
        *side.entry(index).or_default() += 1;
        while self.positive.len() + self.negative.len() > MAX_BUCKETS && self.schema > COARSEST {
            self.schema -= 1;
            self.positive = widened(&self.positive);
            self.negative = widened(&self.negative);
        }
    }

    /// The buckets above zero.
    pub(super) fn positive(&self) -> Spans {
        Spans::of(&self.positive)
    }

    /// The buckets below zero.
    pub(super) fn negative(&self) -> Spans {
        Spans::of(&self.negative)
    }
}

/// Each two buckets as one.
fn widened(buckets: &BTreeMap<i32, u64>) -> BTreeMap<i32, u64> {
    let mut wider = BTreeMap::new();
    for (index, count) in buckets {
        *wider.entry((index + 1) >> 1).or_default() += count;
    }
    wider
}

/// The bucket of a value, which is positive and not about zero.
fn index(value: f64, schema: i32) -> i32 {
    if value.is_infinite() {
        return index(f64::MAX, schema) + 1;
    }
    let (fraction, exponent) = parts(value);
    let within = BOUNDS.partition_point(|bound| *bound < fraction);
    let finest = i32::try_from(within).unwrap_or(0) + ((exponent - 1) << FINEST);
    let coarser = FINEST - schema;
    (finest + (1 << coarser) - 1) >> coarser
}

/// A value as a fraction from a half up to one, times a power of two. What is about zero is none of these, so that no value has
/// fewer digits than others.
fn parts(value: f64) -> (f64, i32) {
    const EXPONENT: u64 = 0x7ff;
    const OF_A_HALF: u64 = 1022;
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> 52) & EXPONENT).unwrap_or(0);
    (f64::from_bits(bits & !(EXPONENT << 52) | OF_A_HALF << 52), exponent - 1022)
}

/// Buckets as they are written: where each run of them begins, how long it is, and by how much each count differs from the
/// one before.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    /// How far from the end of the run before, and how many.
    pub(super) spans: Vec<(i32, u32)>,
    pub(super) deltas: Vec<i64>,
}

impl Spans {
    fn of(buckets: &BTreeMap<i32, u64>) -> Self {
        let (mut all, mut next, mut last) = (Self::default(), 0, 0_i64);
        for (index, count) in buckets {
            let gap = index - next;
            if all.spans.is_empty() || gap > MAX_GAP {
                all.spans.push((gap, 0));
            } else {
                (0..gap).for_each(|_| all.push(0, &mut last));
            }
            all.push(*count, &mut last);
            next = index + 1;
        }
        all
    }

    fn push(&mut self, count: u64, last: &mut i64) {
        let count = count.cast_signed();
        self.deltas.push(count - *last);
        *last = count;
        if let Some((_, length)) = self.spans.last_mut() {
            *length += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_at_most_the_bound_of_their_bucket() {
        for (value, schema, expected) in [
            (1.0, 3, 0),
            (1.000_001, 3, 1),
            (2.0, 3, 8),
            (0.5, 3, -8),
            (1.1, 3, 2),
            (1.0, 0, 0),
            (1.5, 0, 1),
            (2.0, 0, 1),
            (2.1, 0, 2),
            (17.0, -2, 2),
            (0.3, 1, -3),
            (f64::MAX, 3, 8192),
            (f64::INFINITY, 3, 8193),
        ] {
            assert_eq!(index(value, schema), expected, "{value} at {schema}");
        }
        for exponent in -300..300 {
            let value = f64::from(exponent).exp2() * 1.3;
            let bound = |index: i32| (f64::from(index) / 8.0).exp2();
            let at = index(value.max(ZERO_THRESHOLD * 2.0), 3);
            assert!(value < ZERO_THRESHOLD * 2.0 || (bound(at - 1) < value && value <= bound(at)), "{value}");
        }
    }

    #[test]
    fn everything_is_counted_once() {
        let mut counts = Counts::default();
        [1.0, 1.0, 1.5, -2.0, 0.0, 1e-40, f64::NAN, 1000.0].into_iter().for_each(|value| counts.observe(value));
        assert_eq!((counts.count, counts.zero), (8, 2));
        assert!(counts.sum.is_nan());
        let expected = Spans { spans: vec![(0, 1), (4, 1), (74, 1)], deltas: vec![2, -1, 0] };
        assert_eq!(counts.positive(), expected);
        assert_eq!(counts.negative(), Spans { spans: vec![(8, 1)], deltas: vec![1] });
        let mut near = Counts::default();
        [1.0, 1.0, 1.2].into_iter().for_each(|value| near.observe(value));
        // A short gap is written out.
        assert_eq!(near.positive(), Spans { spans: vec![(0, 4)], deltas: vec![2, -2, 0, 1] }, "{near:?}");
    }

    #[test]
    fn too_many_buckets_become_wider() {
        let mut counts = Counts::default();
        for step in 0..1000 {
            counts.observe((f64::from(step) / 8.0).exp2());
        }
        assert!(counts.positive.len() <= MAX_BUCKETS && counts.schema == 0, "{}", counts.schema);
        assert_eq!(counts.positive.values().sum::<u64>(), 1000);
        let mut again = Counts { schema: 0, ..Counts::default() };
        for step in 0..1000 {
            again.observe((f64::from(step) / 8.0).exp2());
        }
        assert_eq!(counts.positive, again.positive, "as if they had been that wide at once");
    }
}
