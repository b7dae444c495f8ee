//! Annotations, finalizers and provisioner names that mean something to several sides.

/// On a claim, `yes`: it was bound completely once.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On a claim or volume, `yes`: the tie to the other was made by the control plane, not by a user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// The value of the two above.
pub const YES: &str = "yes";
/// On a volume: the plugin or driver that made it on demand.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// On a volume or claim: the CSI driver that took over from a plugin that was in the tree.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// On a claim: the node that the scheduler chose, for which its volume is to be made.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// On a claim: who is to make its volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same, as older provisioners read it.
pub const BETA_STORAGE_PROVISIONER: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// On a claim: who is to grow its volume.
pub const STORAGE_RESIZER: &str = "volume.kubernetes.io/storage-resizer";
/// On a volume: its size before it began to grow.
pub const PRE_RESIZE_CAPACITY: &str = "volume.alpha.kubernetes.io/pre-resize-capacity";
/// The provisioner of classes whose volumes are made by hand.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// What the names of plugins in the tree begin with.
pub const IN_TREE_PREFIX: &str = "kubernetes.io/";

/// Plugins that were in the tree and the CSI drivers that do their work now, all without a gate.
pub const MIGRATED: &[(&str, &str)] = &[
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// The CSI driver that does the work of a plugin that was in the tree.
#[must_use]
pub fn migrated_driver(plugin: &str) -> Option<&'static str> {
    MIGRATED.iter().find(|(own, _)| *own == plugin).map(|(_, driver)| *driver)
}
