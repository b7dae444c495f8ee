//! The order in which nodes are looked at: zone by zone in turn, so that a pass that stops early has seen all zones.

use std::sync::Arc;

use api_types::core_v1::Node;

/// Nodes by zone, each in order of arrival.
#[derive(Debug, Default)]
pub(super) struct NodeOrder {
    zones: Vec<(String, Vec<Arc<str>>)>,
    count: usize,
}

impl NodeOrder {
    /// Adds a node that is not in yet.
    pub(super) fn add(&mut self, node: &Node) {
        let (zone, name) = (zone_key(node), Arc::<str>::from(node.metadata.name.as_str()));
        let place = self.zones.iter().position(|(other, _)| *other == zone).unwrap_or_else(|| {
            self.zones.push((zone, Vec::new()));
            self.zones.len() - 1
        });
        if let Some((_, names)) = self.zones.get_mut(place) {
            names.push(name);
            self.count += 1;
        }
    }

    /// Removes a node.
    pub(super) fn remove(&mut self, node: &Node) {
        let zone = zone_key(node);
        let Some(place) = self.zones.iter().position(|(other, _)| *other == zone) else { return };
        let Some((_, names)) = self.zones.get_mut(place) else { return };
        let before = names.len();
        names.retain(|name| **name != *node.metadata.name);
        self.count -= before - names.len();
        if names.is_empty() {
            self.zones.remove(place);
        }
    }

    /// Whether an update moves the node to another zone.
    pub(super) fn moves(old: &Node, new: &Node) -> bool {
        zone_key(old) != zone_key(new)
    }

    /// The first node of every zone, the second of every zone, and so on.
    pub(super) fn list(&self) -> Vec<Arc<str>> {
        let mut list = Vec::with_capacity(self.count);
        let longest = self.zones.iter().map(|(_, names)| names.len()).max().unwrap_or(0);
        for round in 0..longest {
            list.extend(self.zones.iter().filter_map(|(_, names)| names.get(round)).cloned());
        }
        list
    }
}

/// Region and zone of a node; the older labels win.
fn zone_key(node: &Node) -> String {
    let label = |old: &str, new: &str| {
        let labels = &node.metadata.labels;
        labels.get(old).or_else(|| labels.get(new)).map_or("", String::as_str).to_owned()
    };
    let region = label("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region");
    let zone = label("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone");
    format!("{region}:\0:{zone}")
}
