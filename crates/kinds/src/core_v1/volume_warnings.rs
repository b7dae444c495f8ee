//! What is told of persistent volumes that hold what has gone out of use.

use api_machinery::field_path::Path;
use api_types::core_v1::PersistentVolume;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;

use super::volume_validation::MOUNT_OPTIONS;
use crate::pod_spec::warnings::of_term;

/// The warnings of a volume.
pub(super) fn of(volume: &PersistentVolume) -> Vec<String> {
    let mut texts = Vec::new();
    let (path, spec) = (Path::new("spec"), &volume.spec);
    for (key, text) in [
        (BETA_STORAGE_CLASS_ANNOTATION, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ] {
        if volume.metadata.annotations.contains_key(key) {
            texts.push(format!("metadata.annotations[{key}]: {text}"));
        }
    }
    if spec.persistent_volume_reclaim_policy == "Recycle" {
        let text = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
                    provisioning.";
        texts.push(format!("{}: {text}", path.child("persistentVolumeReclaimPolicy")));
    }
    let required = spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    let at = path.child("nodeAffinity").child("required").child("nodeSelectorTerms");
    for (index, term) in required.iter().flat_map(|selector| &selector.node_selector_terms).enumerate() {
        of_term(&at.index(index), term, &mut texts);
    }
    let source = &spec.persistent_volume_source;
    for (field, set, text) in [
        ("cephfs", source.cephfs.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        ("rbd", source.rbd.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        ("scaleIO", source.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
        ("storageOS", source.storageos.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", source.glusterfs.is_some(), "deprecated in v1.25, non-functional in v1.26+"),
    ] {
        if set {
            texts.push(format!("{}: {text}", path.child(field)));
        }
    }
    texts
}
