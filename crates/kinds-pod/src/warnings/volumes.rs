//! Warnings of volumes: sources that no node serves any more, files that lie over each other, and sources of nothing.

use std::fmt;

use api_machinery::field_path::Path;
use api_types::core_v1::{DownwardAPIVolumeFile, KeyToPath, PodSpec, Volume, VolumeProjection, VolumeSource};

use super::ENOUGH;
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
    let mut told = |of: Origin<'_>, files: &[File<'_>]| {
        let name = &volume.name;
        let overlaps = overlapping(files, ENOUGH.saturating_sub(texts.len())).into_iter();
        texts.extend(overlaps.map(|text| format!("volume \"{name}\" ({of}): overlapping paths: {text}")));
    };
    if let Some(map) = &source.config_map {
        told(Origin::named("ConfigMap", &map.local_object_reference.name), &of_items(&map.items, None));
    }
    if let Some(secret) = &source.secret {
        told(Origin::named("Secret", &secret.secret_name), &of_items(&secret.items, None));
    }
    if let Some(downward) = &source.downward_api {
        told(Origin::of("DownwardAPI"), &of_files(&downward.items, None));
    }
    let Some(projected) = &source.projected else { return };
    let files: Vec<File<'_>> = projected.sources.iter().flat_map(of_projection).collect();
    told(Origin::of("Projected"), &files);
    for _ in projected.sources.iter().filter(|source| **source == VolumeProjection::default()) {
        texts.push(format!("volume \"{}\" (Projected) has no sources provided", volume.name));
    }
}

/// What a file comes from: `Projected`, `Secret "keys"`.
#[derive(Clone, Copy)]
struct Origin<'a> {
    kind: &'static str,
    name: Option<&'a str>,
}

impl<'a> Origin<'a> {
    fn of(kind: &'static str) -> Self {
        Self { kind, name: None }
    }

    fn named(kind: &'static str, name: &'a str) -> Self {
        Self { kind, name: Some(name) }
    }
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.kind)?;
        self.name.map_or(Ok(()), |name| write!(out, " \"{name}\""))
    }
}

/// A file: quoted, and with the source it comes from where there are several.
struct File<'a> {
    path: &'a str,
    origin: Option<Origin<'a>>,
}

impl fmt::Display for File<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "\"{}\"", self.path)?;
        self.origin.map_or(Ok(()), |origin| write!(out, " ({origin})"))
    }
}

fn of_items<'a>(items: &'a [KeyToPath], origin: Option<Origin<'a>>) -> Vec<File<'a>> {
    items.iter().map(|item| File { path: &item.path, origin }).collect()
}

fn of_files<'a>(files: &'a [DownwardAPIVolumeFile], origin: Option<Origin<'a>>) -> Vec<File<'a>> {
    files.iter().map(|file| File { path: &file.path, origin }).collect()
}

fn of_projection(source: &VolumeProjection) -> Vec<File<'_>> {
    let mut files = Vec::new();
    if let Some(map) = &source.config_map {
        files.extend(of_items(&map.items, Some(Origin::named("ConfigMap", &map.local_object_reference.name))));
    }
    if let Some(secret) = &source.secret {
        files.extend(of_items(&secret.items, Some(Origin::named("Secret", &secret.local_object_reference.name))));
    }
    if let Some(downward) = &source.downward_api {
        files.extend(of_files(&downward.items, Some(Origin::of("DownwardAPI"))));
    }
    if let Some(token) = &source.service_account_token {
        files.push(File { path: &token.path, origin: Some(Origin::of("ServiceAccountToken")) });
    }
    if let Some(bundle) = &source.cluster_trust_bundle {
        let name = bundle.name.as_deref().or(bundle.signer_name.as_deref()).unwrap_or_default();
        files.push(File { path: &bundle.path, origin: Some(Origin::named("ClusterTrustBundle", name)) });
    }
    if let Some(certificate) = &source.pod_certificate {
        for (path, kind) in [
            (&certificate.certificate_chain_path, "PodCertificate chain"),
            (&certificate.key_path, "PodCertificate key"),
            (&certificate.credential_bundle_path, "PodCertificate credential bundle"),
        ] {
            files.extend((!path.is_empty()).then(|| File { path, origin: Some(Origin::of(kind)) }));
        }
    }
    files
}

/// The pairs of which one is the other or a directory above it, the later first; `most` of them where there are more. They are
/// found in the order of their paths, in which all that are above one stand before it: a volume may have a hundred thousand.
fn overlapping(files: &[File<'_>], most: usize) -> Vec<String> {
    /// Before anything else comes what is below.
    fn by_parts(path: &str) -> impl Iterator<Item = u16> {
        path.bytes().map(|byte| if byte == b'/' { 0 } else { u16::from(byte) + 1 })
    }
    let is_above =
        |one: &str, other: &str| other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let mut sorted: Vec<(usize, &File<'_>)> = files.iter().enumerate().collect();
    sorted.sort_by(|(_, one), (_, other)| by_parts(one.path).cmp(by_parts(other.path)));
    let (mut above, mut pairs) = (Vec::<(usize, &str)>::new(), Vec::new());
    for (index, file) in sorted {
        while above.pop_if(|(_, last)| !is_above(last, file.path)).is_some() {}
        let room = most.saturating_sub(pairs.len());
        pairs.extend(above.iter().take(room).map(|(other, _)| (index.max(*other), index.min(*other))));
        above.push((index, file.path));
    }
    pairs.sort_unstable();
    pairs.into_iter().map(|(later, one)| format!("{} with {}", files[later], files[one])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(paths: &[&str]) -> Vec<String> {
        let files: Vec<File<'_>> = paths.iter().map(|path| File { path, origin: None }).collect();
        overlapping(&files, ENOUGH)
    }

    #[test]
    fn pairs_are_told_in_order_and_are_bounded() {
        let found = pairs(&["d/e", "d-b", "d", "x", "d/e/f", "d", "e/f", "d/", "/x", ""]);
        let expected = [
            r#""d" with "d/e""#,
            r#""d/e/f" with "d/e""#,
            r#""d/e/f" with "d""#,
            r#""d" with "d/e""#,
            r#""d" with "d""#,
            r#""d" with "d/e/f""#,
            r#""d/" with "d""#,
            r#""d/" with "d""#,
            r#""" with "/x""#,
        ];
        assert_eq!(found, expected);
        assert_eq!(pairs(&["t"; 3000]).len(), ENOUGH);
    }
}
