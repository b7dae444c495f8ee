//! VolumeAttachment and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use crate::core_v1::PersistentVolumeSpec;

/// Asks for a volume to be attached to a node.
#[api(kind = "VolumeAttachment", resource = "volumeattachments")]
pub struct VolumeAttachment {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Which volume, where, and by whom. Immutable.
    #[field(2, always, required)]
    pub spec: VolumeAttachmentSpec,
    /// How far it is.
    #[field(3)]
    pub status: VolumeAttachmentStatus,
}

/// Which volume is to be attached to which node.
#[api]
pub struct VolumeAttachmentSpec {
    /// The driver that attaches it.
    #[field(1, always, required)]
    pub attacher: String,
    /// The volume.
    #[field(2, always, required)]
    pub source: VolumeAttachmentSource,
    /// The node.
    #[field(3, always, required)]
    pub node_name: String,
}

/// A volume that is to be attached: exactly one of the two.
#[api]
pub struct VolumeAttachmentSource {
    /// The name of a PersistentVolume.
    #[field(1)]
    pub persistent_volume_name: Option<String>,
    /// What a PersistentVolume would say, for volumes that pods hold inline.
    #[field(2)]
    pub inline_volume_spec: Option<PersistentVolumeSpec>,
}

/// How far an attachment is.
#[api]
pub struct VolumeAttachmentStatus {
    /// Whether the volume is attached.
    #[field(1, always, required)]
    pub attached: bool,
    /// What the driver said of it, for mounting.
    #[field(2)]
    pub attachment_metadata: BTreeMap<String, String>,
    /// Why attaching failed last.
    #[field(3)]
    pub attach_error: Option<VolumeError>,
    /// Why detaching failed last.
    #[field(4)]
    pub detach_error: Option<VolumeError>,
}

/// What went wrong with a volume.
#[api]
pub struct VolumeError {
    /// When.
    #[field(1)]
    pub time: Time,
    /// In words.
    #[field(2)]
    pub message: String,
    /// The driver's gRPC code.
    #[field(3)]
    pub error_code: Option<i32>,
}
