//! What a kubelet tells at `/metrics/resource`, read line by line in place (the text format of Prometheus).

use std::collections::BTreeMap;

use crate::usage::{PodName, Point};

/// More samples than this are not read from one node: a kubelet has a few for each of some hundred containers.
const MAX_LINES: usize = 1_000_000;

/// What one node told.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Scrape {
    /// Of the node itself.
    pub(crate) node: Option<Point>,
    /// Of each container of each pod.
    pub(crate) pods: BTreeMap<PodName, BTreeMap<String, Point>>,
}

/// What is known of one thing so far.
#[derive(Debug, Default, Clone, Copy)]
struct Partial {
    at_ms: Option<i64>,
    cpu_seconds: Option<f64>,
    memory_bytes: Option<f64>,
    started_seconds: Option<f64>,
}

impl Partial {
    /// A point, if everything that one needs was told.
    fn whole(self) -> Option<Point> {
        let (cpu, memory) = (self.cpu_seconds?, self.memory_bytes?);
        Some(Point {
            at_ns: self.at_ms?.checked_mul(1_000_000)?,
            cpu_ns: whole(cpu * 1e9)?,
            memory_bytes: whole(memory)?,
            started_ns: self.started_seconds.and_then(|seconds| whole(seconds * 1e9)).unwrap_or(0),
        })
    }
}

/// A number that is neither negative nor out of range, without its fraction.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn whole(value: f64) -> Option<i64> {
    (0.0..9e18).contains(&value).then_some(value as i64)
}

/// Reads all that matters; lines that are not understood are passed over.
pub(crate) fn read(text: &str) -> Scrape {
    let mut node = Partial::default();
    let mut containers = BTreeMap::<(&str, &str, &str), Partial>::new();
    for sample in text.lines().take(MAX_LINES).filter_map(Sample::read) {
        let partial = if sample.name.starts_with("node_") {
            &mut node
        } else {
            let Some(key) = sample.container() else { continue };
            containers.entry(key).or_default()
        };
        match sample.name {
            "node_cpu_usage_seconds_total" | "container_cpu_usage_seconds_total" => {
                partial.cpu_seconds = Some(sample.value);
                partial.at_ms = sample.at_ms;
            }
            "node_memory_working_set_bytes" | "container_memory_working_set_bytes" => {
                partial.memory_bytes = Some(sample.value);
            }
            "container_start_time_seconds" => partial.started_seconds = Some(sample.value),
            _ => {}
        }
    }
    let mut told = Scrape { node: node.whole(), pods: BTreeMap::new() };
    for ((namespace, pod, container), partial) in containers {
        if let Some(point) = partial.whole() {
            let pod = PodName::new(namespace, pod);
            told.pods.entry(pod).or_default().insert(container.to_owned(), point);
        }
    }
    told
}

/// One line: `name{label="value"} value timestamp`.
struct Sample<'t> {
    name: &'t str,
    labels: &'t str,
    value: f64,
    at_ms: Option<i64>,
}

impl<'t> Sample<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let end = line.find(['{', ' ', '\t'])?;
        let (name, rest) = line.split_at(end);
        let (labels, rest) = match rest.strip_prefix('{') {
            // Values of these labels are names, which have no braces in them.
            Some(rest) => rest.split_once('}')?,
            None => ("", rest),
        };
        let mut numbers = rest.split_ascii_whitespace();
        let value = numbers.next()?.parse().ok()?;
        let at_ms = numbers.next().and_then(|text| text.parse().ok());
        Some(Self { name, labels, value, at_ms })
    }

    fn label(&self, name: &str) -> Option<&'t str> {
        let pairs = self.labels.split(',').filter_map(|pair| pair.split_once('='));
        let value = pairs.into_iter().find(|(own, _)| own.trim() == name)?.1;
        value.trim().strip_prefix('"')?.strip_suffix('"')
    }

    /// Namespace, pod and container.
    fn container(&self) -> Option<(&'t str, &'t str, &'t str)> {
        let name = |label: &str| self.label(label).filter(|value| !value.is_empty());
        Some((name("namespace")?, name("pod")?, name("container")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP node_cpu_usage_seconds_total Cumulative cpu time
# TYPE node_cpu_usage_seconds_total counter
node_cpu_usage_seconds_total 100.5 1700000000000
node_memory_working_set_bytes 1.048576e+06 1700000000000
container_cpu_usage_seconds_total{container="c",namespace="ns",pod="p"} 2.25 1700000000500
container_memory_working_set_bytes{container="c",namespace="ns",pod="p"} 2048 1700000000500
container_start_time_seconds{container="c",namespace="ns",pod="p"} 1.7e+09
container_cpu_usage_seconds_total{container="half",namespace="ns",pod="p"} 2.25 1700000000500
pod_cpu_usage_seconds_total{namespace="ns",pod="p"} 3 1700000000500
container_cpu_usage_seconds_total{container="c",namespace="ns",pod="bad"} -1 1700000000500
container_memory_working_set_bytes{container="c",namespace="ns",pod="bad"} 1 1700000000500
resource_scrape_error 0
nonsense
broken{container="c" 5
"#;

    #[test]
    fn what_matters_is_read() {
        let told = read(TEXT);
        let at_ns = 1_700_000_000_000_000_000;
        let node = Point { at_ns, cpu_ns: 100_500_000_000, memory_bytes: 1 << 20, started_ns: 0 };
        assert_eq!(told.node, Some(node));
        let container =
            Point { at_ns: at_ns + 500_000_000, cpu_ns: 2_250_000_000, memory_bytes: 2048, started_ns: at_ns };
        let pod = BTreeMap::from([("c".to_owned(), container)]);
        assert_eq!(told.pods, BTreeMap::from([(PodName::new("ns", "p"), pod)]));
        assert_eq!(read(""), Scrape::default());
    }
}
