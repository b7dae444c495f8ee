//! PersistentVolume and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::constants::{
    persistent_volume_access_mode, persistent_volume_mode, persistent_volume_phase, persistent_volume_reclaim_policy,
};
use super::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, FCVolumeSource, FlockerVolumeSource,
    GCEPersistentDiskVolumeSource, HostPathVolumeSource, NFSVolumeSource, NodeSelector, ObjectReference,
    PhotonPersistentDiskVolumeSource, PortworxVolumeSource, QuobyteVolumeSource, ResourceList, SecretReference,
    VsphereVirtualDiskVolumeSource,
};

/// A piece of cluster storage that a claim can bind to.
#[api(kind = "PersistentVolume", resource = "persistentvolumes")]
pub struct PersistentVolume {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The storage, its capacity and how it may be used.
    #[field(2)]
    pub spec: PersistentVolumeSpec,
    /// Current state of the volume, set by the system.
    #[field(3)]
    pub status: PersistentVolumeStatus,
}

/// Describes a persistent volume and its backing storage.
#[api]
pub struct PersistentVolumeSpec {
    /// Size and other resources that the volume offers.
    #[field(1, go = "v1.ResourceList")]
    pub capacity: ResourceList,
    /// The actual storage behind the volume; exactly one is set.
    #[field(2, inline)]
    pub persistent_volume_source: PersistentVolumeSource,
    /// Ways the volume can be mounted, such as ReadWriteOnce or ReadOnlyMany.
    #[field(3, go = "[]v1.PersistentVolumeAccessMode", values = persistent_volume_access_mode::ALL)]
    pub access_modes: Vec<String>,
    /// The claim this volume is bound to or reserved for.
    #[field(4, granular)]
    pub claim_ref: Option<ObjectReference>,
    /// What happens on release of the claim: Retain, Delete or Recycle.
    #[field(
        5,
        fill = "\"Retain\"",
        go = "v1.PersistentVolumeReclaimPolicy",
        values = persistent_volume_reclaim_policy::ALL
    )]
    pub persistent_volume_reclaim_policy: String,
    /// Name of the storage class; empty means no class.
    #[field(6)]
    pub storage_class_name: String,
    /// Extra mount options such as "ro"; they are not validated.
    #[field(7)]
    pub mount_options: Vec<String>,
    /// Whether it is formatted (Filesystem, the default) or raw (Block).
    #[field(8, fill = "\"Filesystem\"", go = "v1.PersistentVolumeMode", values = persistent_volume_mode::ALL)]
    pub volume_mode: Option<String>,
    /// Limits which nodes can reach the volume.
    #[field(9)]
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// Name of the VolumeAttributesClass applied to the volume; empty means none.
    #[field(10)]
    pub volume_attributes_class_name: Option<String>,
}

/// The backing of a persistent volume; exactly one member is set.
#[api]
pub struct PersistentVolumeSource {
    /// Deprecated. A Google Compute Engine disk, handled by its CSI driver.
    #[field(1)]
    pub gce_persistent_disk: Option<GCEPersistentDiskVolumeSource>,
    /// Deprecated. An AWS EBS disk, handled by its CSI driver.
    #[field(2)]
    pub aws_elastic_block_store: Option<AWSElasticBlockStoreVolumeSource>,
    /// A directory on the host; for single-node development and testing only.
    #[field(3)]
    pub host_path: Option<HostPathVolumeSource>,
    /// Deprecated. A GlusterFS share; no longer supported.
    #[field(4)]
    pub glusterfs: Option<GlusterfsPersistentVolumeSource>,
    /// A directory exported by an NFS server.
    #[field(5)]
    pub nfs: Option<NFSVolumeSource>,
    /// Deprecated. A Ceph block device; no longer supported.
    #[field(6)]
    pub rbd: Option<RBDPersistentVolumeSource>,
    /// An iSCSI disk attached to the node and mounted in the pod.
    #[field(7)]
    pub iscsi: Option<ISCSIPersistentVolumeSource>,
    /// Deprecated. An OpenStack Cinder disk, handled by its CSI driver.
    #[field(8)]
    pub cinder: Option<CinderPersistentVolumeSource>,
    /// Deprecated. A CephFS mount; no longer supported.
    #[field(9)]
    pub cephfs: Option<CephFSPersistentVolumeSource>,
    /// A Fibre Channel disk attached to the node.
    #[field(10)]
    pub fc: Option<FCVolumeSource>,
    /// Deprecated. A Flocker dataset; no longer supported.
    #[field(11)]
    pub flocker: Option<FlockerVolumeSource>,
    /// Deprecated. Storage handled by an exec-based plugin; prefer CSI.
    #[field(12)]
    pub flex_volume: Option<FlexPersistentVolumeSource>,
    /// Deprecated. An Azure File share, handled by its CSI driver.
    #[field(13)]
    pub azure_file: Option<AzureFilePersistentVolumeSource>,
    /// Deprecated. A vSphere virtual disk, handled by its CSI driver.
    #[field(14)]
    pub vsphere_volume: Option<VsphereVirtualDiskVolumeSource>,
    /// Deprecated. A Quobyte mount; no longer supported.
    #[field(15)]
    pub quobyte: Option<QuobyteVolumeSource>,
    /// Deprecated. An Azure data disk, handled by its CSI driver.
    #[field(16)]
    pub azure_disk: Option<AzureDiskVolumeSource>,
    /// Deprecated. A Photon Controller disk; no longer supported.
    #[field(17)]
    pub photon_persistent_disk: Option<PhotonPersistentDiskVolumeSource>,
    /// Deprecated. A Portworx volume, handled by its CSI driver.
    #[field(18)]
    pub portworx_volume: Option<PortworxVolumeSource>,
    /// Deprecated. A ScaleIO volume; no longer supported.
    #[field(19, name = "scaleIO")]
    pub scale_io: Option<ScaleIOPersistentVolumeSource>,
    /// A disk, partition or directory attached directly to one node.
    #[field(20)]
    pub local: Option<LocalVolumeSource>,
    /// Deprecated. A StorageOS volume; no longer supported.
    #[field(21)]
    pub storageos: Option<StorageOSPersistentVolumeSource>,
    /// Storage handled by a CSI driver.
    #[field(22)]
    pub csi: Option<CSIPersistentVolumeSource>,
}

/// A GlusterFS share behind a persistent volume.
#[api]
pub struct GlusterfsPersistentVolumeSource {
    /// Name of the Endpoints object listing the Gluster servers.
    #[field(1, always, required)]
    pub endpoints: String,
    /// Name of the Gluster volume.
    #[field(2, always, required)]
    pub path: String,
    /// Mounts the share read-only; default false.
    #[field(3)]
    pub read_only: bool,
    /// Namespace of the Endpoints object; unset uses the claim's namespace.
    #[field(4)]
    pub endpoints_namespace: Option<String>,
}

/// A Ceph RADOS block device behind a persistent volume.
#[api]
pub struct RBDPersistentVolumeSource {
    /// Addresses of the Ceph monitors.
    #[field(1, always, required)]
    pub monitors: Vec<String>,
    /// Name of the RADOS image.
    #[field(2, always, required)]
    pub image: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(3)]
    pub fs_type: String,
    /// RADOS pool name; default rbd.
    #[field(4, default = "\"rbd\"", fill = "\"rbd\"")]
    pub pool: String,
    /// RADOS user name; default admin.
    #[field(5, default = "\"admin\"", fill = "\"admin\"")]
    pub user: String,
    /// Path of the keyring file; default /etc/ceph/keyring.
    #[field(6, default = "\"/etc/ceph/keyring\"", fill = "\"/etc/ceph/keyring\"")]
    pub keyring: String,
    /// Secret with the user's key; takes precedence over keyring.
    #[field(7)]
    pub secret_ref: Option<SecretReference>,
    /// Mounts the device read-only; default false.
    #[field(8)]
    pub read_only: bool,
}

/// An iSCSI disk behind a persistent volume.
#[api]
pub struct ISCSIPersistentVolumeSource {
    /// Target portal as IP or ip:port; port 3260 is the default.
    #[field(1, always, required)]
    pub target_portal: String,
    /// Qualified name of the iSCSI target.
    #[field(2, always, required)]
    pub iqn: String,
    /// Logical unit number of the target.
    #[field(3, always, required)]
    pub lun: i32,
    /// Interface that carries the iSCSI traffic; default is "default" (tcp).
    #[field(4, default = "\"default\"", fill = "\"default\"")]
    pub iscsi_interface: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(5)]
    pub fs_type: String,
    /// Forces mounts to be read-only; default false.
    #[field(6)]
    pub read_only: bool,
    /// Additional target portals, as IP or ip:port.
    #[field(7)]
    pub portals: Vec<String>,
    /// Whether discovery uses CHAP authentication.
    #[field(8)]
    pub chap_auth_discovery: bool,
    /// Whether the session uses CHAP authentication.
    #[field(11)]
    pub chap_auth_session: bool,
    /// Secret with the CHAP credentials.
    #[field(10)]
    pub secret_ref: Option<SecretReference>,
    /// Custom initiator name; a new interface is created for it.
    #[field(12)]
    pub initiator_name: Option<String>,
}

/// An OpenStack Cinder disk behind a persistent volume.
#[api]
pub struct CinderPersistentVolumeSource {
    /// ID of the Cinder volume.
    #[field(1, name = "volumeID", always, required)]
    pub volume_id: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
    /// Mounts the volume read-only; default false.
    #[field(3)]
    pub read_only: bool,
    /// Secret with parameters for connecting to OpenStack.
    #[field(4)]
    pub secret_ref: Option<SecretReference>,
}

/// A CephFS mount behind a persistent volume.
#[api]
pub struct CephFSPersistentVolumeSource {
    /// Addresses of the Ceph monitors.
    #[field(1, always, required)]
    pub monitors: Vec<String>,
    /// Directory used as the root of the mount; default /.
    #[field(2)]
    pub path: String,
    /// RADOS user name; default admin.
    #[field(3)]
    pub user: String,
    /// Path of the user's key file; default /etc/ceph/user.secret.
    #[field(4)]
    pub secret_file: String,
    /// Secret with the user's key; takes precedence over secretFile.
    #[field(5)]
    pub secret_ref: Option<SecretReference>,
    /// Mounts the filesystem read-only; default false.
    #[field(6)]
    pub read_only: bool,
}

/// Exec-plugin storage behind a persistent volume.
#[api]
pub struct FlexPersistentVolumeSource {
    /// Name of the plugin driver to use.
    #[field(1, always, required)]
    pub driver: String,
    /// Filesystem to mount; the default depends on the driver.
    #[field(2)]
    pub fs_type: String,
    /// Secret whose data is handed to the driver script.
    #[field(3)]
    pub secret_ref: Option<SecretReference>,
    /// Mounts the volume read-only; default false.
    #[field(4)]
    pub read_only: bool,
    /// Extra options passed to the driver.
    #[field(5)]
    pub options: BTreeMap<String, String>,
}

/// An Azure File share behind a persistent volume.
#[api]
pub struct AzureFilePersistentVolumeSource {
    /// Secret with the storage account name and key.
    #[field(1, always, required)]
    pub secret_name: String,
    /// Name of the Azure share.
    #[field(2, always, required)]
    pub share_name: String,
    /// Forces mounts to be read-only; default false.
    #[field(3)]
    pub read_only: bool,
    /// Namespace of the Secret; default is the namespace of the claim.
    #[field(4, always)]
    pub secret_namespace: Option<String>,
}

/// A ScaleIO volume behind a persistent volume.
#[api]
pub struct ScaleIOPersistentVolumeSource {
    /// Address of the ScaleIO API gateway.
    #[field(1, always, required)]
    pub gateway: String,
    /// Name of the storage system in ScaleIO.
    #[field(2, always, required)]
    pub system: String,
    /// Secret with the login credentials of the gateway.
    #[field(3, always, required)]
    pub secret_ref: Option<SecretReference>,
    /// Whether to use TLS to the gateway; default false.
    #[field(4)]
    pub ssl_enabled: bool,
    /// Name of the protection domain.
    #[field(5)]
    pub protection_domain: String,
    /// Storage pool inside the protection domain.
    #[field(6)]
    pub storage_pool: String,
    /// Provisioning: ThinProvisioned (default) or ThickProvisioned.
    #[field(7, default = "\"ThinProvisioned\"", fill = "\"ThinProvisioned\"")]
    pub storage_mode: String,
    /// Name of an existing ScaleIO volume.
    #[field(8)]
    pub volume_name: String,
    /// Filesystem to mount, such as ext4 or xfs; default xfs.
    #[field(9, default = "\"xfs\"", fill = "\"xfs\"")]
    pub fs_type: String,
    /// Forces mounts to be read-only; default false.
    #[field(10)]
    pub read_only: bool,
}

/// Storage attached directly to one node.
#[api]
pub struct LocalVolumeSource {
    /// Path of the directory or block device on the node.
    #[field(1, always, required)]
    pub path: String,
    /// Filesystem for a block device; unset picks one automatically.
    #[field(2)]
    pub fs_type: Option<String>,
}

/// A StorageOS volume behind a persistent volume.
#[api]
pub struct StorageOSPersistentVolumeSource {
    /// Name of the volume, unique in its StorageOS namespace.
    #[field(1)]
    pub volume_name: String,
    /// StorageOS namespace of the volume; default is the pod's namespace.
    #[field(2)]
    pub volume_namespace: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(3)]
    pub fs_type: String,
    /// Forces mounts to be read-only; default false.
    #[field(4)]
    pub read_only: bool,
    /// Secret with the StorageOS API credentials.
    #[field(5)]
    pub secret_ref: Option<ObjectReference>,
}

/// A persistent volume managed by a CSI driver.
#[api]
pub struct CSIPersistentVolumeSource {
    /// Name of the CSI driver.
    #[field(1, always, required)]
    pub driver: String,
    /// Unique volume name that the driver returned when it was created.
    #[field(2, always, required)]
    pub volume_handle: String,
    /// Publishes the volume to nodes as read-only; default false.
    #[field(3)]
    pub read_only: bool,
    /// Filesystem to mount, such as ext4 or xfs.
    #[field(4)]
    pub fs_type: String,
    /// Attributes of the volume, handed to the driver when publishing.
    #[field(5)]
    pub volume_attributes: BTreeMap<String, String>,
    /// Secret for the controller publish and unpublish calls.
    #[field(6)]
    pub controller_publish_secret_ref: Option<SecretReference>,
    /// Secret for the node stage and unstage calls.
    #[field(7)]
    pub node_stage_secret_ref: Option<SecretReference>,
    /// Secret for the node publish and unpublish calls.
    #[field(8)]
    pub node_publish_secret_ref: Option<SecretReference>,
    /// Secret for the controller expand call.
    #[field(9)]
    pub controller_expand_secret_ref: Option<SecretReference>,
    /// Secret for the node expand call.
    #[field(10)]
    pub node_expand_secret_ref: Option<SecretReference>,
}

/// Limits on the nodes from which a volume is reachable.
#[api]
pub struct VolumeNodeAffinity {
    /// Hard node requirements that must hold to use the volume.
    #[field(1)]
    pub required: Option<NodeSelector>,
}

/// Current state of a persistent volume.
#[api]
pub struct PersistentVolumeStatus {
    /// Binding state: Pending, Available, Bound, Released or Failed.
    #[field(1, fill = "\"Pending\"", go = "v1.PersistentVolumePhase", values = persistent_volume_phase::ALL)]
    pub phase: String,
    /// Human-readable explanation of the current state.
    #[field(2)]
    pub message: String,
    /// Short CamelCase reason for a failure, meant for tools.
    #[field(3)]
    pub reason: String,
    /// When the phase last changed; set by the system.
    #[field(4)]
    pub last_phase_transition_time: Option<Time>,
}
