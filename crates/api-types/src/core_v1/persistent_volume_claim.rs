//! PersistentVolumeClaim and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::time::Time;

use super::constants::{
    claim_resource_status, persistent_volume_access_mode, persistent_volume_claim_modify_volume_status,
    persistent_volume_claim_phase, persistent_volume_mode,
};
use super::{ResourceList, TypedLocalObjectReference, TypedObjectReference, VolumeResourceRequirements};

/// A user's request for, and claim to, a persistent volume.
#[api(kind = "PersistentVolumeClaim", resource = "persistentvolumeclaims", namespaced)]
pub struct PersistentVolumeClaim {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The storage wanted by the user.
    #[field(2)]
    pub spec: PersistentVolumeClaimSpec,
    /// Current state of the claim, set by the system.
    #[field(3)]
    pub status: PersistentVolumeClaimStatus,
}

/// Describes the storage a claim asks for.
#[api]
pub struct PersistentVolumeClaimSpec {
    /// Access modes the volume must support.
    #[field(1, go = "[]v1.PersistentVolumeAccessMode", values = persistent_volume_access_mode::ALL)]
    pub access_modes: Vec<String>,
    /// Label query over the volumes considered for binding.
    #[field(4)]
    pub selector: Option<LabelSelector>,
    /// Minimum size the volume must have; may grow when expansion is allowed.
    #[field(2)]
    pub resources: VolumeResourceRequirements,
    /// Name of the persistent volume bound to this claim.
    #[field(3)]
    pub volume_name: String,
    /// Storage class wanted; unset uses the default, empty means no class.
    #[field(5)]
    pub storage_class_name: Option<String>,
    /// Kind of volume needed: Filesystem (default) or Block.
    #[field(6, fill = "\"Filesystem\"", go = "v1.PersistentVolumeMode", values = persistent_volume_mode::ALL)]
    pub volume_mode: Option<String>,
    /// Snapshot or claim in the namespace used to fill the new volume.
    #[field(7)]
    pub data_source: Option<TypedLocalObjectReference>,
    /// Object used to fill the new volume; allows more kinds than dataSource.
    #[field(8)]
    pub data_source_ref: Option<TypedObjectReference>,
    /// VolumeAttributesClass to apply; it may be changed after creation.
    #[field(9)]
    pub volume_attributes_class_name: Option<String>,
}

/// Current state of a persistent volume claim.
#[api]
pub struct PersistentVolumeClaimStatus {
    /// Binding state: Pending, Bound or Lost.
    #[field(1, fill = "\"Pending\"", go = "v1.PersistentVolumeClaimPhase", values = persistent_volume_claim_phase::ALL)]
    pub phase: String,
    /// Access modes of the volume actually bound.
    #[field(2, go = "[]v1.PersistentVolumeAccessMode", values = persistent_volume_access_mode::ALL)]
    pub access_modes: Vec<String>,
    /// Actual resources of the bound volume.
    #[field(3, go = "v1.ResourceList")]
    pub capacity: ResourceList,
    /// Current conditions, for example those of a resize in progress.
    #[field(4, merge_key = "type")]
    pub conditions: Vec<PersistentVolumeClaimCondition>,
    /// Resources allocated to the claim, possibly above actual capacity while it resizes.
    #[field(5, go = "v1.ResourceList")]
    pub allocated_resources: ResourceList,
    /// Per-resource resize state, for example ControllerResizeInProgress.
    #[field(7, granular, go = "map[v1.ResourceName]v1.ClaimResourceStatus", values = claim_resource_status::ALL)]
    pub allocated_resource_statuses: BTreeMap<String, String>,
    /// Attributes class the volume uses now; unset means none.
    #[field(8)]
    pub current_volume_attributes_class_name: Option<String>,
    /// State of a running attributes change; unset when none is running.
    #[field(9)]
    pub modify_volume_status: Option<ModifyVolumeStatus>,
}

/// One observed condition of a claim.
#[api]
pub struct PersistentVolumeClaimCondition {
    /// Condition type, for example Resizing or FileSystemResizePending.
    #[field(1, always, required, go = "v1.PersistentVolumeClaimConditionType")]
    pub type_: String,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the condition was last checked.
    #[field(3)]
    pub last_probe_time: Time,
    /// When the condition last changed its status.
    #[field(4)]
    pub last_transition_time: Time,
    /// Short CamelCase reason for the last change.
    #[field(5)]
    pub reason: String,
    /// Human-readable details about the last change.
    #[field(6)]
    pub message: String,
}

/// Progress of changing a volume's attributes class.
#[api]
pub struct ModifyVolumeStatus {
    /// Attributes class the volume is being changed to.
    #[field(1)]
    pub target_volume_attributes_class_name: String,
    /// State of the change: Pending, InProgress or Infeasible.
    #[field(
        2,
        always,
        required,
        go = "v1.PersistentVolumeClaimModifyVolumeStatus",
        values = persistent_volume_claim_modify_volume_status::ALL
    )]
    pub status: String,
}
