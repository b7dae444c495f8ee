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

impl VolumeBinding {
    /// The room for the volume of a claim. Each claim is looked at alone: several of one pod do not add up.
    pub(super) fn find_room(&self, class: &StorageClass, claim: &PersistentVolumeClaim, node: &Node) -> Room {
        let Some(size) = claim.spec.resources.requests.get("storage") else { return Room::Unknown };
        let driver = self.drivers.find("", &class.provisioner);
        if driver.is_none_or(|driver| driver.spec.storage_capacity != Some(true)) {
            return Room::Unknown;
        }
        let mut rooms = self.capacities.by_index(BY_CLASS, &class.metadata.name).into_iter();
        let room = rooms.find(|room| limit(room).is_some_and(|limit| limit >= size) && is_reached(room, node));
        room.map_or(Room::Lacking, Room::Enough)
    }
}

/// The largest volume that can be made.
pub(super) fn limit(room: &CSIStorageCapacity) -> Option<&Quantity> {
    room.maximum_volume_size.as_ref().or(room.capacity.as_ref())
}

/// Whether volumes that are made there can be used on the node.
fn is_reached(room: &CSIStorageCapacity, node: &Node) -> bool {
    let selector = room.node_topology.as_ref().and_then(|topology| Selector::from_label_selector(topology).ok());
    selector.is_some_and(|selector| selector.matches(&node.metadata.labels))
}
