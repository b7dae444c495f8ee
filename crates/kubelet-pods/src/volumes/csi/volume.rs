//! A driver's volume as a claim's volume or a pod states it, and what the cluster knows of the driver.

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{
    CSIPersistentVolumeSource, CSIVolumeSource, PersistentVolume, PersistentVolumeClaim, Pod, SecretReference,
};
use api_types::storage_v1::{CSIDriver, TokenRequest};

use super::CsiError;

const PERSISTENT: &str = "Persistent";
const EPHEMERAL: &str = "Ephemeral";

/// What the cluster knows of a driver; what holds for drivers that it does not know.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::volumes) struct Facts {
    /// Whether there is an object of the driver.
    known: bool,
    pub(super) attach_required: bool,
    pub(super) pod_info: bool,
    pub(super) requires_republish: bool,
    /// Whether its volumes can be mounted with a label (SELinux).
    pub(super) mounts_with_labels: bool,
    /// Whether it wants to be asked anew how many of its volumes fit a node.
    pub(super) recounts: bool,
    pub(super) tokens_in_secrets: bool,
    pub(super) token_requests: Vec<TokenRequest>,
    modes: Vec<String>,
    group_policy: String,
}

impl Facts {
    pub(in crate::volumes) fn of(driver: Option<&CSIDriver>) -> Self {
        let spec = driver.map(|driver| driver.spec.clone()).unwrap_or_default();
        let modes = spec.volume_lifecycle_modes;
        Self {
            known: driver.is_some(),
            attach_required: spec.attach_required.unwrap_or(true),
            pod_info: spec.pod_info_on_mount.unwrap_or_default(),
            requires_republish: spec.requires_republish.unwrap_or_default(),
            mounts_with_labels: spec.se_linux_mount.unwrap_or_default(),
            recounts: spec.node_allocatable_update_period_seconds.is_some(),
            tokens_in_secrets: spec.service_account_token_in_secrets.unwrap_or_default(),
            token_requests: spec.token_requests,
            modes: if modes.is_empty() { vec![PERSISTENT.to_owned()] } else { modes },
            group_policy: spec.fs_group_policy.unwrap_or_default(),
        }
    }
}

/// A secret of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl SecretName {
    fn of(reference: Option<SecretReference>) -> Option<Self> {
        reference.map(|SecretReference { namespace, name }| Self { namespace, name })
    }
}

/// The claim that a volume is for, and its size as the claim has it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OfClaim {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// Its resource version.
    pub(super) version: String,
    pub(super) size: Quantity,
    /// The size that the volume itself has.
    pub(super) grown_to: Quantity,
    /// How far a change of the size has come, as the claim says.
    pub(super) resize: String,
    /// Conditions of the claim that are not about its size.
    pub(super) other_conditions: Vec<api_types::core_v1::PersistentVolumeClaimCondition>,
}

/// A driver's volume.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::volumes) struct CsiVolume {
    pub(super) driver: String,
    pub(super) handle: String,
    pub(super) fs_type: String,
    pub(super) attributes: BTreeMap<String, String>,
    pub(super) access_modes: Vec<String>,
    /// Whether containers have it as a block device.
    pub(super) block: bool,
    pub(super) mount_options: Vec<String>,
    /// That it is mounted with (SELinux).
    pub(in crate::volumes) label: Option<String>,
    pub(super) stage_secret: Option<SecretName>,
    pub(super) publish_secret: Option<SecretName>,
    pub(super) expand_secret: Option<SecretName>,
    /// None for those that pods hold inline.
    pub(super) claim: Option<OfClaim>,
    pub(super) facts: Facts,
}

impl CsiVolume {
    /// The volume behind a claim.
    pub(in crate::volumes) fn of_claim(
        source: &CSIPersistentVolumeSource,
        volume: &PersistentVolume,
        claim: &PersistentVolumeClaim,
    ) -> Self {
        let storage = |list: &BTreeMap<String, Quantity>| list.get("storage").cloned().unwrap_or_default();
        let status = &claim.status;
        let about_size = |kind: &str| {
            matches!(kind, "Resizing" | "FileSystemResizePending" | "ControllerResizeError" | "NodeResizeError")
        };
        let of_claim = OfClaim {
            namespace: claim.metadata.namespace.clone(),
            name: claim.metadata.name.clone(),
            uid: claim.metadata.uid.clone(),
            version: claim.metadata.resource_version.clone(),
            size: storage(&status.capacity),
            grown_to: storage(&volume.spec.capacity),
            resize: status.allocated_resource_statuses.get("storage").cloned().unwrap_or_default(),
            other_conditions: status.conditions.iter().filter(|found| !about_size(&found.type_)).cloned().collect(),
        };
        Self {
            driver: source.driver.clone(),
            handle: source.volume_handle.clone(),
            fs_type: source.fs_type.clone(),
            attributes: source.volume_attributes.clone(),
            access_modes: volume.spec.access_modes.clone(),
            block: volume.spec.volume_mode.as_deref() == Some("Block"),
            mount_options: volume.spec.mount_options.clone(),
            label: None,
            stage_secret: SecretName::of(source.node_stage_secret_ref.clone()),
            publish_secret: SecretName::of(source.node_publish_secret_ref.clone()),
            expand_secret: SecretName::of(source.node_expand_secret_ref.clone()),
            claim: Some(of_claim),
            facts: Facts::of(None),
        }
    }

    /// A volume that a pod holds inline, and that lives as long as the pod.
    pub(in crate::volumes) fn inline(pod: &Pod, name: &str, source: &CSIVolumeSource) -> Self {
        let secret = source
            .node_publish_secret_ref
            .as_ref()
            .map(|reference| SecretName { namespace: pod.metadata.namespace.clone(), name: reference.name.clone() });
        Self {
            driver: source.driver.clone(),
            handle: format!("csi-{}", kubelet_node::csi::hash(&[&pod.metadata.uid, name])),
            fs_type: source.fs_type.clone().unwrap_or_default(),
            attributes: source.volume_attributes.clone(),
            access_modes: Vec::new(),
            block: false,
            mount_options: Vec::new(),
            label: None,
            stage_secret: None,
            publish_secret: secret,
            expand_secret: None,
            claim: None,
            facts: Facts::of(None),
        }
    }

    pub(in crate::volumes) fn driver(&self) -> &str {
        &self.driver
    }

    /// The same, with what the cluster knows of its driver.
    pub(in crate::volumes) fn with(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// Its access modes, where labels (SELinux) may be the concern of pods that have it.
    pub(in crate::volumes) fn modes_of_labelled(&self) -> Option<&[String]> {
        let may = self.facts.mounts_with_labels && !self.is_inline() && !self.block;
        may.then_some(&self.access_modes)
    }

    pub(super) fn is_inline(&self) -> bool {
        self.claim.is_none()
    }

    /// How long it lives, as data on disk and drivers' objects name it.
    pub(super) fn life(&self) -> &'static str {
        if self.is_inline() { EPHEMERAL } else { PERSISTENT }
    }

    /// Whether the driver has volumes that live so long.
    pub(super) fn check_life(&self) -> Result<(), CsiError> {
        let (mode, facts) = (self.life(), &self.facts);
        let why = if facts.known {
            if facts.modes.iter().any(|known| known == mode) {
                return Ok(());
            }
            let quoted: Vec<String> = facts.modes.iter().map(|mode| format!("{mode:?}")).collect();
            format!("(only supports [{}])", quoted.join(" "))
        } else if self.is_inline() {
            "(no CSIDriver object)".to_owned()
        } else {
            return Ok(());
        };
        Err(CsiError::Life { mode, driver: self.driver.clone(), why })
    }

    /// Whether it is given to the pod's group, where the driver does not do that.
    pub(super) fn takes_group(&self) -> bool {
        match self.facts.group_policy.as_str() {
            "None" => false,
            "File" => true,
            _ => {
                let once = self.access_modes.iter().any(|mode| mode == "ReadWriteOnce" || mode == "ReadWriteOncePod");
                !self.fs_type.is_empty() && (self.is_inline() || once)
            }
        }
    }
}
