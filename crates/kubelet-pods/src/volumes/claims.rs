//! Persistent volume claims, resolved to what is behind them: directories of the machine, exports of NFS servers, or volumes
//! of drivers (CSI). Disks of iSCSI and Fibre Channel are not served; pods that use them wait with an error that says so.

use std::path::Path;

use api_types::core_v1::{HostPathVolumeSource, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use client::{Client, ClientError};
use component_helpers::node_affinity;

use super::csi::CsiVolume;
use super::error::VolumeError;
use super::local::LocalVolume;
use super::mount_program::MountOptions;
use super::nfs::Export;
use super::spec::Refused;

/// A claim that is ready to be used.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    /// The name of the persistent volume; it names the volume's directory.
    pub(super) volume: String,
    pub(super) backing: Backing,
    /// Whether containers have it as a block device.
    pub(super) block: bool,
    /// Groups that its annotation adds to the pod.
    pub(super) group: Option<i64>,
}

/// What is behind a claim.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Backing {
    /// A place of the machine, used as it is.
    HostPath(HostPathVolumeSource),
    /// A local volume, which takes the pod's group.
    Local(LocalVolume),
    Nfs(Export),
    Csi(Box<CsiVolume>),
}

impl Resolved {
    /// Where on the machine it is.
    pub(super) fn path(&self) -> Result<&Path, VolumeError> {
        match &self.backing {
            Backing::HostPath(host) => Ok(Path::new(&host.path)),
            Backing::Local(local) => Ok(&local.path),
            Backing::Nfs(_) | Backing::Csi(_) => Err(VolumeError::Unmatched),
        }
    }
}

/// Why it is not known what a claim stands for. All of it may change, and is looked at again at every sync.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClaimError {
    #[error("kube client is not configured")]
    NoClient,
    /// Claim and volume have not come together yet.
    #[error("error processing PVC {claim}: {why}")]
    NotReady {
        /// Namespace and name.
        claim: String,
        why: Box<NotReady>,
    },
    /// `volume` is named as events name it.
    #[error("no matching NodeSelectorTerms")]
    OtherNode { volume: String, block: bool },
    /// `volume` is named as events name it.
    #[error("Mount options are not supported for this volume type")]
    NoOptions { volume: String },
    #[error("volume {volume} has volumeMode {mode}, but is specified in {used}")]
    Mode { volume: String, mode: &'static str, used: &'static str },
    #[error("no volume plugin matched: persistent volume {volume:?} cannot be a block device")]
    NoBlock { volume: String },
    /// What the cluster knows of the driver has not been read.
    #[error(transparent)]
    Facts(#[from] super::csi::Unsynced),
    /// `volume` is named as events name it.
    #[error("failed to get Plugin from volumeSpec for volume {volume:?} err=no volume plugin matched")]
    NoPlugin { volume: String },
    #[error("{why}: persistent volume {volume:?}")]
    Refused { volume: String, block: bool, why: Refused },
}

/// What is in the way between a claim and its volume.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    #[error("failed to fetch PVC from API server: {0}")]
    ClaimUnread(ClientError),
    #[error("PVC {claim} was not created for pod {pod} (pod is not owner)")]
    Foreign { claim: String, pod: String },
    #[error("PVC is being deleted")]
    Deleting,
    #[error("PVC is not bound")]
    Unbound,
    #[error("PVC has empty pvc.Spec.VolumeName")]
    NoVolume,
    #[error("failed to fetch PV {volume} from API server: {source}")]
    VolumeUnread { volume: String, source: ClientError },
    #[error("found PV object {volume} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim")]
    VolumeUnbound { volume: String },
    #[error("found PV object {volume} but its pv.Spec.ClaimRef.UID {found} does not point to claim.UID {wanted}")]
    OtherClaim { volume: String, found: String, wanted: String },
}

/// The claim's name of a volume of a pod.
pub(super) fn claim_name(pod: &Pod, volume: &str, ephemeral: bool, named: &str) -> String {
    if ephemeral { format!("{}-{volume}", pod.metadata.name) } else { named.to_owned() }
}

/// Reads the claim and its volume from the server, as upstream without a cache, and checks that they belong together.
pub(super) async fn resolve(
    client: &Client,
    pod: &Pod,
    claim_name: &str,
    ephemeral: bool,
    node: Option<&Node>,
) -> Result<Resolved, ClaimError> {
    let namespace = &pod.metadata.namespace;
    let wrapped =
        |why: NotReady| ClaimError::NotReady { claim: format!("{namespace}/{claim_name}"), why: Box::new(why) };
    let claim = client
        .namespaced::<PersistentVolumeClaim>(namespace)
        .get(claim_name)
        .await
        .map_err(|error| wrapped(NotReady::ClaimUnread(error)))?;
    if ephemeral && !component_helpers::owners::is_controlled_by(&claim.metadata, &pod.metadata.uid) {
        let (claim, pod) = (format!("{namespace}/{claim_name}"), format!("{namespace}/{}", pod.metadata.name));
        return Err(wrapped(NotReady::Foreign { claim, pod }));
    }
    check_claim(&claim).map_err(wrapped)?;
    let name = &claim.spec.volume_name;
    let volume = client
        .all::<PersistentVolume>()
        .get(name)
        .await
        .map_err(|source| wrapped(NotReady::VolumeUnread { volume: name.clone(), source }))?;
    check_bound(&volume, &claim).map_err(wrapped)?;
    place(&volume, &claim, node)
}

fn check_claim(claim: &PersistentVolumeClaim) -> Result<(), NotReady> {
    let protected = claim.metadata.finalizers.iter().any(|name| name == "kubernetes.io/pvc-protection");
    if claim.metadata.deletion_timestamp.is_some() && !protected {
        return Err(NotReady::Deleting);
    }
    if claim.status.phase != "Bound" {
        return Err(NotReady::Unbound);
    }
    if claim.spec.volume_name.is_empty() {
        return Err(NotReady::NoVolume);
    }
    Ok(())
}

fn check_bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Result<(), NotReady> {
    let name = &volume.metadata.name;
    let Some(reference) = &volume.spec.claim_ref else {
        return Err(NotReady::VolumeUnbound { volume: name.clone() });
    };
    if reference.uid != claim.metadata.uid {
        let (found, wanted) = (&reference.uid, &claim.metadata.uid);
        return Err(NotReady::OtherClaim { volume: name.clone(), found: found.clone(), wanted: wanted.clone() });
    }
    Ok(())
}

fn place(
    volume: &PersistentVolume,
    claim: &PersistentVolumeClaim,
    node: Option<&Node>,
) -> Result<Resolved, ClaimError> {
    let name = &volume.metadata.name;
    let block = volume.spec.volume_mode.as_deref() == Some("Block");
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    if let (Some(selector), Some(node)) = (required, node)
        && !node_affinity::selector_matches(selector, &node.metadata.labels, &node.metadata.name)
    {
        return Err(ClaimError::OtherNode { volume: name.clone(), block });
    }
    let source = &volume.spec.persistent_volume_source;
    let group = volume.metadata.annotations.get("pv.beta.kubernetes.io/gid").and_then(|gid| gid.parse().ok());
    let resolved = |backing| Resolved { volume: name.clone(), backing, block, group };
    if let Some(host) = &source.host_path {
        if block {
            return Err(ClaimError::NoBlock { volume: name.clone() });
        }
        if MountOptions::of_volume(volume).has_any() {
            return Err(ClaimError::NoOptions { volume: name.clone() });
        }
        let source = HostPathVolumeSource { path: host.path.clone(), type_: host.type_.clone() };
        return Ok(resolved(Backing::HostPath(source)));
    }
    if let Some(local) = &source.local {
        return Ok(resolved(Backing::Local(LocalVolume::of_claim(local, volume))));
    }
    if let Some(nfs) = source.nfs.as_ref().filter(|_| !block) {
        return Ok(resolved(Backing::Nfs(Export::of_claim(nfs, volume))));
    }
    let Some(csi) = &source.csi else {
        let volume = name.clone();
        return Err(match source {
            source if source.iscsi.is_some() => ClaimError::Refused { volume, block, why: Refused::Iscsi },
            source if source.fc.is_some() => ClaimError::Refused { volume, block, why: Refused::Fc },
            _ => ClaimError::NoPlugin { volume },
        });
    };
    Ok(resolved(Backing::Csi(Box::new(CsiVolume::of_claim(csi, volume, claim)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_must_be_bound_to_their_volume() {
        let mut claim = PersistentVolumeClaim::default();
        let check_claim = |claim: &_| check_claim(claim).map_err(|error| error.to_string());
        assert_eq!(check_claim(&claim), Err("PVC is not bound".into()));
        claim.status.phase = "Bound".into();
        assert_eq!(check_claim(&claim), Err("PVC has empty pvc.Spec.VolumeName".into()));
        claim.spec.volume_name = "pv".into();
        claim.metadata.uid = "c1".into();
        assert_eq!(check_claim(&claim), Ok(()));
        let mut volume = PersistentVolume::default();
        volume.metadata.name = "pv".into();
        assert!(check_bound(&volume, &claim).unwrap_err().to_string().contains("nil pv.Spec.ClaimRef"));
        volume.spec.claim_ref = Some(api_types::core_v1::ObjectReference { uid: "c2".into(), ..Default::default() });
        let error = check_bound(&volume, &claim).unwrap_err();
        assert_eq!(
            error.to_string(),
            "found PV object pv but its pv.Spec.ClaimRef.UID c2 does not point to claim.UID c1"
        );
    }
}
