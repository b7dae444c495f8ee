//! Annotations, labels and finalizers, by upstream's names.

/// Finalizer of a volume whose driver has to remove it.
pub(crate) const PROVISIONER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Finalizer of a claim whose volume is being copied.
pub(crate) const CLONING: &str = "provisioner.storage.kubernetes.io/cloning-protection";
/// On a volume: the secret for its removal.
pub(crate) const DELETION_SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
pub(crate) const DELETION_SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";
/// What parameters of classes begin with that are not the driver's.
pub(crate) const RESERVED: &str = "csi.storage.k8s.io/";
/// What finalizers of attachers begin with.
pub(crate) const ATTACHER_PREFIX: &str = "external-attacher/";
/// Labels of capacities: whose they are, and who keeps them.
pub(crate) const CAPACITY_DRIVER: &str = "csi.storage.k8s.io/drivername";
pub(crate) const CAPACITY_MANAGER: &str = "csi.storage.k8s.io/managed-by";

/// The finalizer of an attacher; `/` would end the name's first part.
pub(crate) fn attacher(driver: &str) -> String {
    format!("{ATTACHER_PREFIX}{}", driver.replace('/', "-"))
}

/// Of snapshots, all in one group.
pub(crate) mod snapshot {
    /// Finalizer of a snapshot with a content.
    pub(crate) const BOUND: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
    /// Finalizer of a snapshot that volumes may be restored from.
    pub(crate) const AS_SOURCE: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
    /// Finalizer of a content.
    pub(crate) const CONTENT: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
    /// Finalizer of a claim that a snapshot is being taken of.
    pub(crate) const CLAIM_AS_SOURCE: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
    /// On a content: its driver may have begun to take the snapshot.
    pub(crate) const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
    /// On a content: its snapshot goes.
    pub(crate) const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
    /// On a content: the secret for its removal.
    pub(crate) const DELETION_SECRET_NAME: &str = "snapshot.storage.kubernetes.io/deletion-secret-name";
    pub(crate) const DELETION_SECRET_NAMESPACE: &str = "snapshot.storage.kubernetes.io/deletion-secret-namespace";
    /// On a class: it is the default one of its driver.
    pub(crate) const IS_DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";
    /// On a content: volumes of another mode may be restored from it.
    pub(crate) const ALLOW_MODE_CHANGE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";
    /// Label of a content: the node whose driver has it.
    pub(crate) const MANAGED_BY: &str = "snapshot.storage.kubernetes.io/managed-by";
}
