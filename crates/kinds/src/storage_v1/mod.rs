//! The kinds of storage.k8s.io/v1.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use crate::rules::{Rules, Typed};

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<csi_driver::CSIDriverRules>::new(),
    &Typed::<csi_node::CSINodeRules>::new(),
    &Typed::<csi_storage_capacity::CSIStorageCapacityRules>::new(),
    &Typed::<storage_class::StorageClassRules>::new(),
    &Typed::<volume_attachment::VolumeAttachmentRules>::new(),
    &Typed::<volume_attributes_class::VolumeAttributesClassRules>::new(),
];
