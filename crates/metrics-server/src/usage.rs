//! The last two points of everything, and what was used between them.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::RwLock;

use crate::exposition::Scrape;

/// A container that is younger than this is not told of by its start alone.
const YOUNGEST_NS: i64 = 10_000_000_000;

/// Namespace and name of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PodName {
    namespace: Box<str>,
    name: Box<str>,
}

impl PodName {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// What something had used at a time; times are since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) at_ns: i64,
    /// Of processor time, since it began.
    pub(crate) cpu_ns: i64,
    pub(crate) memory_bytes: i64,
    /// When it began; zero where that is not known.
    pub(crate) started_ns: i64,
}

/// The last point and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    last: Point,
    former: Option<Point>,
}

/// What was used over a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// The end of the window, in seconds since the Unix epoch.
    pub(crate) at_seconds: i64,
    pub(crate) window: Duration,
    /// Billionths of a processor.
    pub(crate) nanocores: i64,
    pub(crate) memory_bytes: i64,
}

impl Pair {
    /// The pair after another point. `resolution_ns` is how often there should be one.
    fn next(known: Option<&Self>, point: Point, resolution_ns: i64) -> Self {
        match known {
            // A kubelet that has nothing new says the same again.
            Some(known) if point.at_ns <= known.last.at_ns && point.started_ns == known.last.started_ns => *known,
            Some(known) if point.started_ns <= known.last.at_ns && point.cpu_ns >= known.last.cpu_ns => {
                Self { last: point, former: Some(known.last) }
            }
            _ => Self { last: point, former: Self::beginning(point, resolution_ns) },
        }
    }

    /// What has just begun had used nothing when it did.
    fn beginning(point: Point, resolution_ns: i64) -> Option<Point> {
        let age = point.at_ns - point.started_ns;
        let is_young = point.started_ns > 0 && age >= YOUNGEST_NS && age < resolution_ns;
        is_young.then_some(Point { at_ns: point.started_ns, cpu_ns: 0, ..point })
    }

    fn usage(&self) -> Option<Usage> {
        let former = self.former?;
        let window = self.last.at_ns.checked_sub(former.at_ns).filter(|window| *window > 0)?;
        let used = i128::from(self.last.cpu_ns.checked_sub(former.cpu_ns).filter(|used| *used >= 0)?);
        Some(Usage {
            at_seconds: self.last.at_ns / 1_000_000_000,
            window: Duration::from_nanos(u64::try_from(window).ok()?),
            nanocores: i64::try_from(used * 1_000_000_000 / i128::from(window)).ok()?,
            memory_bytes: self.last.memory_bytes,
        })
    }
}

type Containers = BTreeMap<Box<str>, Pair>;

#[derive(Debug, Default)]
struct Known {
    nodes: BTreeMap<Box<str>, Pair>,
    pods: BTreeMap<PodName, Containers>,
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Usages {
    known: RwLock<Known>,
}

impl Usages {
    /// Takes in what all nodes told in one round. What nobody told of any more is forgotten.
    pub(crate) fn take(&self, round: Vec<(String, Scrape)>, resolution: Duration) {
        let resolution = i64::try_from(resolution.as_nanos()).unwrap_or(i64::MAX);
        let mut next = Known::default();
        let known = self.known.read();
        for (node, told) in round {
            if let Some(point) = told.node {
                let pair = Pair::next(known.nodes.get(node.as_str()), point, resolution);
                next.nodes.insert(node.into(), pair);
            }
            for (pod, points) in told.pods {
                let former = known.pods.get(&pod);
                let containers = points.into_iter().map(|(container, point)| {
                    let former = former.and_then(|containers| containers.get(container.as_str()));
                    (container.into(), Pair::next(former, point, resolution))
                });
                next.pods.insert(pod, containers.collect());
            }
        }
        drop(known);
        *self.known.write() = next;
    }

    /// What a node used.
    pub(crate) fn of_node(&self, name: &str) -> Option<Usage> {
        self.known.read().nodes.get(name)?.usage()
    }

    /// What the containers of a pod used; nothing where one of them is not known yet.
    pub(crate) fn of_pod(&self, namespace: &str, name: &str) -> Option<Vec<(String, Usage)>> {
        let known = self.known.read();
        let containers = known.pods.get(&PodName::new(namespace, name))?;
        containers.iter().map(|(name, pair)| Some((name.to_string(), pair.usage()?))).collect()
    }

    /// How many points there are: of nodes, and of containers.
    pub(crate) fn points(&self) -> (usize, usize) {
        let known = self.known.read();
        let points = |pair: &Pair| 1 + usize::from(pair.former.is_some());
        let nodes = known.nodes.values().map(points).sum();
        (nodes, known.pods.values().flat_map(BTreeMap::values).map(points).sum())
    }

    /// Whether there is anything to tell.
    pub(crate) fn is_ready(&self) -> bool {
        self.known.read().nodes.values().any(|pair| pair.former.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const RESOLUTION: Duration = Duration::from_secs(60);

    fn point(at: i64, cpu_ms: i64, started: i64) -> Point {
        Point { at_ns: at * SECOND, cpu_ns: cpu_ms * 1_000_000, memory_bytes: at, started_ns: started * SECOND }
    }

    fn round(usages: &Usages, point: Point) {
        let pods = BTreeMap::from([(PodName::new("ns", "p"), BTreeMap::from([("c".to_owned(), point)]))]);
        usages.take(vec![("n".to_owned(), Scrape { node: Some(point), pods })], RESOLUTION);
    }

    /// The usage of the one container in thousandths of a processor, over a window in seconds.
    fn seen(usages: &Usages) -> Option<(i64, u64)> {
        let (_, usage) = usages.of_pod("ns", "p")?.pop()?;
        Some((usage.nanocores / 1_000_000, usage.window.as_secs()))
    }

    #[test]
    fn usage_is_the_difference_of_the_last_two_points() {
        for (case, points, expected) in [
            ("one point of something old", vec![point(1000, 5000, 1)], None),
            ("one point of something young", vec![point(1000, 5000, 980)], Some((250, 20))),
            ("one point of something too young", vec![point(1000, 5000, 991)], None),
            ("two points", vec![point(1000, 5000, 1), point(1060, 11_000, 1)], Some((100, 60))),
            (
                "the same point again",
                vec![point(1000, 5000, 1), point(1060, 11_000, 1), point(1060, 11_000, 1)],
                Some((100, 60)),
            ),
            ("a restart", vec![point(1000, 5000, 1), point(1060, 1000, 1040)], Some((50, 20))),
            ("a counter that went back", vec![point(1000, 5000, 1), point(1060, 1000, 1)], None),
            ("three points", vec![point(1000, 0, 1), point(1060, 60_000, 1), point(1120, 66_000, 1)], Some((100, 60))),
        ] {
            let usages = Usages::default();
            points.into_iter().for_each(|point| round(&usages, point));
            assert_eq!(seen(&usages), expected, "{case}");
        }
    }

    #[test]
    fn what_is_not_told_of_is_forgotten() {
        let usages = Usages::default();
        round(&usages, point(1000, 0, 1));
        assert!(!usages.is_ready());
        round(&usages, point(1060, 0, 1));
        assert!(usages.is_ready() && usages.of_node("n").is_some());
        assert_eq!(usages.points(), (2, 2));
        usages.take(Vec::new(), RESOLUTION);
        assert_eq!((usages.of_node("n"), usages.of_pod("ns", "p"), usages.points()), (None, None, (0, 0)));
    }
}
