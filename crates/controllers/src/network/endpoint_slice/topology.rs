//! What is remembered for hints by annotation: the zones' shares, and the hints that services have. When nodes change,
//! the services that no longer suit the zones are looked at again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_types::core_v1::Node;
use api_types::core_v1::constants::LABEL_TOPOLOGY_ZONE;
use client::{Change, EventType, Informer, ObjectKey};
use component_helpers::nodes::is_ready;
use controller::{Controller, Cx, Next, Queue, ReconcileError};
use parking_lot::Mutex;

use super::hints::Balance;
use super::zones::{Obstacle, Shares, ZoneCounts, ZoneShares};
use crate::network::backends::Family;

/// The one key of the queue of changes of nodes: it is always all of them that are looked at.
const KEY: &str = "topology";

/// An event about a service's hints: type, reason, message.
pub(super) type HintEvent = (EventType, &'static str, String);

/// The memory. Bounded by the services that exist: those that are gone are forgotten.
#[derive(Default)]
pub(super) struct Topology(Mutex<State>);

#[derive(Default)]
struct State {
    /// None before the nodes were looked at for the first time.
    shares: Option<Shares>,
    /// The endpoints by zone that were hinted at last, of services and families with hints by annotation.
    hinted: HashMap<ObjectKey, BTreeMap<Family, ZoneCounts>>,
}

impl Topology {
    /// The shares of the zones as of the last [`Topology::refresh`]. Right after the start, when there was none yet,
    /// `nodes` are looked at instead, lest services lose their hints for want of information.
    pub(super) fn shares(&self, nodes: impl FnOnce() -> Vec<Arc<Node>>) -> Shares {
        self.0.lock().shares.get_or_insert_with(|| shares_of(&nodes())).clone()
    }

    /// Takes note of the nodes; returns the services that leave a zone with too few endpoints now.
    pub(super) fn refresh(&self, nodes: &[Arc<Node>]) -> Vec<ObjectKey> {
        let shares = shares_of(nodes);
        let suits = |counts: &ZoneCounts| shares.as_ref().is_ok_and(|shares| !shares.overloads(counts));
        let mut state = self.0.lock();
        let unsuited = state.hinted.iter().filter(|(_, families)| !families.values().all(suits));
        let unsuited = unsuited.map(|(key, _)| key.clone()).collect();
        state.shares = Some(shares);
        unsuited
    }

    /// Takes note of what came of a service's hints, for each of its families; returns the events about it. What works
    /// is told once, what does not every time.
    pub(super) fn update_hints(&self, key: &ObjectKey, balances: Vec<(Family, Balance)>) -> Vec<HintEvent> {
        let hinted = &mut self.0.lock().hinted;
        let before = hinted.remove(key).unwrap_or_default();
        let mut now = BTreeMap::new();
        let mut events = Vec::new();
        for (family, balance) in balances {
            let had_hints = before.contains_key(&family);
            match balance {
                Some(Err(obstacle)) => events.push(disabled(obstacle, family)),
                None if had_hints => events.push(disabled("Topology Aware Hints has been disabled", family)),
                None => {}
                Some(Ok(counts)) => {
                    now.insert(family, counts);
                    events.extend((!had_hints).then(|| enabled(family)));
                }
            }
        }
        if !now.is_empty() {
            hinted.insert(key.clone(), now);
        }
        events
    }

    /// A service is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().hinted.remove(key);
    }
}

fn shares_of(nodes: &[Arc<Node>]) -> Shares {
    ZoneShares::of(nodes).map(Arc::new).ok_or(Obstacle::Nodes)
}

fn enabled(family: Family) -> HintEvent {
    let message = format!("Topology Aware Hints has been enabled, addressType: {}", family.name());
    (EventType::Normal, "TopologyAwareHintsEnabled", message)
}

fn disabled(why: impl std::fmt::Display, family: Family) -> HintEvent {
    (EventType::Warning, "TopologyAwareHintsDisabled", format!("{why}, addressType: {}", family.name()))
}

/// The key, where a change of a node can matter. A change of its CPU alone does not, as upstream.
pub(super) fn concerned(change: &Change<Node>) -> Option<ObjectKey> {
    let seen = |node: &Node| (is_ready(node), node.metadata.labels.get(LABEL_TOPOLOGY_ZONE).cloned());
    let matters = change.old().is_none_or(|old| seen(old) != seen(change.object()));
    matters.then(|| ObjectKey::cluster(KEY))
}

/// Looks at the nodes.
pub(super) struct TopologyWorker {
    pub(super) topology: Arc<Topology>,
    pub(super) nodes: Informer<Node>,
    /// Of services.
    pub(super) queue: Queue,
}

#[async_trait::async_trait]
impl Controller for TopologyWorker {
    async fn reconcile(&self, _cx: &Cx, _key: &ObjectKey) -> Result<Next, ReconcileError> {
        for service in self.topology.refresh(&self.nodes.list()) {
            self.queue.add(service);
        }
        Ok(Next::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::zones::tests::node;
    use super::*;

    fn nodes(zones: &[(&str, &str)]) -> Vec<Arc<Node>> {
        zones.iter().map(|(zone, cpu)| Arc::new(node(zone, zone, cpu))).collect()
    }

    fn counts(zones: &[(&str, u32)]) -> ZoneCounts {
        zones.iter().map(|(zone, count)| ((*zone).to_owned(), *count)).collect()
    }

    #[test]
    fn what_changes_is_told_for_each_family() {
        let (topology, key) = (Topology::default(), ObjectKey::new("ns", "web"));
        let balanced = || Some(Ok(counts(&[("a", 1), ("b", 1)])));
        let (few, v4, v6) = (Obstacle::FewEndpoints { endpoints: 1, zones: 2 }, Family::V4, Family::V6);
        let (on, off) = ("Normal TopologyAwareHintsEnabled", "Warning TopologyAwareHintsDisabled");
        let enabled = format!("{on} Topology Aware Hints has been enabled, addressType:");
        let disabled = format!("{off} Topology Aware Hints has been disabled, addressType:");
        let too_few = format!("{off} Insufficient number of endpoints (1 endpoints, 2 zones), addressType:");
        for (name, balances, expected) in [
            ("not asked for", vec![(v4, None)], vec![]),
            ("one family", vec![(v4, balanced()), (v6, Some(Err(few)))], vec![(&enabled, "IPv4"), (&too_few, "IPv6")]),
            ("the same again", vec![(v4, balanced()), (v6, Some(Err(few)))], vec![(&too_few, "IPv6")]),
            ("now the other too", vec![(v4, balanced()), (v6, balanced())], vec![(&enabled, "IPv6")]),
            ("a family has gone", vec![(v4, balanced())], vec![]),
            ("and comes back", vec![(v4, balanced()), (v6, balanced())], vec![(&enabled, "IPv6")]),
            ("not any more", vec![(v4, None), (v6, None)], vec![(&disabled, "IPv4"), (&disabled, "IPv6")]),
            ("still not", vec![(v4, None), (v6, None)], vec![]),
        ] {
            let told = topology.update_hints(&key, balances);
            let told: Vec<_> = told.iter().map(|(type_, reason, text)| format!("{type_:?} {reason} {text}")).collect();
            let expected: Vec<_> = expected.iter().map(|(text, family)| format!("{text} {family}")).collect();
            assert_eq!(told, expected, "{name}");
        }
    }

    #[test]
    fn services_that_no_longer_suit_the_nodes_are_found() {
        let (topology, key) = (Topology::default(), ObjectKey::new("ns", "web"));
        let even = [("a", "1"), ("b", "1")];
        assert!(topology.shares(|| nodes(&even)).is_ok(), "the nodes are looked at before the first change");
        assert_eq!(topology.refresh(&nodes(&[])), [], "without hints there is nothing to be unsuited");
        assert_eq!(topology.shares(|| nodes(&even)), Err(Obstacle::Nodes), "what was seen last counts");
        topology.update_hints(&key, vec![(Family::V4, Some(Ok(counts(&[("a", 2), ("b", 2)]))))]);
        for (name, zones, expected) in [
            ("as before", even.to_vec(), false),
            ("another zone", vec![("a", "1"), ("b", "1"), ("c", "1")], true),
            ("another balance", vec![("a", "3"), ("b", "1")], true),
            ("within the threshold", vec![("a", "11"), ("b", "10")], false),
            ("a zone less", vec![("a", "1")], true),
        ] {
            assert_eq!(topology.refresh(&nodes(&zones)).contains(&key), expected, "{name}");
        }
        topology.forget(&key);
        assert_eq!(topology.refresh(&[]), []);
    }

    #[test]
    fn nodes_matter_by_zone_and_readiness() {
        let old = node("n", "a", "1");
        let mut away = old.clone();
        away.status.conditions.clear();
        let updated = |new: &Node| Change::Updated { old: Arc::new(old.clone()), new: Arc::new(new.clone()) };
        for (name, change, expected) in [
            ("new", Change::Added { object: Arc::new(old.clone()), initial: false }, true),
            ("gone", Change::Deleted { object: Arc::new(old.clone()), stale: false }, true),
            ("the same", updated(&old), false),
            ("CPU", updated(&node("n", "a", "2")), false),
            ("zone", updated(&node("n", "b", "1")), true),
            ("zone lost", updated(&node("n", "", "1")), true),
            ("not ready", updated(&away), true),
        ] {
            assert_eq!(concerned(&change).is_some(), expected, "{name}");
        }
    }
}
