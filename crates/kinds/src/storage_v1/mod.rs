//! The kinds of storage.k8s.io/v1.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use feature_gates::MinorVersion;

use crate::rules::{Rules, Typed};
use crate::versions::SameForm;
use volume_attributes_class::VolumeAttributesClassRules;

/// The rules of each kind of the group version.
pub(crate) static KINDS: &[&dyn Rules] = &[
    &Typed::<csi_driver::CSIDriverRules>::new(),
    &Typed::<csi_node::CSINodeRules>::new(),
    &Typed::<csi_storage_capacity::CSIStorageCapacityRules>::new(),
    &Typed::<storage_class::StorageClassRules>::new(),
    &Typed::<volume_attachment::VolumeAttachmentRules>::new(),
    &Typed::<VolumeAttributesClassRules>::new(),
];

/// What was in beta, under its name then.
pub(crate) static V1BETA1: &[&dyn Rules] = {
    static NAMED: SameForm = SameForm::of::<VolumeAttributesClassRules>("v1beta1").introduced(MinorVersion::one(31));
    &[&Typed::<VolumeAttributesClassRules>::under(&NAMED)]
};
