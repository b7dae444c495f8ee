//! The volume that the cluster gets to see. Pure.

use std::collections::BTreeMap;

use api_machinery::object::Kind as _;
use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::constants::persistent_volume_reclaim_policy as policy;
use api_types::core_v1::{
    CSIPersistentVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim, SecretReference,
};
use api_types::storage_v1::StorageClass;
use component_helpers::volumes::names::PROVISIONED_BY;
use node_api::csi::v1::{CreateVolumeRequest, Volume};

use super::request::wants_block;
use crate::names::{DELETION_SECRET_NAME, DELETION_SECRET_NAMESPACE, PROVISIONER};
use crate::secrets::Purpose;
use crate::topology;

/// What a driver answered that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Garbage {
    #[error("the driver answered without a volume")]
    Nothing,
    #[error("the driver answered with a volume without an id")]
    NoId,
    #[error("created volume capacity {0} less than requested capacity {1}")]
    TooSmall(i64, i64),
    #[error("volume content source missing")]
    NoContent,
}

/// Whether an answer is about what was asked for.
///
/// # Errors
/// When it is not.
pub(crate) fn check(request: &CreateVolumeRequest, volume: Option<Volume>) -> Result<Volume, Garbage> {
    let volume = volume.ok_or(Garbage::Nothing)?;
    if volume.volume_id.is_empty() {
        return Err(Garbage::NoId);
    }
    let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
    // Zero stands for a size that nobody knows.
    if volume.capacity_bytes != 0 && volume.capacity_bytes < wanted {
        return Err(Garbage::TooSmall(volume.capacity_bytes, wanted));
    }
    if request.volume_content_source.is_some() && volume.content_source.is_none() {
        return Err(Garbage::NoContent);
    }
    Ok(volume)
}

/// Of what a volume is made.
pub(crate) struct Made<'a> {
    pub(crate) name: &'a str,
    pub(crate) driver: &'a str,
    pub(crate) claim: &'a PersistentVolumeClaim,
    pub(crate) class: &'a StorageClass,
    pub(crate) fs_type: &'a str,
    pub(crate) secrets: &'a BTreeMap<Purpose, SecretReference>,
    pub(crate) volume: Volume,
    pub(crate) required_bytes: i64,
}

impl Made<'_> {
    pub(crate) fn build(self) -> PersistentVolume {
        let mut made = PersistentVolume::default();
        self.name.clone_into(&mut made.metadata.name);
        let annotations = &mut made.metadata.annotations;
        annotations.insert(PROVISIONED_BY.to_owned(), self.driver.to_owned());
        // They are there with nothing in them, too, so that nobody has to ask the class again.
        let deletion = self.secrets.get(&Purpose::Provision).cloned().unwrap_or_default();
        annotations.insert(DELETION_SECRET_NAME.to_owned(), deletion.name);
        annotations.insert(DELETION_SECRET_NAMESPACE.to_owned(), deletion.namespace);
        let reclaim = self.class.reclaim_policy.as_deref().unwrap_or(policy::DELETE);
        if reclaim == policy::DELETE {
            made.metadata.finalizers.push(PROVISIONER.to_owned());
        }
        let spec = &mut made.spec;
        let bytes = if self.volume.capacity_bytes == 0 { self.required_bytes } else { self.volume.capacity_bytes };
        spec.capacity.insert("storage".into(), Quantity::from_value(bytes, Format::BinarySi));
        reclaim.clone_into(&mut spec.persistent_volume_reclaim_policy);
        spec.access_modes.clone_from(&self.claim.spec.access_modes);
        spec.claim_ref = Some(reference(self.claim));
        spec.storage_class_name.clone_from(&self.class.metadata.name);
        spec.mount_options.clone_from(&self.class.mount_options);
        spec.volume_mode.clone_from(&self.claim.spec.volume_mode);
        spec.node_affinity = topology::affinity(&self.volume.accessible_topology);
        spec.volume_attributes_class_name.clone_from(&self.claim.spec.volume_attributes_class_name);
        spec.persistent_volume_source.csi = Some(self.source());
        made
    }

    fn source(self) -> CSIPersistentVolumeSource {
        let secret = |purpose| self.secrets.get(&purpose).cloned();
        CSIPersistentVolumeSource {
            driver: self.driver.to_owned(),
            fs_type: if wants_block(self.claim) { String::new() } else { self.fs_type.to_owned() },
            controller_publish_secret_ref: secret(Purpose::ControllerPublish),
            node_stage_secret_ref: secret(Purpose::NodeStage),
            node_publish_secret_ref: secret(Purpose::NodePublish),
            controller_expand_secret_ref: secret(Purpose::ControllerExpand),
            node_expand_secret_ref: secret(Purpose::NodeExpand),
            volume_handle: self.volume.volume_id,
            read_only: false,
            volume_attributes: self.volume.volume_context.into_iter().collect(),
        }
    }
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let meta = &claim.metadata;
    ObjectReference {
        kind: PersistentVolumeClaim::TYPE.kind.to_owned(),
        api_version: PersistentVolumeClaim::TYPE.api_version(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        field_path: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use node_api::csi::v1::{CapacityRange, VolumeContentSource};

    use super::*;

    fn volume(id: &str, bytes: i64) -> Volume {
        Volume { volume_id: id.into(), capacity_bytes: bytes, ..Volume::default() }
    }

    #[test]
    fn answers_are_checked() {
        let request = CreateVolumeRequest {
            capacity_range: Some(CapacityRange { required_bytes: 5, limit_bytes: 0 }),
            ..CreateVolumeRequest::default()
        };
        let copied =
            CreateVolumeRequest { volume_content_source: Some(VolumeContentSource::default()), ..request.clone() };
        for (request, answer, expected) in [
            (&request, None, Err(Garbage::Nothing)),
            (&request, Some(volume("", 5)), Err(Garbage::NoId)),
            (&request, Some(volume("v", 4)), Err(Garbage::TooSmall(4, 5))),
            (&request, Some(volume("v", 0)), Ok(volume("v", 0))),
            (&request, Some(volume("v", 9)), Ok(volume("v", 9))),
            (&copied, Some(volume("v", 9)), Err(Garbage::NoContent)),
        ] {
            assert_eq!(check(request, answer), expected);
        }
    }

    #[test]
    fn a_volume_says_whose_it_is_and_how_it_goes() {
        let mut claim = PersistentVolumeClaim::default();
        (claim.metadata.name, claim.metadata.namespace, claim.metadata.uid) = ("c".into(), "ns".into(), "u".into());
        claim.spec.access_modes = vec!["ReadWriteOnce".into()];
        let secrets =
            BTreeMap::from([(Purpose::NodeStage, SecretReference { name: "s".into(), namespace: "ns".into() })]);
        for (reclaim, finalizers) in [("Delete", vec![PROVISIONER.to_owned()]), ("Retain", vec![])] {
            let mut class = StorageClass { reclaim_policy: Some(reclaim.into()), ..StorageClass::default() };
            class.metadata.name = "fast".into();
            let made = Made {
                name: "pvc-u",
                driver: "d",
                claim: &claim,
                class: &class,
                fs_type: "ext4",
                secrets: &secrets,
                volume: volume("handle", 0),
                required_bytes: 1024,
            };
            let made = made.build();
            assert_eq!(made.metadata.finalizers, finalizers);
            assert_eq!(made.metadata.annotations[PROVISIONED_BY], "d");
            assert_eq!(made.spec.capacity["storage"].to_string(), "1Ki");
            assert_eq!(made.spec.persistent_volume_reclaim_policy, reclaim);
            assert_eq!(made.spec.claim_ref.as_ref().unwrap().uid, "u");
            let csi = made.spec.persistent_volume_source.csi.as_ref().unwrap();
            assert_eq!((csi.volume_handle.as_str(), csi.fs_type.as_str()), ("handle", "ext4"));
            assert_eq!(csi.node_stage_secret_ref.as_ref().unwrap().name, "s");
        }
    }
}
