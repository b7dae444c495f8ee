//! How many endpoints of a service the clients of each zone should get, by the zone's share of the cluster's CPU.
//!
//! For hints by annotation, see [`super::balance`]. The rules and numbers are upstream's, from KEP 2433: one node that
//! does not tell its zone or its CPU is enough to do without hints.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::quantity::Quantity;
use api_types::core_v1::Node;
use api_types::core_v1::constants::LABEL_TOPOLOGY_ZONE;
use component_helpers::nodes::is_ready;

/// By how much more an endpoint may be loaded than if all were loaded alike.
const OVERLOAD: f64 = 0.2;
/// The part of its share that a zone must have at least. Multiplied with instead of divided by `1 + OVERLOAD`, as the
/// last bit decides where it is rounded up.
const LEAST_PART: f64 = 1.0 / (1.0 + OVERLOAD);
/// With fewer there is nothing to choose from.
const MIN_ZONES: usize = 2;
/// Nodes with these labels run no workload, so their zones get no traffic from it.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// Numbers of endpoints by zone; zones without any may be missing.
pub(super) type ZoneCounts = BTreeMap<String, u32>;

/// Why there can be no hints. Shown to users, in upstream's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Obstacle {
    #[error("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")]
    Nodes,
    #[error("Insufficient number of endpoints ({endpoints} endpoints, {zones} zones)")]
    FewEndpoints { endpoints: u32, zones: usize },
    #[error(
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold \
         ({endpoints} endpoints, {zones} zones)"
    )]
    Overload { endpoints: u32, zones: usize },
    #[error("One or more endpoints do not have a zone specified")]
    NoZone,
}

/// The shares of the cluster, as far as its nodes tell them.
pub(super) type Shares = Result<Arc<ZoneShares>, Obstacle>;

/// The share of each zone in the CPU of all; two zones at least, all above zero, together one.
#[derive(Debug, PartialEq)]
pub(super) struct ZoneShares(BTreeMap<String, f64>);

/// How many endpoints a zone should get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Allocation {
    /// Its share, but not less than it must have.
    pub(super) desired: f64,
    /// What is left when all other zones have what they must have.
    pub(super) maximum: f64,
}

/// The allocations of all zones.
pub(super) type Allocations<'a> = BTreeMap<&'a str, Allocation>;

impl ZoneShares {
    /// By the nodes that run workloads; none where one of those hides its zone or its CPU, or all are in one zone.
    #[expect(clippy::cast_precision_loss, reason = "thousandths of CPUs are far from 2^53")]
    pub(super) fn of(nodes: &[Arc<Node>]) -> Option<Self> {
        let mut cpus = BTreeMap::<String, f64>::new();
        for node in nodes.iter().filter(|node| is_ready(node) && !is_control_plane(node)) {
            let zone = node.metadata.labels.get(LABEL_TOPOLOGY_ZONE).filter(|zone| !zone.is_empty())?;
            let cpu = node.status.allocatable.get("cpu").map(Quantity::milli_value).filter(|cpu| *cpu > 0)?;
            *cpus.entry(zone.clone()).or_default() += cpu as f64;
        }
        let total: f64 = cpus.values().sum();
        cpus.values_mut().for_each(|cpu| *cpu /= total);
        (cpus.len() >= MIN_ZONES).then_some(Self(cpus))
    }

    /// Shares so many endpoints out.
    pub(super) fn allocate(&self, endpoints: u32) -> Result<Allocations<'_>, Obstacle> {
        let zones = self.0.len();
        if usize::try_from(endpoints).is_ok_and(|endpoints| endpoints < zones) {
            return Err(Obstacle::FewEndpoints { endpoints, zones });
        }
        let total = f64::from(endpoints);
        let spare = total - self.0.values().map(|share| minimum(share * total)).sum::<f64>();
        if spare < 0.0 {
            return Err(Obstacle::Overload { endpoints, zones });
        }
        let allocation = |share: f64| {
            let minimum = minimum(share * total);
            Allocation { desired: minimum.max(share * total), maximum: minimum + spare }
        };
        Ok(self.0.iter().map(|(zone, share)| (zone.as_str(), allocation(*share))).collect())
    }

    /// Whether some zone has fewer of these endpoints than it must have.
    pub(super) fn overloads(&self, counts: &ZoneCounts) -> bool {
        let total: f64 = counts.values().copied().map(f64::from).sum();
        let count = |zone: &String| f64::from(counts.get(zone).copied().unwrap_or_default());
        self.0.iter().any(|(zone, share)| count(zone) < minimum(total * share))
    }
}

/// The least number of endpoints that will do where so many are desired.
fn minimum(desired: f64) -> f64 {
    (desired * LEAST_PART).ceil()
}

fn is_control_plane(node: &Node) -> bool {
    CONTROL_PLANE.iter().any(|label| node.metadata.labels.contains_key(*label))
}

#[cfg(test)]
pub(super) mod tests {
    use api_types::core_v1::NodeCondition;

    use super::*;

    /// A ready node; without a zone where none is given.
    pub(in crate::network) fn node(name: &str, zone: &str, cpu: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        if !zone.is_empty() {
            node.metadata.labels.insert(LABEL_TOPOLOGY_ZONE.into(), zone.into());
        }
        node.status.allocatable.insert("cpu".into(), Quantity::parse(cpu).unwrap());
        let ready = NodeCondition { type_: "Ready".into(), status: "True".into(), ..NodeCondition::default() };
        node.status.conditions.push(ready);
        node
    }

    /// The shares of zones `a`, `b` and so on with these numbers of CPUs.
    pub(in crate::network) fn shares(cpus: &[u32]) -> Shares {
        let zone = |(zone, cpu): (char, &u32)| Arc::new(node("n", &zone.to_string(), &cpu.to_string()));
        let nodes: Vec<_> = ('a'..='z').zip(cpus).map(zone).collect();
        ZoneShares::of(&nodes).map(Arc::new).ok_or(Obstacle::Nodes)
    }

    fn shown(shares: Option<ZoneShares>) -> String {
        let Some(ZoneShares(shares)) = shares else { return "unusable".into() };
        shares.iter().map(|(zone, share)| format!("{zone}{share:.3}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn zones_share_by_cpu() {
        let labelled = |mut node: Node, label: &str| {
            node.metadata.labels.insert(label.into(), String::new());
            node
        };
        let not_ready = |mut node: Node| {
            node.status.conditions[0].status = "Unknown".into();
            node
        };
        let silent = |mut node: Node| {
            node.status.allocatable.clear();
            node
        };
        let (a, b, c) = (node("1", "a", "2"), node("2", "b", "2"), node("3", "c", "2"));
        let bare = node("4", "", "2");
        for (name, nodes, expected) in [
            ("equal", vec![a.clone(), b.clone(), c], "a0.333 b0.333 c0.333"),
            ("unequal", vec![a.clone(), node("2", "b", "500m")], "a0.800 b0.200"),
            ("several nodes in a zone", vec![a.clone(), a.clone(), b.clone()], "a0.667 b0.333"),
            ("one zone", vec![a.clone(), a.clone()], "unusable"),
            ("no nodes", vec![], "unusable"),
            ("no zone", vec![a.clone(), b.clone(), bare.clone()], "unusable"),
            ("no CPU", vec![a.clone(), b.clone(), node("3", "a", "0")], "unusable"),
            ("CPU not told", vec![a.clone(), b.clone(), silent(a.clone())], "unusable"),
            ("not ready", vec![a.clone(), b.clone(), not_ready(bare.clone())], "a0.500 b0.500"),
            ("the only one not ready", vec![a.clone(), not_ready(b.clone())], "unusable"),
            ("control plane", vec![a.clone(), b.clone(), labelled(bare.clone(), CONTROL_PLANE[0])], "a0.500 b0.500"),
            ("formerly master", vec![a, b, labelled(bare, CONTROL_PLANE[1])], "a0.500 b0.500"),
        ] {
            let nodes: Vec<_> = nodes.into_iter().map(Arc::new).collect();
            assert_eq!(shown(ZoneShares::of(&nodes)), expected, "{name}");
        }
    }

    #[test]
    fn endpoints_are_allocated_within_the_threshold() {
        let overload = |endpoints| Err(Obstacle::Overload { endpoints, zones: 3 });
        for (cpus, endpoints, expected) in [
            ([1, 1, 1], 2, Err(Obstacle::FewEndpoints { endpoints: 2, zones: 3 })),
            ([1, 1, 1], 3, Ok("1.00-1 1.00-1 1.00-1")),
            ([1, 1, 1], 4, overload(4)),
            ([1, 1, 1], 5, overload(5)),
            ([1, 1, 1], 6, Ok("2.00-2 2.00-2 2.00-2")),
            ([1, 1, 1], 7, Ok("2.33-3 2.33-3 2.33-3")),
            ([1, 1, 1], 8, overload(8)),
            ([1, 1, 1], 9, Ok("3.00-3 3.00-3 3.00-3")),
            ([1, 1, 1], 10, Ok("3.33-4 3.33-4 3.33-4")),
            ([1, 1, 1], 11, overload(11)),
            ([1, 1, 1], 12, Ok("4.00-4 4.00-4 4.00-4")),
            ([2, 2, 1], 10, Ok("4.00-4 4.00-4 2.00-2")),
            ([6, 3, 1], 10, Ok("6.00-6 3.00-4 1.00-2")),
            ([8, 1, 1], 3, overload(3)),
        ] {
            let shares = shares(&cpus).unwrap();
            let one = |allocation: &Allocation| format!("{:.2}-{}", allocation.desired, allocation.maximum);
            let all = |zones: Allocations<'_>| zones.values().map(one).collect::<Vec<_>>().join(" ");
            let allocated = shares.allocate(endpoints).map(all);
            assert_eq!(allocated, expected.map(str::to_owned), "{cpus:?} {endpoints}");
        }
    }

    #[test]
    fn a_zone_with_too_few_endpoints_is_overloaded() {
        for (cpus, counts, expected) in [
            ([1, 1, 1], [2, 2, 2], false),
            ([1, 1, 1], [3, 2, 2], false),
            ([1, 1, 1], [3, 2, 1], true),
            ([1, 1, 1], [3, 3, 0], true),
            ([2, 2, 1], [4, 4, 2], false),
            ([2, 2, 1], [5, 3, 2], true),
        ] {
            let zones = ["a", "b", "c"].map(str::to_owned).into_iter().zip(counts);
            let counts: ZoneCounts = zones.filter(|(_, count)| *count > 0).collect();
            assert_eq!(shares(&cpus).unwrap().overloads(&counts), expected, "{cpus:?} {counts:?}");
        }
    }
}
