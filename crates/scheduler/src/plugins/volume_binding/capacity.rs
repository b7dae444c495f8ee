//! Whether there is room for a volume that is to be made, as far as drivers tell (KEP-1472).

use std::sync::Arc;

use api_machinery::labels::Selector;
use api_machinery::quantity::Quantity;
use api_types::core_v1::{Node, PersistentVolumeClaim};
use api_types::storage_v1::{CSIStorageCapacity, StorageClass};

use super::{BY_CLASS, VolumeBinding};

/// What is known of the room for a volume.
pub(super) enum Room {
    /// Nothing: the driver does not tell.
    Unknown,
    /// There is enough here.
    Enough(Arc<CSIStorageCapacity>),
    /// There is not enough anywhere.
    Lacking,
}

/// Where a driver has room for volumes of a class, each with the nodes that reach it; none where the driver does not tell.
#[derive(Clone, Default)]
pub(super) struct Rooms(Option<Vec<(Arc<CSIStorageCapacity>, Selector)>>);

impl VolumeBinding {
    /// What the driver of a class tells.
    pub(super) fn rooms_of(&self, class: &StorageClass) -> Rooms {
        let driver = self.drivers.find("", &class.provisioner);
        if driver.is_none_or(|driver| driver.spec.storage_capacity != Some(true)) {
            return Rooms(None);
        }
        let rooms = self.capacities.by_index(BY_CLASS, &class.metadata.name).into_iter();
        // One that no node is said to reach is none.
        let reached = |room: Arc<CSIStorageCapacity>| {
            let nodes = Selector::from_label_selector(room.node_topology.as_ref()?).ok()?;
            Some((room, nodes))
        };
        Rooms(Some(rooms.filter_map(reached).collect()))
    }
}

impl Rooms {
    /// Whether the driver does not tell.
    pub(super) fn are_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// The room for the volume of a claim. Each claim is looked at alone: several of one pod do not add up.
    pub(super) fn for_claim(&self, claim: &PersistentVolumeClaim, node: &Node) -> Room {
        let (Some(rooms), Some(size)) = (&self.0, claim.spec.resources.requests.get("storage")) else {
            return Room::Unknown;
        };
        let is_enough = |room: &CSIStorageCapacity| limit(room).is_some_and(|limit| limit >= size);
        let mut rooms = rooms.iter();
        let room = rooms.find(|(room, nodes)| is_enough(room) && nodes.matches(&node.metadata.labels));
        room.map_or(Room::Lacking, |(room, _)| Room::Enough(Arc::clone(room)))
    }
}

/// The largest volume that can be made.
pub(super) fn limit(room: &CSIStorageCapacity) -> Option<&Quantity> {
    room.maximum_volume_size.as_ref().or(room.capacity.as_ref())
}
