//! What pods ask for: the rows of upstream's `scheduler_perf`, as one table. A row is measured from the first create to the
//! last bind, over nodes that all rows share (see [`workload`](super::workload)).

use anyhow::Result;
use api_machinery::json;
use api_machinery::meta::LabelSelector;
use api_machinery::reflect::Reflect;
use api_types::core_v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodAffinity, PodAffinityTerm,
    PodAntiAffinity, PodSchedulingGate, TopologySpreadConstraint, WeightedPodAffinityTerm,
};

use super::objects::{self, Written};
use super::workload::{self, HOSTNAME, ZONE, ZONES};

/// So many groups of pods keep away from, or close to, their own kind: none has more pods than there are nodes.
const GROUPS: usize = 100;
const GROUP: &str = "group";
/// One more pod that is not to be scheduled for so many that are.
const ONE_BESIDE: usize = 10;
/// Ports of the host are from here on.
const FIRST_HOST_PORT: usize = 20_000;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Its name in figures; the plain one has none.
    pub name: &'static str,
    /// The least that upstream's own benchmark has to reach with as many nodes on its machines, in pods a second.
    pub(super) published: Option<f64>,
    /// So many of the plan's pods are taken: one of this number.
    share: usize,
    /// The same of its nodes.
    share_of_nodes: usize,
    change: fn(&mut Pod, usize),
    /// Pods that wait beside those that are measured, and get no node.
    beside: Option<fn(&mut Pod)>,
    /// Other objects that so many pods need, by the number of nodes and of pods. Who makes volumes is not there over HTTPS:
    /// such rows are measured in process only.
    pub(super) needs: Option<Needs>,
}

/// Puts what pods need where plugins find it.
pub(super) type Needs = fn(&Written, usize, usize) -> Result<()>;

const fn shape(name: &'static str, published: Option<f64>, share: usize, change: fn(&mut Pod, usize)) -> Shape {
    Shape { name, published, share, share_of_nodes: 1, change, beside: None, needs: None }
}

const fn beside(name: &'static str, published: f64, beside: fn(&mut Pod)) -> Shape {
    Shape { beside: Some(beside), ..shape(name, Some(published), 1, |_, _| {}) }
}

/// Nine shapes of pods.
pub const SHAPES: [Shape; 9] = [
    // What upstream reaches on two cores, not the least that it has to reach elsewhere.
    shape("", Some(127.0), 1, |_, _| {}),
    shape("node-affinity", Some(220.0), 1, |pod, _| affinity(pod).node_affinity = Some(in_some_zones())),
    shape("pod-affinity", Some(35.0), 5, |pod, number| {
        let required_during_scheduling_ignored_during_execution = vec![with_group(pod, number, ZONE)];
        affinity(pod).pod_affinity =
            Some(PodAffinity { required_during_scheduling_ignored_during_execution, ..PodAffinity::default() });
    }),
    shape("pod-anti-affinity", Some(60.0), 5, |pod, number| {
        let required_during_scheduling_ignored_during_execution = vec![with_group(pod, number, HOSTNAME)];
        affinity(pod).pod_anti_affinity =
            Some(PodAntiAffinity { required_during_scheduling_ignored_during_execution, ..PodAntiAffinity::default() });
    }),
    shape("preferred-pod-affinity", Some(90.0), 5, |pod, number| {
        let preferred_during_scheduling_ignored_during_execution = vec![weighted(with_group(pod, number, HOSTNAME))];
        affinity(pod).pod_affinity =
            Some(PodAffinity { preferred_during_scheduling_ignored_during_execution, ..PodAffinity::default() });
    }),
    shape("preferred-pod-anti-affinity", Some(90.0), 5, |pod, number| {
        let preferred_during_scheduling_ignored_during_execution = vec![weighted(with_group(pod, number, HOSTNAME))];
        affinity(pod).pod_anti_affinity = Some(PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution,
            ..PodAntiAffinity::default()
        });
    }),
    shape("topology-spread", Some(460.0), 2, |pod, number| spread(pod, number, "DoNotSchedule")),
    shape("preferred-topology-spread", Some(340.0), 2, |pod, number| spread(pod, number, "ScheduleAnyway")),
    shape("host-port", None, 5, |pod, number| {
        for port in pod.spec.containers.iter_mut().flat_map(|container| &mut container.ports) {
            port.host_port = i32::try_from(FIRST_HOST_PORT + number % GROUPS).unwrap_or_default();
            port.container_port = port.host_port;
        }
    }),
];

/// The rows beside the nine: of all of them by turns, and of plain pods beside others that get no node.
pub const MIXED: [Shape; 3] = [
    shape("mixed", Some(140.0), 5, |pod, number| {
        let shape = SHAPES[number % SHAPES.len()];
        (shape.change)(pod, number / SHAPES.len());
    }),
    beside("unschedulable", 590.0, |pod| {
        pod.spec.node_selector.insert("no-node-has".into(), "this".into());
    }),
    beside("gated", 910.0, |pod| pod.spec.scheduling_gates.push(PodSchedulingGate { name: "bench.test/gate".into() })),
];

const fn needing(name: &'static str, share: usize, change: fn(&mut Pod, usize), needs: Needs) -> Shape {
    Shape { needs: Some(needs), ..shape(name, None, share, change) }
}

/// The rows of pods with volumes and devices. What a pod with volumes costs is to be within 1.5 times of a plain one's.
pub const WITH_OBJECTS: [Shape; 3] = [
    needing("bound-volumes", 2, with_volume, objects::bound_volumes),
    needing("delayed-volumes", 2, with_volume, objects::delayed_volumes),
    // What upstream typically reaches with 500 nodes, which the pods fill.
    Shape { published: Some(70.0), share_of_nodes: 10, ..needing("device-claims", 2, with_device, objects::devices) },
];

/// Every row.
pub fn all() -> impl Iterator<Item = Shape> {
    SHAPES.into_iter().chain(MIXED).chain(WITH_OBJECTS)
}

impl Shape {
    /// How many of the plan's pods are measured.
    pub(super) fn pods(&self, of: usize) -> usize {
        (of / self.share).max(1)
    }

    /// How many of the plan's nodes there are.
    pub(super) fn nodes(&self, of: usize) -> usize {
        (of / self.share_of_nodes).max(1)
    }

    /// The pods to measure, `of` the plan's, with those beside them before them.
    pub(super) fn all_pods(&self, of: usize) -> Result<Vec<Pod>> {
        let pods = self.pods(of);
        let mut all = Vec::new();
        if let Some(change) = self.beside {
            for number in 0..pods.div_ceil(ONE_BESIDE) {
                let mut pod = workload::pod(&format!("beside-{number:05}"))?;
                change(&mut pod);
                all.push(pod);
            }
        }
        for number in 0..pods {
            let mut pod = workload::pod(&format!("pod-{number:05}"))?;
            (self.change)(&mut pod, number);
            all.push(pod);
        }
        Ok(all)
    }
}

/// The pods are the bench's own, and so is what is read here.
fn add<T: Reflect + Default>(to: &mut Vec<T>, manifest: &serde_json::Value) {
    let mut entry = T::default();
    let read = json::decode(manifest.to_string().as_bytes(), &mut entry);
    debug_assert!(read.is_ok(), "{manifest}");
    to.push(entry);
}

fn with_volume(pod: &mut Pod, number: usize) {
    add(&mut pod.spec.volumes, &objects::volume(number));
}

fn with_device(pod: &mut Pod, number: usize) {
    add(&mut pod.spec.resource_claims, &objects::device(number));
}

fn affinity(pod: &mut Pod) -> &mut Affinity {
    pod.spec.affinity.get_or_insert_default()
}

fn in_some_zones() -> NodeAffinity {
    let values = (0..ZONES / 2).map(workload::zone).collect();
    let requirement = NodeSelectorRequirement { key: ZONE.into(), operator: "In".into(), values };
    let term = NodeSelectorTerm { match_expressions: vec![requirement], ..NodeSelectorTerm::default() };
    let required = NodeSelector { node_selector_terms: vec![term] };
    NodeAffinity { required_during_scheduling_ignored_during_execution: Some(required), ..NodeAffinity::default() }
}

/// Puts a pod into its group, and selects that.
fn group(pod: &mut Pod, number: usize) -> LabelSelector {
    let name = format!("group-{:03}", number % GROUPS);
    pod.metadata.labels.insert(GROUP.into(), name.clone());
    LabelSelector { match_labels: [(GROUP.to_owned(), name)].into(), ..LabelSelector::default() }
}

fn with_group(pod: &mut Pod, number: usize, topology_key: &str) -> PodAffinityTerm {
    let label_selector = Some(group(pod, number));
    PodAffinityTerm { label_selector, topology_key: topology_key.into(), ..PodAffinityTerm::default() }
}

fn weighted(pod_affinity_term: PodAffinityTerm) -> WeightedPodAffinityTerm {
    WeightedPodAffinityTerm { weight: 1, pod_affinity_term }
}

fn spread(pod: &mut Pod, number: usize, when_unsatisfiable: &str) {
    let label_selector = Some(group(pod, number));
    pod.spec.topology_spread_constraints.push(TopologySpreadConstraint {
        max_skew: 5,
        topology_key: ZONE.into(),
        when_unsatisfiable: when_unsatisfiable.into(),
        label_selector,
        ..TopologySpreadConstraint::default()
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_is_another() {
        let names: BTreeSet<&str> = all().map(|shape| shape.name).collect();
        assert_eq!(names.len(), all().count());
        // Pods of a row differ from plain ones in what they ask for.
        let plain = SHAPES[0].all_pods(20).unwrap();
        for shape in all().skip(1) {
            let pods = shape.all_pods(20 * shape.share).unwrap();
            let asks = |pods: &[Pod]| pods.iter().map(|pod| pod.spec.clone()).collect::<Vec<_>>();
            assert_ne!(asks(&pods), asks(&plain), "{}", shape.name);
            assert!(pods.len() >= shape.pods(20 * shape.share), "{}", shape.name);
        }
    }
}
