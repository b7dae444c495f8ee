//! Metrics that the container runtime itself has of pods and containers, as `/metrics/cadvisor` shows them with the gate
//! `PodAndContainerStatsFromCRI` (<https://kep.k8s.io/2371>).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use node_api::cri::v1::{Metric, MetricDescriptor, MetricType};
use node_api::cri::{CriError, Runtime};

/// Nanoseconds in a millisecond.
const MILLI: i64 = 1_000_000;

/// The families in Prometheus' text form. What the runtime does not describe, or not in a form that can be shown, is left
/// out, and so is all if it does not answer: the rest of a scrape is worth having.
pub(super) async fn text(runtime: &dyn Runtime) -> String {
    match ask(runtime).await {
        Ok(text) => text,
        Err(error) => {
            tracing::warn!(%error, "The container runtime does not tell its metrics");
            String::new()
        }
    }
}

async fn ask(runtime: &dyn Runtime) -> Result<String, CriError> {
    let described = runtime.list_metric_descriptors().await?;
    let mut families = Families::new(&described);
    for pod in runtime.list_pod_sandbox_metrics().await? {
        let of_containers = pod.container_metrics.into_iter().flat_map(|container| container.metrics);
        for metric in pod.metrics.into_iter().chain(of_containers) {
            families.put(&metric);
        }
    }
    Ok(families.text())
}

/// One family: what it is, and its samples by their labels, of which each is there once.
struct Family<'a> {
    described: &'a MetricDescriptor,
    kind: Option<MetricType>,
    samples: BTreeMap<String, (u64, i64)>,
}

/// Families by name.
struct Families<'a>(BTreeMap<&'a str, Family<'a>>);

impl<'a> Families<'a> {
    fn new(described: &'a [MetricDescriptor]) -> Self {
        let good = described.iter().filter(|one| is_name(&one.name) && one.label_keys.iter().all(|key| is_label(key)));
        let family = |described| Family { described, kind: None, samples: BTreeMap::new() };
        Self(good.map(|one| (one.name.as_str(), family(one))).collect())
    }

    fn put(&mut self, metric: &Metric) {
        let Some(family) = self.0.get_mut(metric.name.as_str()) else { return };
        let keys = &family.described.label_keys;
        if keys.len() != metric.label_values.len() || family.kind.is_some_and(|kind| kind != metric.metric_type()) {
            tracing::debug!(name = metric.name, "A metric of the container runtime is not as it is described");
            return;
        }
        family.kind = Some(metric.metric_type());
        let pairs: Vec<String> =
            keys.iter().zip(&metric.label_values).map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
        let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
        let value = metric.value.as_ref().map(|value| value.value).unwrap_or_default();
        family.samples.entry(labels).or_insert((value, metric.timestamp));
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (name, Family { described, kind, samples }) in &self.0 {
            let Some(kind) = kind else { continue };
            let kind = match kind {
                MetricType::Counter => "counter",
                MetricType::Gauge => "gauge",
            };
            let help = described.help.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, (value, timestamp)) in samples {
                // Without one the sample was taken for this very question.
                let _ = match timestamp {
                    0 => writeln!(out, "{name}{labels} {value}"),
                    _ => writeln!(out, "{name}{labels} {value} {}", timestamp / MILLI),
                };
            }
        }
        out
    }
}

fn is_name(name: &str) -> bool {
    is_label(&name.replace(':', "_"))
}

fn is_label(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    begins && name.chars().all(|own| own.is_ascii_alphanumeric() || own == '_')
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use base::{SystemClock, TaskGroup};
    use node_api::cri::Code;
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::v1::{ContainerMetrics, PodSandboxMetrics, UInt64Value};

    use super::*;

    fn described(name: &str, keys: &[&str]) -> MetricDescriptor {
        let label_keys = keys.iter().map(|key| (*key).to_owned()).collect();
        MetricDescriptor { name: name.into(), help: "What\nit is".into(), label_keys }
    }

    fn metric(name: &str, kind: MetricType, labels: &[&str], value: u64, timestamp: i64) -> Metric {
        let label_values = labels.iter().map(|value| (*value).to_owned()).collect();
        let value = Some(UInt64Value { value });
        Metric { name: name.into(), timestamp, metric_type: kind.into(), label_values, value }
    }

    #[tokio::test]
    async fn what_the_runtime_describes_is_shown() {
        use MetricType::{Counter, Gauge};
        let runtime = FakeRuntime::new(SystemClock::shared(), &TaskGroup::new("runtime"));
        let (cpu, memory) = ("container_cpu_usage_seconds_total", "container_memory_usage_bytes");
        let bad = ["1st", "a b", ""].map(|name| described(name, &[]));
        let keyed = described("keyed", &["a\"} 1\nother{b=\""]);
        let known = [described(cpu, &["pod", "name"]), described(memory, &[]), described("unused", &[]), keyed];
        runtime.set_metrics(
            known.into_iter().chain(bad).collect(),
            vec![PodSandboxMetrics {
                pod_sandbox_id: "s".into(),
                metrics: vec![
                    metric(memory, Gauge, &[], 5, 1_700_000_000_123_456_789),
                    metric(memory, Gauge, &[], 6, 0),
                    metric(memory, Counter, &["x"], 6, 0),
                    metric("unknown", Gauge, &[], 1, 0),
                    metric("keyed", Gauge, &["v"], 1, 0),
                    metric("a b", Gauge, &[], 1, 0),
                ],
                container_metrics: vec![ContainerMetrics {
                    container_id: "c".into(),
                    metrics: vec![
                        metric(cpu, Counter, &["web", "a\"b\\c\nd"], 7, 0),
                        metric(cpu, Gauge, &["web", "other"], 7, 0),
                        metric(cpu, Counter, &["too few"], 7, 0),
                    ],
                }],
            }],
        );
        let expected = "# HELP container_cpu_usage_seconds_total What\\nit is\n\
                        # TYPE container_cpu_usage_seconds_total counter\n\
                        container_cpu_usage_seconds_total{pod=\"web\",name=\"a\\\"b\\\\c\\nd\"} 7\n\
                        # HELP container_memory_usage_bytes What\\nit is\n\
                        # TYPE container_memory_usage_bytes gauge\n\
                        container_memory_usage_bytes 5 1700000000123\n";
        assert_eq!(text(&runtime).await, expected);
        let none = CriError::rpc("list_podsandbox_metrics", Code::Unimplemented, "no");
        runtime.fail_next("list_podsandbox_metrics", none);
        assert_eq!(text(&runtime).await, "", "the scrape does not fail for it");
    }
}
