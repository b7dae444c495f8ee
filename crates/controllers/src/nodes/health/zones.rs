//! Zones of nodes: how bad it is in each, and how fast their nodes may be emptied. Pure.

use std::collections::BTreeMap;

use api_types::core_v1::Node;
use api_types::core_v1::constants::{
    LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_REGION, LABEL_TOPOLOGY_ZONE,
};

use crate::settings::NodeHealthSettings;

/// Fewer nodes than this may be down without a zone counting as disrupted.
const FEW: usize = 2;

/// The name of a node's zone; empty for a node without labels of place.
pub(super) fn zone_of(node: &Node) -> String {
    let label = |old: &str, new: &str| {
        let labels = &node.metadata.labels;
        labels.get(old).or_else(|| labels.get(new)).cloned().unwrap_or_default()
    };
    let region = label(LABEL_FAILURE_DOMAIN_BETA_REGION, LABEL_TOPOLOGY_REGION);
    let zone = label(LABEL_FAILURE_DOMAIN_BETA_ZONE, LABEL_TOPOLOGY_ZONE);
    if region.is_empty() && zone.is_empty() { String::new() } else { format!("{region}:\0:{zone}") }
}

/// How bad it is in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disruption {
    /// Nothing was seen yet.
    Initial,
    /// As it should be, or nearly.
    Normal,
    /// Many nodes are down.
    Partial,
    /// All nodes are down.
    Full,
}

/// The nodes of a zone, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) ready: usize,
    pub(super) not_ready: usize,
}

impl Count {
    fn size(self) -> usize {
        self.ready + self.not_ready
    }

    /// How bad it is.
    #[expect(clippy::cast_precision_loss, reason = "nodes are counted in thousands")]
    pub(super) fn disruption(self, threshold: f64) -> Disruption {
        let share = self.not_ready as f64 / self.size().max(1) as f64;
        match self {
            Self { ready: 0, not_ready: 1.. } => Disruption::Full,
            _ if self.not_ready > FEW && share >= threshold => Disruption::Partial,
            _ => Disruption::Normal,
        }
    }
}

/// What a pass over the nodes means for the zones.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// New rates for these zones, in nodes per second.
    Rates(Vec<(String, f64)>),
    /// All zones went down: it is the network here, not the nodes. All taints go, nothing is tainted any more.
    AllDown,
    /// Some zone is back: everybody gets a fresh grace period, and these are the rates.
    Recovered(Vec<(String, f64)>),
}

/// The states of the zones.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<String, Disruption>);

impl Zones {
    /// Takes note of a zone; says whether it is new.
    pub(super) fn enter(&mut self, zone: &str) -> bool {
        if self.0.contains_key(zone) {
            return false;
        }
        self.0.insert(zone.to_owned(), Disruption::Initial);
        true
    }

    /// Takes note of a pass over all nodes.
    pub(super) fn update(&mut self, counts: &BTreeMap<String, Count>, settings: &NodeHealthSettings) -> Change {
        let now: BTreeMap<String, Disruption> = counts
            .iter()
            .map(|(zone, count)| (zone.clone(), count.disruption(settings.unhealthy_zone_threshold)))
            .collect();
        let before = |zone: &String| self.0.get(zone).copied().unwrap_or(Disruption::Initial);
        let all_now = now.values().all(|state| *state == Disruption::Full);
        let all_before = self.0.values().all(|state| *state == Disruption::Full);
        let rates = |only_changed: bool| {
            let zones = now.iter().filter(|(zone, state)| !only_changed || before(zone) != **state);
            let rate = |(zone, state): (&String, &Disruption)| {
                let size = counts.get(zone).map_or(0, |count| count.size());
                (zone.clone(), rate(*state, size, settings))
            };
            zones.map(rate).collect()
        };
        let change = match (all_now, all_before) {
            // There are no nodes: nothing went down.
            _ if now.is_empty() => Change::Rates(Vec::new()),
            (true, true) => Change::Rates(Vec::new()),
            (true, false) => Change::AllDown,
            (false, true) => Change::Recovered(rates(false)),
            (false, false) => Change::Rates(rates(true)),
        };
        self.0 = now;
        change
    }
}

fn rate(state: Disruption, size: usize, settings: &NodeHealthSettings) -> f64 {
    match state {
        Disruption::Initial | Disruption::Normal | Disruption::Full => settings.eviction_rate,
        Disruption::Partial if size > settings.large_zone => settings.secondary_eviction_rate,
        Disruption::Partial => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_as_bad_as_their_nodes() {
        for (nodes, not_ready, expected) in [
            (3, 3, Disruption::Full),
            (3, 2, Disruption::Normal),
            (4, 3, Disruption::Partial),
            (10, 5, Disruption::Normal),
            (100, 55, Disruption::Partial),
            (100, 54, Disruption::Normal),
            (0, 0, Disruption::Normal),
        ] {
            let count = Count { ready: nodes - not_ready, not_ready };
            assert_eq!(count.disruption(0.55), expected, "{not_ready} of {nodes}");
        }
    }

    #[test]
    fn the_rate_follows_the_zones() {
        let settings = NodeHealthSettings::default();
        let mut zones = Zones::default();
        zones.enter("a");
        let counts = |a: (usize, usize), b: (usize, usize)| {
            let count = |(ready, not_ready)| Count { ready, not_ready };
            BTreeMap::from([("a".to_owned(), count(a)), ("b".to_owned(), count(b))])
        };
        let rates = |a, b| vec![("a".to_owned(), a), ("b".to_owned(), b)];
        assert_eq!(zones.update(&counts((3, 0), (3, 0)), &settings), Change::Rates(rates(0.1, 0.1)));
        assert_eq!(zones.update(&counts((3, 0), (3, 0)), &settings), Change::Rates(vec![]), "steady state");
        let partial = vec![("a".to_owned(), 0.0)];
        assert_eq!(zones.update(&counts((1, 3), (3, 0)), &settings), Change::Rates(partial));
        let large = vec![("a".to_owned(), 0.01), ("b".to_owned(), 0.1)];
        let mut more = Zones::default();
        assert_eq!(more.update(&counts((20, 60), (3, 0)), &settings), Change::Recovered(large));
        let mut emptied = Zones::default();
        emptied.enter("a");
        assert_eq!(emptied.update(&BTreeMap::new(), &settings), Change::Rates(vec![]), "no nodes are not all nodes");
        assert_eq!(zones.update(&counts((0, 4), (0, 3)), &settings), Change::AllDown);
        assert_eq!(zones.update(&counts((0, 4), (0, 3)), &settings), Change::Rates(vec![]));
        assert_eq!(zones.update(&counts((1, 2), (0, 3)), &settings), Change::Recovered(rates(0.1, 0.1)));
    }
}
