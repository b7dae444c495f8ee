//! Tying a volume to a claim: the first half of a binding, which the scheduler does itself where it chose the volume.

use api_types::core_v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};

use super::matching::names_claim;
use super::names::{BOUND_BY_CONTROLLER, YES};

/// The volume with the full reference to the claim, or nothing where it has that already. A volume that did not name
/// the claim before is marked as bound by the control plane.
#[must_use]
pub fn tied(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Option<PersistentVolume> {
    let was_named = names_claim(volume, claim);
    let is_full = was_named && volume.spec.claim_ref.as_ref().is_some_and(|named| named.uid == claim.metadata.uid);
    if is_full {
        return None;
    }
    let mut next = volume.clone();
    let meta = &claim.metadata;
    next.spec.claim_ref = Some(ObjectReference {
        kind: "PersistentVolumeClaim".to_owned(),
        api_version: "v1".to_owned(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: String::new(),
    });
    if !was_named {
        next.metadata.annotations.insert(BOUND_BY_CONTROLLER.to_owned(), YES.to_owned());
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_tied_once() {
        let mut claim = PersistentVolumeClaim::default();
        let meta = &mut claim.metadata;
        (meta.name, meta.namespace) = ("data".into(), "ns".into());
        (meta.uid, meta.resource_version) = ("u".into(), "7".into());
        for (name, named, marked) in
            [("free", None, true), ("by a user", Some(("data", "")), false), ("for another", Some(("x", "y")), true)]
        {
            let mut volume = PersistentVolume::default();
            volume.spec.claim_ref = named.map(|(name, uid)| ObjectReference {
                namespace: "ns".into(),
                name: name.into(),
                uid: uid.into(),
                ..ObjectReference::default()
            });
            let next = tied(&volume, &claim).unwrap();
            let mark = next.metadata.annotations.get(BOUND_BY_CONTROLLER).map(String::as_str);
            assert_eq!(mark, marked.then_some("yes"), "{name}");
            let told = next.spec.claim_ref.clone().unwrap();
            let texts = [told.kind, told.api_version, told.namespace, told.name, told.uid, told.resource_version];
            assert_eq!(texts, ["PersistentVolumeClaim", "v1", "ns", "data", "u", "7"], "{name}");
            assert_eq!(tied(&next, &claim), None, "{name}");
        }
    }
}
