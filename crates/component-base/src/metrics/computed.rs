//! Families whose values are looked up when `/metrics` is asked for.

use prometheus::core::{Collector, Desc as PrometheusDesc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::Desc;

/// The value of one series.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Goes up and down.
    Gauge(f64),
    /// Goes up.
    Counter(f64),
    /// Upper bounds with the counts below each, all counts, and the sum.
    Histogram(Vec<(f64, u64)>, u64, f64),
}

/// One series: the values of its labels in the order of the declaration, and its own.
pub type Sample = (Vec<String>, Value);

/// Looks the series of a family up.
pub type Samples = Box<dyn Fn() -> Vec<Sample> + Send + Sync>;

pub(super) struct Computed {
    desc: &'static Desc,
    own: Vec<PrometheusDesc>,
    kind: MetricType,
    samples: Samples,
}

impl Computed {
    pub(super) fn new(desc: &'static Desc, kind: MetricType, samples: Samples) -> Self {
        use prometheus::core::Describer as _;
        let opts = desc.opts().variable_labels(desc.label_names.iter().map(|&name| name.to_owned()).collect());
        Self { desc, own: opts.describe().into_iter().collect(), kind, samples }
    }

    fn metric(&self, (values, value): Sample) -> Metric {
        let pair = |(name, value): (&&str, String)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value(value);
            pair
        };
        let mut labels: Vec<LabelPair> = self.desc.label_names.iter().zip(values).map(pair).collect();
        labels.sort();
        let mut metric = Metric::default();
        metric.set_label(labels);
        match value {
            Value::Gauge(value) => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            Value::Counter(value) => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            Value::Histogram(buckets, count, sum) => metric.set_histogram(histogram(buckets, count, sum)),
        }
        metric
    }
}

fn histogram(buckets: Vec<(f64, u64)>, count: u64, sum: f64) -> Histogram {
    let bucket = |(bound, count)| {
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(bound);
        bucket.set_cumulative_count(count);
        bucket
    };
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.into_iter().map(bucket).collect());
    histogram.set_sample_count(count);
    histogram.set_sample_sum(sum);
    histogram
}

impl Collector for Computed {
    fn desc(&self) -> Vec<&PrometheusDesc> {
        self.own.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics: Vec<Metric> = (self.samples)().into_iter().map(|sample| self.metric(sample)).collect();
        if metrics.is_empty() {
            return Vec::new();
        }
        let mut family = MetricFamily::default();
        family.set_name(self.desc.name.to_owned());
        family.set_help(self.own.first().map(|own| own.help.clone()).unwrap_or_default());
        family.set_field_type(self.kind);
        family.set_metric(metrics);
        vec![family]
    }
}
