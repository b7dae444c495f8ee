//! Which events may help a pod whose volumes stood in the way.

use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use api_types::storage_v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass};

use super::super::storage::hint_of_claim;
use super::capacity::limit;
use crate::framework::{Action, EventObject, Hint, Registration, Resource};

/// The plugins of the tree whose work CSI drivers do on a node.
const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

pub(super) fn registrations() -> Vec<Registration> {
    let changes = Action::ADD.and(Action::UPDATE);
    vec![
        Registration::hinted(Resource::of::<StorageClass>(), changes, hint_of_class),
        Registration::hinted(Resource::of::<PersistentVolumeClaim>(), changes, hint_of_claim),
        Registration::always(Resource::of::<PersistentVolume>(), changes),
        Registration::always(Resource::Node, Action::ADD.and(Action::NODE_LABEL)),
        Registration::hinted(Resource::of::<CSINode>(), changes, hint_of_node),
        Registration::hinted(Resource::of::<CSIDriver>(), Action::UPDATE, hint_of_driver),
        Registration::hinted(Resource::of::<CSIStorageCapacity>(), changes, hint_of_capacity),
    ]
}

fn hint_of_class(_: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<StorageClass>() else { return Hint::Queue };
    Hint::queue_if(old.allowed_topologies != new.allowed_topologies)
}

fn hint_of_node(_: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<CSINode>() else { return Hint::Queue };
    let migrated = |node: &CSINode| node.metadata.annotations.get(MIGRATED_PLUGINS).cloned();
    Hint::queue_if(migrated(old) != migrated(new))
}

/// A driver that does not tell of its room any more does not stand in the way.
fn hint_of_driver(pod: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<CSIDriver>() else { return Hint::Queue };
    let mut volumes = pod.spec.volumes.iter().filter_map(|volume| volume.volume_source.csi.as_ref());
    let tells = |driver: &CSIDriver| driver.spec.storage_capacity == Some(true);
    Hint::queue_if(volumes.any(|volume| volume.driver == new.metadata.name) && tells(old) && !tells(new))
}

fn hint_of_capacity(_: &Pod, object: &EventObject) -> Hint {
    let (Some(old), Some(new)) = object.change::<CSIStorageCapacity>() else { return Hint::Queue };
    // Nothing is less than anything.
    Hint::queue_if(limit(new) > limit(old))
}
