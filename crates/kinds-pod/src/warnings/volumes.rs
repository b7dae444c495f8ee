//! Warnings of volumes: sources that no node serves any more, files that lie over each other, and sources of nothing.

use api_machinery::field_path::Path;
use api_types::core_v1::{DownwardAPIVolumeFile, KeyToPath, PodSpec, Volume, VolumeProjection, VolumeSource};

use crate::claim_spec;

/// What is told of the volumes; `path` is the spec's.
pub(super) fn of(path: &Path, spec: &PodSpec, texts: &mut Vec<String>) {
    for (index, volume) in spec.volumes.iter().enumerate() {
        let at = path.child("volumes").index(index);
        let removed = removed_sources(&volume.volume_source).into_iter();
        texts.extend(removed.map(|(field, text)| format!("{}: {text}", at.child(field))));
        let claim = volume.volume_source.ephemeral.as_ref().and_then(|one| one.volume_claim_template.as_ref());
        if let Some(claim) = claim {
            let at = at.child("ephemeral").child("volumeClaimTemplate").child("spec");
            texts.extend(claim_spec::warnings(&at, &claim.spec));
        }
    }
    spec.volumes.iter().for_each(|volume| overlaps(volume, texts));
}

/// Sources that no node can serve any more.
fn removed_sources(source: &VolumeSource) -> Vec<(&'static str, &'static str)> {
    [
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        ("gitRepo", source.git_repo.is_some(), "deprecated in v1.11, and disabled by default in v1.33+"),
        ("scaleIO", source.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", source.flocker.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("storageOS", source.storageos.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", source.quobyte.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", source.glusterfs.is_some(), "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", source.cephfs.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", source.rbd.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
    ]
    .into_iter()
    .filter(|(_, set, _)| *set)
    .map(|(field, _, text)| (field, text))
    .collect()
}

fn overlaps(volume: &Volume, texts: &mut Vec<String>) {
    let source = &volume.volume_source;
    let mut told = |of: &str, files: &[(String, String)]| {
        let name = &volume.name;
        texts.extend(overlapping(files).map(|text| format!("volume \"{name}\" ({of}): overlapping paths: {text}")));
    };
    if let Some(map) = &source.config_map {
        told(&format!("ConfigMap \"{}\"", map.local_object_reference.name), &of_items(&map.items, ""));
    }
    if let Some(secret) = &source.secret {
        told(&format!("Secret \"{}\"", secret.secret_name), &of_items(&secret.items, ""));
    }
    if let Some(downward) = &source.downward_api {
        told("DownwardAPI", &of_files(&downward.items, ""));
    }
    let Some(projected) = &source.projected else { return };
    let files: Vec<(String, String)> = projected.sources.iter().flat_map(of_projection).collect();
    told("Projected", &files);
    for _ in projected.sources.iter().filter(|source| **source == VolumeProjection::default()) {
        texts.push(format!("volume \"{}\" (Projected) has no sources provided", volume.name));
    }
}

/// A path, and how it is shown: quoted, and with the source it comes from where there are several.
fn shown(path: &str, from: &str) -> (String, String) {
    let from = if from.is_empty() { String::new() } else { format!(" ({from})") };
    (path.to_owned(), format!("\"{path}\"{from}"))
}

fn of_items(items: &[KeyToPath], from: &str) -> Vec<(String, String)> {
    items.iter().map(|item| shown(&item.path, from)).collect()
}

fn of_files(files: &[DownwardAPIVolumeFile], from: &str) -> Vec<(String, String)> {
    files.iter().map(|file| shown(&file.path, from)).collect()
}

fn of_projection(source: &VolumeProjection) -> Vec<(String, String)> {
    let mut files = Vec::new();
    if let Some(map) = &source.config_map {
        files.extend(of_items(&map.items, &format!("ConfigMap \"{}\"", map.local_object_reference.name)));
    }
    if let Some(secret) = &source.secret {
        files.extend(of_items(&secret.items, &format!("Secret \"{}\"", secret.local_object_reference.name)));
    }
    if let Some(downward) = &source.downward_api {
        files.extend(of_files(&downward.items, "DownwardAPI"));
    }
    if let Some(token) = &source.service_account_token {
        files.push(shown(&token.path, "ServiceAccountToken"));
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        let name = bundle.name.as_deref().or(bundle.signer_name.as_deref()).unwrap_or_default();
        files.push(shown(&bundle.path, &format!("ClusterTrustBundle \"{name}\"")));
    }
    if let Some(certificate) = &source.pod_certificate {
        for (path, from) in [
            (&certificate.certificate_chain_path, "PodCertificate chain"),
            (&certificate.key_path, "PodCertificate key"),
            (&certificate.credential_bundle_path, "PodCertificate credential bundle"),
        ] {
            files.extend((!path.is_empty()).then(|| shown(path, from)));
        }
    }
    files
}

/// Each pair of which one is the other or a directory above it, the later first.
fn overlapping(files: &[(String, String)]) -> impl Iterator<Item = String> {
    let above =
        |one: &str, other: &str| other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let pairs =
        files.iter().enumerate().flat_map(|(index, later)| files.iter().take(index).map(move |one| (later, one)));
    let touching = pairs.filter(move |((later, _), (one, _))| above(later, one) || above(one, later));
    touching.map(|((_, later), (_, one))| format!("{later} with {one}"))
}
