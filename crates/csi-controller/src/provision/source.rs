//! What a new volume starts with: another claim's volume, or a snapshot.

use api_types::core_v1::constants::{persistent_volume_claim_phase as phase, persistent_volume_mode as mode};
use api_types::core_v1::{PersistentVolume, PersistentVolumeClaim};
use api_types::snapshot_v1::{self, VolumeSnapshot, VolumeSnapshotContent};
use component_helpers::volumes::matching::storage;
use controller::{Cx, ReconcileError};
use node_api::csi::v1::VolumeContentSource;
use node_api::csi::v1::volume_content_source::{SnapshotSource, Type, VolumeSource};

use crate::finalizers;
use crate::names::{CLONING, snapshot};

/// What a claim names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source<'a> {
    Nothing,
    Claim(&'a str),
    Snapshot(&'a str),
    /// Somebody else fills the volume.
    Foreign,
}

impl<'a> Source<'a> {
    pub(crate) fn of(claim: &'a PersistentVolumeClaim) -> Self {
        let of = |group: Option<&str>, kind: &str, name: &'a str| match (group.unwrap_or_default(), kind) {
            ("", "PersistentVolumeClaim") => Self::Claim(name),
            (snapshot_v1::GROUP, "VolumeSnapshot") => Self::Snapshot(name),
            _ => Self::Foreign,
        };
        match (&claim.spec.data_source, &claim.spec.data_source_ref) {
            (Some(source), _) => of(source.api_group.as_deref(), &source.kind, &source.name),
            (None, Some(source)) => {
                let foreign = source.namespace.as_ref().is_some_and(|name| *name != claim.metadata.namespace);
                if foreign { Self::Foreign } else { of(source.api_group.as_deref(), &source.kind, &source.name) }
            }
            (None, None) => Self::Nothing,
        }
    }
}

/// Finds what a claim names as the driver knows it.
///
/// # Errors
/// When it is not there, not ready, another driver's, or does not fit.
pub(crate) async fn find(
    cx: &Cx,
    driver: &str,
    claim: &PersistentVolumeClaim,
) -> Result<Option<VolumeContentSource>, ReconcileError> {
    let namespace = &claim.metadata.namespace;
    let kind = match Source::of(claim) {
        Source::Nothing => return Ok(None),
        Source::Foreign => return Err(ReconcileError::permanent("unsupported DataSource Kind")),
        Source::Claim(name) => {
            let origin = cx.client.namespaced::<PersistentVolumeClaim>(namespace).get(name).await;
            let failed = |error| failed(format!("error getting PVC {name} ({namespace}) from api server: {error}"));
            let origin = origin.map_err(failed)?;
            let volume = cx.client.all::<PersistentVolume>().get_opt(&origin.spec.volume_name).await?;
            let volume_id = handle_of_clone(driver, claim, &origin, volume.as_ref()).map_err(self::failed)?;
            // It stays while its volume is copied.
            finalizers::set(cx, &origin, &[CLONING], true).await?;
            Type::Volume(VolumeSource { volume_id })
        }
        Source::Snapshot(name) => {
            let origin = cx.client.namespaced::<VolumeSnapshot>(namespace).get(name).await;
            let failed = |error| failed(format!("error getting snapshot {name} from api server: {error}"));
            let origin = origin.map_err(failed)?;
            let bound = origin.status.as_ref().and_then(|status| status.bound_volume_snapshot_content_name.as_deref());
            let content = match bound {
                Some(bound) => cx.client.all::<VolumeSnapshotContent>().get_opt(bound).await?,
                None => None,
            };
            let snapshot_id = handle_of_snapshot(driver, claim, &origin, content.as_ref()).map_err(self::failed)?;
            Type::Snapshot(SnapshotSource { snapshot_id })
        }
    };
    Ok(Some(VolumeContentSource { r#type: Some(kind) }))
}

fn failed(reason: String) -> ReconcileError {
    ReconcileError::failed(reason)
}

fn mode_of(mode: Option<&str>) -> &str {
    mode.unwrap_or(mode::FILESYSTEM)
}

fn handle_of_clone(
    driver: &str,
    claim: &PersistentVolumeClaim,
    origin: &PersistentVolumeClaim,
    volume: Option<&PersistentVolume>,
) -> Result<String, String> {
    let (name, namespace) = (&origin.metadata.name, &origin.metadata.namespace);
    if origin.metadata.deletion_timestamp.is_some() {
        return Err(format!("the PVC DataSource {name} is currently being deleted"));
    }
    if origin.status.phase != phase::BOUND {
        let phase = &origin.status.phase;
        return Err(format!("the PVC DataSource {name} must have a status of Bound.  Got {phase:?}"));
    }
    let volume = volume.ok_or_else(|| format!("the PV of PVC {name} in namespace {namespace} is not there"))?;
    let csi = volume.spec.persistent_volume_source.csi.as_ref().filter(|csi| csi.driver == driver);
    let csi = csi.ok_or_else(|| format!("the source volume for PVC {name} does not belong to driver {driver}"))?;
    let names_origin = volume.spec.claim_ref.as_ref().is_some_and(|named| named.uid == origin.metadata.uid);
    if !names_origin {
        return Err(format!("the PV of PVC {name} in namespace {namespace} is bound to a different PVC"));
    }
    let (wanted, has) = (storage(&claim.spec.resources.requests), storage(&origin.status.capacity));
    if wanted < has {
        return Err(format!(
            "error, new PVC request must be greater than or equal in size to the specified PVC data source, requested \
             {wanted} but source is {has}"
        ));
    }
    let (own, other) = (mode_of(claim.spec.volume_mode.as_deref()), mode_of(origin.spec.volume_mode.as_deref()));
    if own != other {
        return Err(format!("the source PVC and destination PVC must have the same volume mode: {other} is not {own}"));
    }
    Ok(csi.volume_handle.clone())
}

fn handle_of_snapshot(
    driver: &str,
    claim: &PersistentVolumeClaim,
    origin: &VolumeSnapshot,
    content: Option<&VolumeSnapshotContent>,
) -> Result<String, String> {
    let name = &origin.metadata.name;
    if origin.metadata.deletion_timestamp.is_some() {
        return Err(format!("snapshot {name} is currently being deleted"));
    }
    let content = content.ok_or_else(|| format!("snapshot {name} not bound"))?;
    let (reference, meta) = (&content.spec.volume_snapshot_ref, &origin.metadata);
    if (&reference.uid, &reference.namespace, &reference.name) != (&meta.uid, &meta.namespace, &meta.name) {
        return Err(format!("snapshotContent {} is bound to a different snapshot than {name}", content.metadata.name));
    }
    if content.spec.driver != driver {
        let other = &content.spec.driver;
        return Err(format!("volume cannot be created from snapshot {name}: it is of driver {other}, not {driver}"));
    }
    let status = origin.status.as_ref();
    if !status.and_then(|status| status.ready_to_use).unwrap_or_default() {
        return Err(format!("snapshot {name} is not Ready"));
    }
    let wanted = storage(&claim.spec.resources.requests);
    if let Some(least) = status.and_then(|status| status.restore_size.as_ref()).filter(|least| wanted < least) {
        return Err(format!(
            "requested volume size {wanted} is less than the size {least} for the source snapshot {name}"
        ));
    }
    let may_change = content.metadata.annotations.get(snapshot::ALLOW_MODE_CHANGE).is_some_and(|value| value == "true");
    let (own, other) = (mode_of(claim.spec.volume_mode.as_deref()), content.spec.source_volume_mode.as_deref());
    if other.is_some_and(|other| other != own && !may_change) {
        return Err(format!(
            "requested volume {}/{} modifies the mode of the source volume but does not have permission to do so. {} \
             annotation is not present on snapshotcontent {}",
            claim.metadata.namespace,
            claim.metadata.name,
            snapshot::ALLOW_MODE_CHANGE,
            content.metadata.name
        ));
    }
    let handle = content.status.as_ref().and_then(|status| status.snapshot_handle.clone());
    handle.ok_or_else(|| format!("snapshot handle is not available for {name}"))
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{CSIPersistentVolumeSource, ObjectReference, TypedLocalObjectReference};

    use super::*;

    fn claim(name: &str, size: &str) -> PersistentVolumeClaim {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.namespace, claim.metadata.uid) = (name.into(), "ns".into(), name.into());
        claim.spec.resources.requests.insert("storage".into(), size.parse().unwrap());
        claim.status.capacity.insert("storage".into(), size.parse().unwrap());
        claim.status.phase = "Bound".into();
        claim
    }

    fn volume(driver: &str, uid: &str) -> PersistentVolume {
        let mut volume = PersistentVolume::default();
        volume.spec.claim_ref = Some(ObjectReference { uid: uid.into(), ..ObjectReference::default() });
        let (driver, volume_handle) = (driver.into(), "handle".into());
        volume.spec.persistent_volume_source.csi =
            Some(CSIPersistentVolumeSource { driver, volume_handle, ..CSIPersistentVolumeSource::default() });
        volume
    }

    #[test]
    fn only_what_fits_is_cloned() {
        let mut pending = claim("o", "1Gi");
        pending.status.phase = "Pending".into();
        let mut block = claim("o", "1Gi");
        block.spec.volume_mode = Some("Block".into());
        for (name, wanted, origin, volume, expected) in [
            ("fits", "1Gi", claim("o", "1Gi"), Some(volume("d", "o")), Ok("handle")),
            ("is larger", "2Gi", claim("o", "1Gi"), Some(volume("d", "o")), Ok("handle")),
            ("is smaller", "1Mi", claim("o", "1Gi"), Some(volume("d", "o")), Err("greater than or equal in size")),
            ("not bound", "1Gi", pending, Some(volume("d", "o")), Err("must have a status of Bound")),
            ("gone", "1Gi", claim("o", "1Gi"), None, Err("is not there")),
            ("other driver", "1Gi", claim("o", "1Gi"), Some(volume("e", "o")), Err("does not belong")),
            ("other claim", "1Gi", claim("o", "1Gi"), Some(volume("d", "p")), Err("a different PVC")),
            ("other mode", "1Gi", block, Some(volume("d", "o")), Err("same volume mode")),
        ] {
            let found = handle_of_clone("d", &claim("c", wanted), &origin, volume.as_ref());
            match expected {
                Ok(handle) => assert_eq!(found.as_deref(), Ok(handle), "{name}"),
                Err(part) => assert!(found.clone().unwrap_err().contains(part), "{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn only_what_fits_is_restored() {
        let snapshot = |ready: bool| {
            let mut snapshot = VolumeSnapshot::default();
            (snapshot.metadata.name, snapshot.metadata.namespace, snapshot.metadata.uid) =
                ("s".into(), "ns".into(), "su".into());
            snapshot.status = Some(snapshot_v1::VolumeSnapshotStatus {
                ready_to_use: Some(ready),
                restore_size: Some("1Gi".parse().unwrap()),
                ..Default::default()
            });
            snapshot
        };
        let content = |driver: &str, uid: &str, mode: &str| {
            let mut content = VolumeSnapshotContent::default();
            content.spec.driver = driver.into();
            content.spec.source_volume_mode = Some(mode.into());
            content.spec.volume_snapshot_ref = ObjectReference {
                uid: uid.into(),
                name: "s".into(),
                namespace: "ns".into(),
                ..ObjectReference::default()
            };
            let snapshot_handle = Some("handle".into());
            content.status = Some(snapshot_v1::VolumeSnapshotContentStatus { snapshot_handle, ..Default::default() });
            Some(content)
        };
        let good = || content("d", "su", "Filesystem");
        let mut changing = content("d", "su", "Block");
        changing.as_mut().unwrap().metadata.annotations.insert(snapshot::ALLOW_MODE_CHANGE.into(), "true".into());
        for (name, size, snapshot, content, expected) in [
            ("fits", "1Gi", snapshot(true), good(), Ok("handle")),
            ("too small", "1Mi", snapshot(true), good(), Err("is less than the size")),
            ("not ready", "1Gi", snapshot(false), good(), Err("is not Ready")),
            ("not bound", "1Gi", snapshot(true), None, Err("not bound")),
            ("other driver", "1Gi", snapshot(true), content("e", "su", "Filesystem"), Err("driver e")),
            ("another's", "1Gi", snapshot(true), content("d", "x", "Filesystem"), Err("a different snapshot")),
            ("other mode", "1Gi", snapshot(true), content("d", "su", "Block"), Err("modifies the mode")),
            ("allowed", "1Gi", snapshot(true), changing, Ok("handle")),
        ] {
            let found = handle_of_snapshot("d", &claim("c", size), &snapshot, content.as_ref());
            match expected {
                Ok(handle) => assert_eq!(found.as_deref(), Ok(handle), "{name}"),
                Err(part) => assert!(found.clone().unwrap_err().contains(part), "{name}: {found:?}"),
            }
        }
    }

    #[test]
    fn sources_are_read() {
        let of = |group: Option<&str>, kind: &str| {
            let mut claim = claim("c", "1Gi");
            let (api_group, kind, name) = (group.map(Into::into), kind.into(), "x".into());
            claim.spec.data_source = Some(TypedLocalObjectReference { api_group, kind, name });
            claim
        };
        for (claim, expected) in [
            (claim("c", "1Gi"), Source::Nothing),
            (of(None, "PersistentVolumeClaim"), Source::Claim("x")),
            (of(Some("snapshot.storage.k8s.io"), "VolumeSnapshot"), Source::Snapshot("x")),
            (of(Some("other"), "Thing"), Source::Foreign),
        ] {
            assert_eq!(Source::of(&claim), expected);
        }
    }
}
