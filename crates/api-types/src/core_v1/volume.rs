//! Volume and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::quantity::Quantity;

use super::constants::{
    azure_data_disk_caching_mode, azure_data_disk_kind, host_path_type, mount_propagation_mode, pull_policy,
};
use super::{
    ConfigMapVolumeSource, DownwardAPIVolumeSource, LocalObjectReference, PersistentVolumeClaimSpec,
    ProjectedVolumeSource, SecretVolumeSource,
};

/// A named piece of storage that containers of the pod can mount.
#[api]
pub struct Volume {
    /// Name of the volume, a DNS label unique in the pod.
    #[field(1, always, required)]
    pub name: String,
    /// Where the volume's content comes from; exactly one source is set.
    #[field(2, inline)]
    pub volume_source: VolumeSource,
}

/// The backing of a pod volume; exactly one member is set. Those that few pods have are boxed: a volume would take three
/// kilobytes.
#[api]
pub struct VolumeSource {
    /// A file or directory taken directly from the node's filesystem.
    #[field(1)]
    pub host_path: Option<HostPathVolumeSource>,
    /// A temporary directory that lives as long as the pod.
    #[field(2)]
    pub empty_dir: Option<EmptyDirVolumeSource>,
    /// Deprecated. A Google Compute Engine disk, handled by its CSI driver.
    #[field(3)]
    pub gce_persistent_disk: Option<Box<GCEPersistentDiskVolumeSource>>,
    /// Deprecated. An AWS EBS disk, handled by its CSI driver.
    #[field(4)]
    pub aws_elastic_block_store: Option<Box<AWSElasticBlockStoreVolumeSource>>,
    /// Deprecated. A git checkout; prefer an init container and an emptyDir.
    #[field(5)]
    pub git_repo: Option<Box<GitRepoVolumeSource>>,
    /// A volume filled with the keys of a Secret.
    #[field(6)]
    pub secret: Option<SecretVolumeSource>,
    /// A directory exported by an NFS server.
    #[field(7)]
    pub nfs: Option<Box<NFSVolumeSource>>,
    /// An iSCSI disk attached to the node and mounted in the pod.
    #[field(8)]
    pub iscsi: Option<Box<ISCSIVolumeSource>>,
    /// Deprecated. A GlusterFS share; no longer supported.
    #[field(9)]
    pub glusterfs: Option<Box<GlusterfsVolumeSource>>,
    /// A claim in the pod's namespace whose bound volume is mounted.
    #[field(10)]
    pub persistent_volume_claim: Option<PersistentVolumeClaimVolumeSource>,
    /// Deprecated. A Ceph block device; no longer supported.
    #[field(11)]
    pub rbd: Option<Box<RBDVolumeSource>>,
    /// Deprecated. Storage handled by an exec-based plugin; prefer CSI.
    #[field(12)]
    pub flex_volume: Option<Box<FlexVolumeSource>>,
    /// Deprecated. An OpenStack Cinder disk, handled by its CSI driver.
    #[field(13)]
    pub cinder: Option<Box<CinderVolumeSource>>,
    /// Deprecated. A CephFS mount; no longer supported.
    #[field(14)]
    pub cephfs: Option<Box<CephFSVolumeSource>>,
    /// Deprecated. A Flocker dataset; no longer supported.
    #[field(15)]
    pub flocker: Option<Box<FlockerVolumeSource>>,
    /// A volume of files holding information about the pod itself.
    #[field(16, name = "downwardAPI")]
    pub downward_api: Option<DownwardAPIVolumeSource>,
    /// A Fibre Channel disk attached to the node.
    #[field(17)]
    pub fc: Option<Box<FCVolumeSource>>,
    /// Deprecated. An Azure File share, handled by its CSI driver.
    #[field(18)]
    pub azure_file: Option<Box<AzureFileVolumeSource>>,
    /// A volume filled with the keys of a ConfigMap.
    #[field(19)]
    pub config_map: Option<ConfigMapVolumeSource>,
    /// Deprecated. A vSphere virtual disk, handled by its CSI driver.
    #[field(20)]
    pub vsphere_volume: Option<Box<VsphereVirtualDiskVolumeSource>>,
    /// Deprecated. A Quobyte mount; no longer supported.
    #[field(21)]
    pub quobyte: Option<Box<QuobyteVolumeSource>>,
    /// Deprecated. An Azure data disk, handled by its CSI driver.
    #[field(22)]
    pub azure_disk: Option<Box<AzureDiskVolumeSource>>,
    /// Deprecated. A Photon Controller disk; no longer supported.
    #[field(23)]
    pub photon_persistent_disk: Option<Box<PhotonPersistentDiskVolumeSource>>,
    /// Several sources combined into one directory.
    #[field(26)]
    pub projected: Option<ProjectedVolumeSource>,
    /// Deprecated. A Portworx volume, handled by its CSI driver.
    #[field(24)]
    pub portworx_volume: Option<Box<PortworxVolumeSource>>,
    /// Deprecated. A ScaleIO volume; no longer supported.
    #[field(25, name = "scaleIO")]
    pub scale_io: Option<Box<ScaleIOVolumeSource>>,
    /// Deprecated. A StorageOS volume; no longer supported.
    #[field(27)]
    pub storageos: Option<Box<StorageOSVolumeSource>>,
    /// An inline ephemeral volume provided by a CSI driver.
    #[field(28)]
    pub csi: Option<Box<CSIVolumeSource>>,
    /// A volume provisioned with the pod and deleted together with it.
    #[field(29)]
    pub ephemeral: Option<Box<EphemeralVolumeSource>>,
    /// The content of an OCI image or artifact, mounted read-only.
    #[field(30)]
    pub image: Option<Box<ImageVolumeSource>>,
}

/// A file or directory on the node, shared with the pod.
#[api]
pub struct HostPathVolumeSource {
    /// Path on the host; a symbolic link is followed to its target.
    #[field(1, always, required)]
    pub path: String,
    /// Check before mounting, such as Directory or FileOrCreate; empty means none.
    #[field(2, fill = "\"\"", go = "v1.HostPathType", values = host_path_type::ALL)]
    pub type_: Option<String>,
}

/// An initially empty directory that lives as long as the pod.
#[api]
pub struct EmptyDirVolumeSource {
    /// Storage behind it: empty for node default, Memory or HugePages.
    #[field(1, go = "v1.StorageMedium")]
    pub medium: String,
    /// Maximum total size; unset means no limit.
    #[field(2)]
    pub size_limit: Option<Quantity>,
}

/// A Google Compute Engine persistent disk.
#[api]
pub struct GCEPersistentDiskVolumeSource {
    /// Name of the disk in GCE.
    #[field(1, always, required)]
    pub pd_name: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
    /// Partition number to mount; 0 or unset mounts by volume name.
    #[field(3)]
    pub partition: i32,
    /// Mounts the disk read-only; default false.
    #[field(4)]
    pub read_only: bool,
}

/// An AWS EBS disk, in the same zone as the node.
#[api]
pub struct AWSElasticBlockStoreVolumeSource {
    /// ID of the EBS volume.
    #[field(1, name = "volumeID", always, required)]
    pub volume_id: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
    /// Partition number to mount; 0 or unset mounts by volume name.
    #[field(3)]
    pub partition: i32,
    /// Forces mounts to be read-only; default false.
    #[field(4)]
    pub read_only: bool,
}

/// A git repository checked out when the pod starts.
#[api]
pub struct GitRepoVolumeSource {
    /// URL of the repository.
    #[field(1, always, required)]
    pub repository: String,
    /// Commit hash to check out.
    #[field(2)]
    pub revision: String,
    /// Relative target directory; "." uses the volume root; ".." is not allowed.
    #[field(3)]
    pub directory: String,
}

/// A directory exported by an NFS server.
#[api]
pub struct NFSVolumeSource {
    /// Hostname or IP address of the NFS server.
    #[field(1, always, required)]
    pub server: String,
    /// Exported path on the server.
    #[field(2, always, required)]
    pub path: String,
    /// Mounts the export read-only; default false.
    #[field(3)]
    pub read_only: bool,
}

/// An iSCSI disk mounted in a pod.
#[api]
pub struct ISCSIVolumeSource {
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
    pub secret_ref: Option<LocalObjectReference>,
    /// Custom initiator name; a new interface is created for it.
    #[field(12)]
    pub initiator_name: Option<String>,
}

/// A GlusterFS share mounted in a pod.
#[api]
pub struct GlusterfsVolumeSource {
    /// Name of the Endpoints object listing the Gluster servers.
    #[field(1, always, required)]
    pub endpoints: String,
    /// Name of the Gluster volume.
    #[field(2, always, required)]
    pub path: String,
    /// Mounts the share read-only; default false.
    #[field(3)]
    pub read_only: bool,
}

/// Mounts the volume bound to a claim in the pod's namespace.
#[api]
pub struct PersistentVolumeClaimVolumeSource {
    /// Name of the claim, in the same namespace as the pod.
    #[field(1, always, required)]
    pub claim_name: String,
    /// Forces every mount of this volume to be read-only; default false.
    #[field(2)]
    pub read_only: bool,
}

/// A Ceph RADOS block device mounted in a pod.
#[api]
pub struct RBDVolumeSource {
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
    pub secret_ref: Option<LocalObjectReference>,
    /// Mounts the device read-only; default false.
    #[field(8)]
    pub read_only: bool,
}

/// Exec-plugin storage mounted in a pod.
#[api]
pub struct FlexVolumeSource {
    /// Name of the plugin driver to use.
    #[field(1, always, required)]
    pub driver: String,
    /// Filesystem to mount; the default depends on the driver.
    #[field(2)]
    pub fs_type: String,
    /// Secret whose data is handed to the driver script.
    #[field(3)]
    pub secret_ref: Option<LocalObjectReference>,
    /// Mounts the volume read-only; default false.
    #[field(4)]
    pub read_only: bool,
    /// Extra options passed to the driver.
    #[field(5)]
    pub options: BTreeMap<String, String>,
}

/// An OpenStack Cinder disk mounted in a pod.
#[api]
pub struct CinderVolumeSource {
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
    pub secret_ref: Option<LocalObjectReference>,
}

/// A CephFS mount in a pod.
#[api]
pub struct CephFSVolumeSource {
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
    pub secret_ref: Option<LocalObjectReference>,
    /// Mounts the filesystem read-only; default false.
    #[field(6)]
    pub read_only: bool,
}

/// A Flocker dataset; set exactly one of name or UUID.
#[api]
pub struct FlockerVolumeSource {
    /// Deprecated. Name of the dataset, stored in its metadata.
    #[field(1)]
    pub dataset_name: String,
    /// Unique ID of the dataset.
    #[field(2, name = "datasetUUID")]
    pub dataset_uuid: String,
}

/// A Fibre Channel disk; set either wwids, or targetWWNs with lun.
#[api]
pub struct FCVolumeSource {
    /// World wide names of the targets.
    #[field(1, name = "targetWWNs")]
    pub target_wwns: Vec<String>,
    /// Logical unit number of the target.
    #[field(2)]
    pub lun: Option<i32>,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(3)]
    pub fs_type: String,
    /// Forces mounts to be read-only; default false.
    #[field(4)]
    pub read_only: bool,
    /// World wide identifiers of the volume.
    #[field(5)]
    pub wwids: Vec<String>,
}

/// An Azure File share mounted in a pod.
#[api]
pub struct AzureFileVolumeSource {
    /// Secret with the storage account name and key.
    #[field(1, always, required)]
    pub secret_name: String,
    /// Name of the Azure share.
    #[field(2, always, required)]
    pub share_name: String,
    /// Forces mounts to be read-only; default false.
    #[field(3)]
    pub read_only: bool,
}

/// A vSphere virtual disk.
#[api]
pub struct VsphereVirtualDiskVolumeSource {
    /// Path that identifies the virtual disk.
    #[field(1, always, required)]
    pub volume_path: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
    /// Name of the storage policy profile.
    #[field(3)]
    pub storage_policy_name: String,
    /// ID of the storage policy profile.
    #[field(4, name = "storagePolicyID")]
    pub storage_policy_id: String,
}

/// A Quobyte mount.
#[api]
pub struct QuobyteVolumeSource {
    /// Quobyte registries as host:port entries, separated by commas.
    #[field(1, always, required)]
    pub registry: String,
    /// Name of an existing Quobyte volume.
    #[field(2, always, required)]
    pub volume: String,
    /// Mounts the volume read-only; default false.
    #[field(3)]
    pub read_only: bool,
    /// User that volume access is mapped to; default is the serviceaccount user.
    #[field(4)]
    pub user: String,
    /// Group that volume access is mapped to; default is none.
    #[field(5)]
    pub group: String,
    /// Tenant that owns the volume; set by the plugin when provisioned.
    #[field(6)]
    pub tenant: String,
}

/// An Azure data disk attached to the node.
#[api]
pub struct AzureDiskVolumeSource {
    /// Name of the disk in blob storage.
    #[field(1, always, required)]
    pub disk_name: String,
    /// URI of the disk in blob storage.
    #[field(2, name = "diskURI", always, required)]
    pub disk_uri: String,
    /// Host caching: None, ReadOnly or ReadWrite; default ReadWrite.
    #[field(
        3,
        default = "\"ReadWrite\"",
        fill = "\"ReadWrite\"",
        go = "v1.AzureDataDiskCachingMode",
        values = azure_data_disk_caching_mode::ALL
    )]
    pub caching_mode: Option<String>,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(4, default = "\"ext4\"", fill = "\"ext4\"")]
    pub fs_type: Option<String>,
    /// Forces mounts to be read-only; default false.
    #[field(5, default = "false", fill = "false")]
    pub read_only: Option<bool>,
    /// Disk kind: Shared (default), Dedicated or Managed.
    #[field(
        6,
        default = "\"Shared\"",
        fill = "\"Shared\"",
        go = "v1.AzureDataDiskKind",
        values = azure_data_disk_kind::ALL
    )]
    pub kind: Option<String>,
}

/// A Photon Controller persistent disk.
#[api]
pub struct PhotonPersistentDiskVolumeSource {
    /// ID of the Photon disk.
    #[field(1, name = "pdID", always, required)]
    pub pd_id: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
}

/// A Portworx volume.
#[api]
pub struct PortworxVolumeSource {
    /// ID of the Portworx volume.
    #[field(1, name = "volumeID", always, required)]
    pub volume_id: String,
    /// Filesystem to mount, such as ext4 or xfs; default ext4.
    #[field(2)]
    pub fs_type: String,
    /// Forces mounts to be read-only; default false.
    #[field(3)]
    pub read_only: bool,
}

/// A ScaleIO volume mounted in a pod.
#[api]
pub struct ScaleIOVolumeSource {
    /// Address of the ScaleIO API gateway.
    #[field(1, always, required)]
    pub gateway: String,
    /// Name of the storage system in ScaleIO.
    #[field(2, always, required)]
    pub system: String,
    /// Secret with the login credentials of the gateway.
    #[field(3, always, required)]
    pub secret_ref: Option<LocalObjectReference>,
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

/// A StorageOS volume mounted in a pod.
#[api]
pub struct StorageOSVolumeSource {
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
    pub secret_ref: Option<LocalObjectReference>,
}

/// An inline volume that a CSI driver creates for the pod.
#[api]
pub struct CSIVolumeSource {
    /// Name of the CSI driver.
    #[field(1, always, required)]
    pub driver: String,
    /// Makes the volume read-only; default false.
    #[field(2)]
    pub read_only: Option<bool>,
    /// Filesystem to mount; empty lets the driver decide.
    #[field(3)]
    pub fs_type: Option<String>,
    /// Driver-specific properties of the volume.
    #[field(4)]
    pub volume_attributes: BTreeMap<String, String>,
    /// Secret in the pod's namespace for the node publish calls.
    #[field(5)]
    pub node_publish_secret_ref: Option<LocalObjectReference>,
}

/// A claim created for, and owned by, the pod.
#[api]
pub struct EphemeralVolumeSource {
    /// Template of the claim, which is named pod name-volume name.
    #[field(1)]
    pub volume_claim_template: Option<PersistentVolumeClaimTemplate>,
}

/// Template from which a pod's ephemeral claim is created.
#[api]
pub struct PersistentVolumeClaimTemplate {
    /// Labels and annotations copied to the claim; other fields are rejected.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// Specification copied unchanged to the claim.
    #[field(2, always, required)]
    pub spec: PersistentVolumeClaimSpec,
}

/// An OCI image or artifact mounted as a volume.
#[api]
pub struct ImageVolumeSource {
    /// Image or artifact reference to mount.
    #[field(1)]
    pub reference: String,
    /// Pull policy: Always, IfNotPresent or Never; the default depends on the tag.
    #[field(2, go = "v1.PullPolicy", values = pull_policy::ALL)]
    pub pull_policy: String,
}

/// Mounts a pod volume inside a container.
#[api]
pub struct VolumeMount {
    /// Name of the pod volume to mount.
    #[field(1, always, required)]
    pub name: String,
    /// Mounts the volume read-only; default false.
    #[field(2)]
    pub read_only: bool,
    /// Read-only for nested mounts too: Disabled (default), IfPossible or Enabled.
    #[field(7, go = "v1.RecursiveReadOnlyMode")]
    pub recursive_read_only: Option<String>,
    /// Path in the container to mount at; it may not contain ":".
    #[field(3, always, required)]
    pub mount_path: String,
    /// Path inside the volume to mount; default is the volume's root.
    #[field(4)]
    pub sub_path: String,
    /// Mount propagation: None (default), HostToContainer or Bidirectional.
    #[field(5, go = "v1.MountPropagationMode", values = mount_propagation_mode::ALL)]
    pub mount_propagation: Option<String>,
    /// Like subPath, but expands $(VAR_NAME) references; excludes subPath.
    #[field(6)]
    pub sub_path_expr: String,
}

/// Maps a raw block volume into a container.
#[api]
pub struct VolumeDevice {
    /// Name of a pod volume that uses a persistent volume claim.
    #[field(1, always, required)]
    pub name: String,
    /// Path in the container where the device appears.
    #[field(2, always, required)]
    pub device_path: String,
}
