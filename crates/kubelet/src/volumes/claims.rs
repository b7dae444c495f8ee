//! Persistent volume claims, resolved to what the node can mount by itself: directories of the machine.
//!
//! Volumes of drivers (CSI) and network file systems are not served yet; pods that use them wait with an error that
//! says so.

use std::path::PathBuf;

use api_types::core_v1::{HostPathVolumeSource, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use client::Client;
use component_helpers::node_affinity;

use super::host_path;
use crate::border::SideError;

/// A claim that is ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The name of the persistent volume; it names the volume's directory.
    pub(super) volume: String,
    /// Where on the machine it is.
    pub(super) source: PathBuf,
    /// Whether it is a local volume, which is bind-mounted and takes the pod's group.
    pub(super) local: bool,
    /// Groups that its annotation adds to the pod.
    pub(super) group: Option<i64>,
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
) -> Result<Resolved, SideError> {
    let namespace = &pod.metadata.namespace;
    let wrapped = |text: String| SideError(format!("error processing PVC {namespace}/{claim_name}: {text}"));
    let claim = client
        .namespaced::<PersistentVolumeClaim>(namespace)
        .get(claim_name)
        .await
        .map_err(|error| wrapped(format!("failed to fetch PVC from API server: {error}")))?;
    if ephemeral && !component_helpers::owners::is_controlled_by(&claim.metadata, &pod.metadata.uid) {
        let pod = &pod.metadata.name;
        let text = format!("PVC {namespace}/{claim_name} was not created for pod {namespace}/{pod} (pod is not owner)");
        return Err(wrapped(text));
    }
    check_claim(&claim).map_err(wrapped)?;
    let name = &claim.spec.volume_name;
    let volume = client
        .all::<PersistentVolume>()
        .get(name)
        .await
        .map_err(|error| wrapped(format!("failed to fetch PV {name} from API server: {error}")))?;
    check_bound(&volume, &claim).map_err(wrapped)?;
    place(&volume, node)
}

fn check_claim(claim: &PersistentVolumeClaim) -> Result<(), String> {
    let protected = claim.metadata.finalizers.iter().any(|name| name == "kubernetes.io/pvc-protection");
    if claim.metadata.deletion_timestamp.is_some() && !protected {
        return Err("PVC is being deleted".to_owned());
    }
    if claim.status.phase != "Bound" {
        return Err("PVC is not bound".to_owned());
    }
    if claim.spec.volume_name.is_empty() {
        return Err("PVC has empty pvc.Spec.VolumeName".to_owned());
    }
    Ok(())
}

fn check_bound(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Result<(), String> {
    let name = &volume.metadata.name;
    let Some(reference) = &volume.spec.claim_ref else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    if reference.uid != claim.metadata.uid {
        let (found, wanted) = (&reference.uid, &claim.metadata.uid);
        return Err(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {found} does not point to claim.UID {wanted}"
        ));
    }
    Ok(())
}

fn place(volume: &PersistentVolume, node: Option<&Node>) -> Result<Resolved, SideError> {
    let name = &volume.metadata.name;
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    if let (Some(selector), Some(node)) = (required, node)
        && !node_affinity::selector_matches(selector, &node.metadata.labels, &node.metadata.name)
    {
        let text = "no matching NodeSelectorTerms";
        return Err(SideError(format!("MountVolume.NodeAffinity check failed for volume {name:?} : {text}")));
    }
    let source = &volume.spec.persistent_volume_source;
    let group = volume.metadata.annotations.get("pv.beta.kubernetes.io/gid").and_then(|gid| gid.parse().ok());
    if let Some(host) = &source.host_path {
        host_path::check(&HostPathVolumeSource { path: host.path.clone(), type_: host.type_.clone() })?;
        return Ok(Resolved { volume: name.clone(), source: host.path.clone().into(), local: false, group });
    }
    if let Some(local) = &source.local {
        return Ok(Resolved { volume: name.clone(), source: local.path.clone().into(), local: true, group });
    }
    Err(SideError(format!("the kind of persistent volume {name:?} is not supported by this kubelet")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_must_be_bound_to_their_volume() {
        let mut claim = PersistentVolumeClaim::default();
        assert_eq!(check_claim(&claim), Err("PVC is not bound".into()));
        claim.status.phase = "Bound".into();
        assert_eq!(check_claim(&claim), Err("PVC has empty pvc.Spec.VolumeName".into()));
        claim.spec.volume_name = "pv".into();
        claim.metadata.uid = "c1".into();
        assert_eq!(check_claim(&claim), Ok(()));
        let mut volume = PersistentVolume::default();
        volume.metadata.name = "pv".into();
        assert!(check_bound(&volume, &claim).unwrap_err().contains("nil pv.Spec.ClaimRef"));
        volume.spec.claim_ref = Some(api_types::core_v1::ObjectReference { uid: "c2".into(), ..Default::default() });
        let error = check_bound(&volume, &claim).unwrap_err();
        assert_eq!(error, "found PV object pv but its pv.Spec.ClaimRef.UID c2 does not point to claim.UID c1");
    }
}
