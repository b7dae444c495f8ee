//! storage.k8s.io/v1: one file per kind, with what it is made of.

pub mod constants;
mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

pub use csi_driver::{CSIDriver, CSIDriverSpec, TokenRequest};
pub use csi_node::{CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources};
pub use csi_storage_capacity::CSIStorageCapacity;
pub use storage_class::StorageClass;
pub use volume_attachment::{
    VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec, VolumeAttachmentStatus, VolumeError,
};
pub use volume_attributes_class::VolumeAttributesClass;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.storage.v1";
/// The API group.
pub const GROUP: &str = "storage.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
