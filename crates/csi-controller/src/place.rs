//! Which volumes a process looks after: all of its driver, or those of its node.

use api_types::core_v1::{Node, PersistentVolume};
use client::Informer;
use component_helpers::volumes::matching::is_accessible_from;

use crate::settings::Place;

/// Answers for one process.
#[derive(Clone)]
pub(crate) struct Duty {
    driver: String,
    place: Place,
    nodes: Informer<Node>,
}

impl Duty {
    pub(crate) fn new(driver: &str, place: Place, nodes: Informer<Node>) -> Self {
        Self { driver: driver.to_owned(), place, nodes }
    }

    /// The driver's handle of a volume that this process looks after.
    pub(crate) fn handle<'a>(&self, volume: &'a PersistentVolume) -> Option<&'a str> {
        let csi = volume.spec.persistent_volume_source.csi.as_ref().filter(|csi| csi.driver == self.driver)?;
        self.is_here(volume).then_some(csi.volume_handle.as_str())
    }

    /// A node's own process looks after what can be reached from there. A volume that says nothing of where it is would
    /// be everybody's: it is nobody's.
    fn is_here(&self, volume: &PersistentVolume) -> bool {
        let Place::Node(name) = &self.place else { return true };
        let has_place = volume.spec.node_affinity.as_ref().is_some_and(|affinity| affinity.required.is_some());
        let node = self.nodes.find("", name);
        has_place && node.is_some_and(|node| is_accessible_from(volume, &node.metadata.labels))
    }
}
