//! StorageClass.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;

use super::constants::volume_binding_mode;
use crate::core_v1::TopologySelectorTerm;
use crate::core_v1::constants::persistent_volume_reclaim_policy;

/// Describes a kind of storage that can be provisioned.
#[api(kind = "StorageClass", resource = "storageclasses")]
pub struct StorageClass {
    /// Standard object metadata.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Driver that creates the volumes. Immutable.
    #[field(2, always, required)]
    pub provisioner: String,
    /// Settings passed to the driver. Immutable.
    #[field(3)]
    pub parameters: BTreeMap<String, String>,
    /// What happens to released volumes: Delete (default) or Retain. Immutable.
    #[field(
        4,
        fill = "\"Delete\"",
        go = "v1.PersistentVolumeReclaimPolicy",
        values = persistent_volume_reclaim_policy::ALL
    )]
    pub reclaim_policy: Option<String>,
    /// Mount options for the volumes, not checked by the server.
    #[field(5)]
    pub mount_options: Vec<String>,
    /// Whether volumes may grow after creation.
    #[field(6)]
    pub allow_volume_expansion: Option<bool>,
    /// When claims are bound: Immediate (default) or WaitForFirstConsumer. Immutable.
    #[field(7, fill = "\"Immediate\"", go = "v1.VolumeBindingMode", values = volume_binding_mode::ALL)]
    pub volume_binding_mode: Option<String>,
    /// Places where volumes may be created. Empty means anywhere.
    #[field(8)]
    pub allowed_topologies: Vec<TopologySelectorTerm>,
}
