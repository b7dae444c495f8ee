//! Families in Prometheus' protobuf form (`io.prometheus.client.MetricFamily`), and who wants that.

use api_machinery::protobuf::Encoder;
use http::{HeaderMap, header};
use prometheus::proto::{Histogram, Metric, MetricFamily, MetricType};

use super::native::{Counts, Spans, ZERO_THRESHOLD};

/// What protobuf is served as.
pub(super) const CONTENT_TYPE: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// Whether whoever asks would rather have protobuf than text.
pub(super) fn prefers_protobuf(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let mut best = (0.0, false);
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let parameter = |name: &str| parameters.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| *value);
        let is_protobuf = match media_type {
            "application/vnd.google.protobuf" => {
                if (parameter("proto"), parameter("encoding")) != ("io.prometheus.client.MetricFamily", "delimited") {
                    continue;
                }
                true
            }
            "text/plain" if ["", "0.0.4"].contains(&parameter("version")) => false,
            _ => continue,
        };
        let weight: f64 = parameter("q").parse().unwrap_or(1.0);
        if weight > best.0 {
            best = (weight, is_protobuf);
        }
    }
    best.1
}

/// Families one after the other, each with its length before it. `natives` knows what native buckets a metric of a family has.
pub(super) fn encode(families: &[MetricFamily], natives: impl Fn(&MetricFamily, &Metric) -> Option<Counts>) -> Vec<u8> {
    let mut all = Vec::new();
    for own in families {
        let mut out = Encoder::default();
        family(&mut out, own, &|metric| natives(own, metric));
        out.varint(out.len() as u64);
        all.extend(out.into_vec());
    }
    all
}

/// Members are written from the last to the first.
fn family(out: &mut Encoder, family: &MetricFamily, natives: &dyn Fn(&Metric) -> Option<Counts>) {
    let kind = family.get_field_type();
    for own in family.get_metric().iter().rev() {
        out.message(4, |out| metric(out, kind, own, natives));
    }
    let number = match kind {
        MetricType::COUNTER => 0,
        MetricType::GAUGE => 1,
        MetricType::SUMMARY => 2,
        MetricType::UNTYPED => 3,
        MetricType::HISTOGRAM => 4,
    };
    out.int(3, number);
    out.bytes(2, family.help().as_bytes());
    out.bytes(1, family.name().as_bytes());
}

fn metric(out: &mut Encoder, kind: MetricType, metric: &Metric, natives: &dyn Fn(&Metric) -> Option<Counts>) {
    match kind {
        MetricType::COUNTER => out.message(3, |out| out.double(1, metric.get_counter().get_value())),
        MetricType::GAUGE => out.message(2, |out| out.double(1, metric.get_gauge().get_value())),
        MetricType::HISTOGRAM => {
            let native = natives(metric);
            out.message(7, |out| histogram(out, metric.get_histogram(), native.as_ref()));
        }
        // There are none.
        MetricType::SUMMARY | MetricType::UNTYPED => {}
    }
    for label in metric.get_label().iter().rev() {
        out.message(1, |out| {
            out.bytes(2, label.value().as_bytes());
            out.bytes(1, label.name().as_bytes());
        });
    }
}

fn histogram(out: &mut Encoder, classic: &Histogram, native: Option<&Counts>) {
    if let Some(native) = native {
        spans(out, (12, 13), &native.positive());
        spans(out, (9, 10), &native.negative());
        out.int(7, native.zero.cast_signed());
        out.double(6, ZERO_THRESHOLD);
        out.int(5, zigzag(native.schema.into()));
    }
    for bucket in classic.get_bucket().iter().rev() {
        out.message(3, |out| {
            out.double(2, bucket.upper_bound());
            out.int(1, bucket.cumulative_count().cast_signed());
        });
    }
    // All of a native histogram must be of the same moment.
    out.double(2, native.map_or(classic.get_sample_sum(), |native| native.sum));
    out.int(1, native.map_or(classic.get_sample_count(), |native| native.count).cast_signed());
}

fn spans(out: &mut Encoder, (span, delta): (u32, u32), buckets: &Spans) {
    for own in buckets.deltas.iter().rev() {
        out.int(delta, zigzag(*own));
    }
    for (offset, length) in buckets.spans.iter().rev() {
        out.message(span, |out| {
            out.int(2, i64::from(*length));
            out.int(1, zigzag(i64::from(*offset)));
        });
    }
}

/// A number that may be below zero, so that small ones stay short.
const fn zigzag(value: i64) -> i64 {
    (value << 1) ^ (value >> 63)
}
