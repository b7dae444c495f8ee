//! Which claims a pod's volumes have, and whether a claim that was made for an ephemeral volume is the pod's own.

use std::borrow::Cow;

use api_types::core_v1::{PersistentVolumeClaim, Pod, Volume};

use crate::owners::is_controlled_by;

/// A claim has the name of a pod's ephemeral volume and is somebody else's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PVC {namespace}/{claim} was not created for pod {namespace}/{pod} (pod is not owner)")]
pub struct NotOwner {
    /// The namespace of both.
    pub namespace: String,
    /// The claim.
    pub claim: String,
    /// The pod.
    pub pod: String,
}

/// The name of the claim of an ephemeral volume.
#[must_use]
pub fn ephemeral_claim_name(pod: &Pod, volume: &Volume) -> String {
    format!("{}-{}", pod.metadata.name, volume.name)
}

/// The claim of a volume, by name: the one that it names, or the one that is made for it.
#[must_use]
pub fn claim_name<'a>(pod: &Pod, volume: &'a Volume) -> Option<Cow<'a, str>> {
    let source = &volume.volume_source;
    if let Some(named) = &source.persistent_volume_claim {
        return Some(Cow::Borrowed(&named.claim_name));
    }
    source.ephemeral.is_some().then(|| Cow::Owned(ephemeral_claim_name(pod, volume)))
}

/// The claims of a pod, by name, in the order of its volumes.
pub fn claim_names(pod: &Pod) -> impl Iterator<Item = Cow<'_, str>> {
    pod.spec.volumes.iter().filter_map(|volume| claim_name(pod, volume))
}

/// Whether the claim of an ephemeral volume is the pod's own.
///
/// # Errors
/// When the pod does not control it.
pub fn check_owner(pod: &Pod, claim: &PersistentVolumeClaim) -> Result<(), NotOwner> {
    if claim.metadata.namespace == pod.metadata.namespace && is_controlled_by(&claim.metadata, &pod.metadata.uid) {
        return Ok(());
    }
    Err(NotOwner {
        namespace: claim.metadata.namespace.clone(),
        claim: claim.metadata.name.clone(),
        pod: pod.metadata.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use api_machinery::meta::OwnerReference;
    use api_types::core_v1::{EphemeralVolumeSource, PersistentVolumeClaimVolumeSource};

    use super::*;

    #[test]
    fn claims_are_named_or_made() {
        let mut pod = Pod::default();
        pod.metadata.name = "web-0".into();
        for name in ["named", "made", "neither"] {
            pod.spec.volumes.push(Volume { name: name.into(), ..Volume::default() });
        }
        let source = PersistentVolumeClaimVolumeSource { claim_name: "data".into(), ..Default::default() };
        pod.spec.volumes[0].volume_source.persistent_volume_claim = Some(source);
        pod.spec.volumes[1].volume_source.ephemeral = Some(Box::new(EphemeralVolumeSource::default()));
        assert_eq!(claim_names(&pod).collect::<Vec<_>>(), ["data", "web-0-made"]);
    }

    #[test]
    fn a_claim_belongs_to_the_pod_that_controls_it() {
        let mut pod = Pod::default();
        (pod.metadata.name, pod.metadata.namespace, pod.metadata.uid) = ("p".into(), "ns".into(), "u".into());
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.namespace) = ("p-v".into(), "ns".into());
        for (uid, controller, is_own) in [("u", Some(true), true), ("u", None, false), ("other", Some(true), false)] {
            let owner = OwnerReference { uid: uid.into(), controller, ..OwnerReference::default() };
            claim.metadata.owner_references = vec![owner];
            assert_eq!(check_owner(&pod, &claim).is_ok(), is_own, "{uid} {controller:?}");
        }
        let text = check_owner(&pod, &claim).unwrap_err().to_string();
        assert_eq!(text, "PVC ns/p-v was not created for pod ns/p (pod is not owner)");
    }
}
