//! The archive around the layer: configuration, manifest, index, and the names under which all that is imported.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::tar::{Member, Writer};
use crate::{ArchiveError, Entry, full_name, layer, name};

/// A `sha256:...` content address.
pub type Digest = String;

const DEFAULT_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// An image: its names, what it contains and how it runs. Empty fields are absent from the image's configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageSpec {
    /// Names with tags, short or full; at least one.
    pub names: Vec<String>,
    /// In the order in which they enter the layer; a path that comes twice keeps its first entry.
    pub entries: Vec<Entry>,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// `NAME=value`; a usual PATH is added if none is given.
    pub env: Vec<String>,
    /// `uid:gid` or a name.
    pub user: String,
    /// `8080/tcp`.
    pub exposed_ports: Vec<String>,
    pub labels: BTreeMap<String, String>,
}

/// Writes the image to `out` and returns the manifest's digest, by which the runtime will know it.
///
/// # Errors
/// A path that does not fit a tar, an image without a name, or a failing `out`.
pub fn write_archive(spec: &ImageSpec, out: &mut dyn Write) -> Result<Digest, ArchiveError> {
    if spec.names.is_empty() {
        return Err(ArchiveError::NoName);
    }
    let layer = layer::layer(&spec.entries)?;
    let config = config(spec, &digest(&layer)).to_string().into_bytes();
    let manifest = manifest(&config, &layer).to_string().into_bytes();
    let names: Vec<_> = spec.names.iter().map(|name| full_name(name)).collect();
    let docker = json!([{"Config": blob(&config), "RepoTags": names, "Layers": [blob(&layer)]}]);

    let mut tar = Writer::new(out);
    let mut put = |name: &str, data: &[u8]| tar.append(name, 0o644, Member::File(data));
    put("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    put("index.json", index(&names, &manifest).to_string().as_bytes())?;
    put("manifest.json", docker.to_string().as_bytes())?;
    for data in [&config, &manifest, &layer] {
        put(&blob(data), data)?;
    }
    tar.finish()?;
    Ok(digest(&manifest))
}

fn config(spec: &ImageSpec, layer: &str) -> Value {
    let mut env = spec.env.clone();
    if !env.iter().any(|pair| pair.starts_with("PATH=")) {
        env.insert(0, DEFAULT_PATH.to_owned());
    }
    let mut run = json!({"Env": env});
    let ports: BTreeMap<_, _> = spec.exposed_ports.iter().map(|port| (port, json!({}))).collect();
    let optional = [
        ("Entrypoint", json!(spec.entrypoint), spec.entrypoint.is_empty()),
        ("Cmd", json!(spec.command), spec.command.is_empty()),
        ("User", json!(spec.user), spec.user.is_empty()),
        ("ExposedPorts", json!(ports), ports.is_empty()),
        ("Labels", json!(spec.labels), spec.labels.is_empty()),
    ];
    if let Some(run) = run.as_object_mut() {
        run.extend(
            optional.into_iter().filter(|(_, _, absent)| !absent).map(|(key, value, _)| (key.to_owned(), value)),
        );
    }
    json!({
        "created": EPOCH,
        "architecture": architecture(),
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": EPOCH}],
    })
}

fn manifest(config: &[u8], layer: &[u8]) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
    })
}

/// One entry per name: the annotation is where containerd's importer takes the full name from.
fn index(names: &[String], manifest: &[u8]) -> Value {
    let entry = |name: &String| {
        let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", manifest);
        entry["platform"] = json!({"architecture": architecture(), "os": "linux"});
        entry["annotations"] =
            json!({"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name::tag(name)});
        entry
    };
    json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": names.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn descriptor(media_type: &str, data: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(data), "size": data.len()})
}

fn blob(data: &[u8]) -> String {
    digest(data).replacen("sha256:", "blobs/sha256/", 1)
}

fn digest(data: &[u8]) -> Digest {
    let hash = Sha256::digest(data);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// The architecture this program was built for, in the words of image manifests.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ImageSpec {
        ImageSpec {
            names: vec!["app:1".to_owned(), "app:2".to_owned()],
            entries: vec![Entry::File { path: "/app".to_owned(), mode: 0o755, data: b"program".to_vec() }],
            entrypoint: vec!["/app".to_owned()],
            ..ImageSpec::default()
        }
    }

    fn member<'a>(archive: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let at = archive.chunks(512).position(|block| block.starts_with(name.as_bytes()) && block[name.len()] == 0)?;
        let size = std::str::from_utf8(&archive[at * 512 + 124..at * 512 + 135]).ok()?;
        archive.get((at + 1) * 512..(at + 1) * 512 + usize::from_str_radix(size, 8).ok()?)
    }

    fn write(spec: &ImageSpec) -> (String, Vec<u8>) {
        let mut bytes = Vec::new();
        let digest = write_archive(spec, &mut bytes).unwrap();
        (digest, bytes)
    }

    #[test]
    fn the_same_specification_gives_the_same_bytes() {
        assert_eq!(write(&spec()), write(&spec()));
        let other = ImageSpec { env: vec!["A=1".to_owned()], ..spec() };
        assert_ne!(write(&spec()).0, write(&other).0);
    }

    #[test]
    fn every_reference_leads_to_its_blob() {
        let (digest, archive) = write(&spec());
        let index: Value = serde_json::from_slice(member(&archive, "index.json").unwrap()).unwrap();
        let names: Vec<_> = index["manifests"].as_array().unwrap().iter().map(|entry| &entry["annotations"]).collect();
        assert_eq!(names[1]["io.containerd.image.name"], "docker.io/library/app:2");
        let blob = |digest: &Value| member(&archive, &digest.as_str().unwrap().replace("sha256:", "blobs/sha256/"));
        assert_eq!(index["manifests"][0]["digest"], digest.as_str());
        let manifest: Value = serde_json::from_slice(blob(&index["manifests"][0]["digest"]).unwrap()).unwrap();
        let config: Value = serde_json::from_slice(blob(&manifest["config"]["digest"]).unwrap()).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"]);
        assert_eq!(config["config"]["Entrypoint"], json!(["/app"]));
        assert_eq!(config["config"].get("Cmd"), None);
        assert_eq!(blob(&manifest["layers"][0]["digest"]).unwrap().len() as u64, manifest["layers"][0]["size"]);
    }

    #[test]
    fn an_image_needs_a_name() {
        let nameless = ImageSpec { names: Vec::new(), ..spec() };
        assert!(matches!(write_archive(&nameless, &mut Vec::new()), Err(ArchiveError::NoName)));
    }
}
