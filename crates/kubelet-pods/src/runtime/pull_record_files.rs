//! The files about images that were pulled, as upstream has them: which are being pulled, and with whose credentials those
//! that are there came. Everything here blocks; [`super::pull_records`] calls from threads that may.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_machinery::time::Time;
use base::SharedClock;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::registry_auth::{CredentialSource, Found};
use crate::interfaces::CredentialOwner;
use crate::metrics::KubeletMetrics;

pub(super) const VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// Versions whose records say the same.
const READABLE: [&str; 2] = [VERSION, "kubelet.config.k8s.io/v1alpha1"];
pub(super) const INTENT: &str = "ImagePullIntent";
pub(super) const RECORD: &str = "ImagePulledRecord";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const FILE_PREFIX: &str = "sha256-";
/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// Secrets that a record remembers of an image because it was pulled with them.
pub(super) const MAX_PULLED: usize = 1000;
/// From so many on, those that only look like one of them are not remembered too.
pub(super) const MAX_MATCHED: usize = 100;
/// Files of each kind that are looked at.
const MAX_FILES: usize = 100_000;

/// The files below a kubelet's root directory.
pub(super) struct RecordFiles {
    pulling: PathBuf,
    pulled: PathBuf,
    /// Records are changed one at a time.
    changes: Mutex<()>,
    clock: SharedClock,
    metrics: Arc<KubeletMetrics>,
}

impl RecordFiles {
    pub(super) fn new(root: &Path, clock: SharedClock, metrics: Arc<KubeletMetrics>) -> Self {
        let root = root.join("image_manager");
        let (pulling, pulled) = (root.join("pulling"), root.join("pulled"));
        Self { pulling, pulled, changes: Mutex::default(), clock, metrics }
    }

    /// Whether it is written down that an image is being pulled, or was and nobody saw the end.
    pub(super) fn is_intended(&self, image: &str) -> bool {
        self.intent(image).exists()
    }

    /// Writes down that an image is being pulled.
    pub(super) fn intend(&self, image: &str) -> io::Result<()> {
        write(&self.intent(image), &json!({"kind": INTENT, "apiVersion": VERSION, "image": image}))?;
        self.count();
        Ok(())
    }

    /// It is not being pulled any more.
    pub(super) fn forget_intent(&self, image: &str) {
        remove(&self.intent(image));
        self.count();
    }

    /// The images that are being pulled, or were and nobody saw the end.
    pub(super) fn intended(&self) -> Vec<String> {
        let images = all(&self.pulling, INTENT).into_iter();
        images.filter_map(|(_, intent)| intent["image"].as_str().map(str::to_owned)).collect()
    }

    /// The record of an image; nothing where there is none.
    pub(super) fn record_of(&self, reference: &str) -> io::Result<Option<Value>> {
        read(&self.record(reference), RECORD)
    }

    /// Forgets images that are not among these any more, but for those that were noted since.
    pub(super) fn prune(&self, references: &dyn Fn(&str) -> bool, since: Time) {
        let changing = self.changes.lock();
        for (path, record) in all(&self.pulled, RECORD) {
            let written = record["lastUpdatedTime"].as_str().and_then(|text| Time::parse(text).ok());
            let is_old = written.is_none_or(|written| written < since);
            if is_old && record["imageRef"].as_str().is_none_or(|reference| !references(reference)) {
                remove(&path);
            }
        }
        drop(changing);
        self.count();
    }

    /// Rewrites files of older versions.
    pub(super) fn migrate(&self) {
        for (directory, kind) in [(&self.pulling, INTENT), (&self.pulled, RECORD)] {
            for (path, mut object) in
                all(directory, kind).into_iter().filter(|(_, object)| object["apiVersion"] != VERSION)
            {
                object["apiVersion"] = VERSION.into();
                if let Err(error) = write(&path, &object) {
                    tracing::warn!(path = %path.display(), %error, "A record of an image cannot be migrated");
                }
            }
        }
    }

    pub(super) fn intent(&self, image: &str) -> PathBuf {
        self.pulling.join(file_name(image))
    }

    pub(super) fn record(&self, reference: &str) -> PathBuf {
        self.pulled.join(file_name(reference))
    }

    /// Notes that an image was pulled and that nobody knows with whose credentials, unless more is known.
    pub(super) fn note_unknown(&self, reference: &str) -> io::Result<()> {
        let _changing = self.changes.lock();
        if self.record(reference).exists() { Ok(()) } else { self.write_record(reference, Map::new()) }
    }

    /// Notes that credentials fit an image of a repository, if fewer than so many are known already.
    pub(super) fn note(
        &self,
        reference: &str,
        repository: &str,
        credentials: Option<&Found>,
        most: usize,
    ) -> io::Result<()> {
        let _changing = self.changes.lock();
        // What cannot be read is written anew.
        let before = read(&self.record(reference), RECORD).ok().flatten();
        let before = before.as_ref().and_then(|record| record["credentialMapping"].as_object());
        let mut mapping = before.cloned().unwrap_or_default();
        extend(mapping.entry(repository).or_insert_with(|| json!({})), credentials, most);
        if before == Some(&mapping) { Ok(()) } else { self.write_record(reference, mapping) }
    }

    fn write_record(&self, reference: &str, mapping: Map<String, Value>) -> io::Result<()> {
        let now = Time::from(self.clock.wall()).to_string();
        let mut record = json!({"kind": RECORD, "apiVersion": VERSION, "lastUpdatedTime": now, "imageRef": reference});
        if !mapping.is_empty() {
            record["credentialMapping"] = Value::Object(mapping);
        }
        write(&self.record(reference), &record)
    }

    /// Tells how many files there are.
    pub(super) fn count(&self) {
        for (family, directory) in
            [(&self.metrics.pull_intents, &self.pulling), (&self.metrics.pull_records, &self.pulled)]
        {
            let count = u32::try_from(files(directory).count()).unwrap_or(u32::MAX);
            family.with(&[]).set(f64::from(count));
        }
    }
}

fn file_name(of: &str) -> String {
    format!("{FILE_PREFIX}{}", kubelet_node::csi::hash(&[of]))
}

/// Adds credentials to those that an image was pulled with. None, or those of the node, are everybody's.
pub(super) fn extend(known: &mut Value, credentials: Option<&Found>, most: usize) {
    if known["nodePodsAccessible"] == true {
        return;
    }
    if !known.is_object() {
        // Somebody else wrote it.
        *known = json!({});
    }
    match credentials.map(|found| (&found.source, found)) {
        None | Some((CredentialSource::Node, _)) => *known = json!({"nodePodsAccessible": true}),
        Some((CredentialSource::Secret(owner), found)) => {
            let mut entry = coordinates(owner);
            entry["credentialHash"] = found.hash().into();
            remember(&mut known["kubernetesSecrets"], entry, most);
        }
        Some((CredentialSource::Account(owner), _)) => {
            remember(&mut known["kubernetesServiceAccounts"], coordinates(owner), most);
        }
    }
}

fn coordinates(owner: &CredentialOwner) -> Value {
    json!({"uid": owner.uid, "namespace": owner.namespace, "name": owner.name})
}

/// Where an object stands in a list.
fn order(own: &Value) -> [&str; 3] {
    ["namespace", "name", "uid"].map(|part| own[part].as_str().unwrap_or_default())
}

/// Adds an entry to a list, in order; one of the same object is replaced.
fn remember(list: &mut Value, entry: Value, most: usize) {
    let mut entries = match list.take() {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    };
    let before = entries.len();
    entries.retain(|own| order(own) != order(&entry));
    if entries.len() < before || before < most {
        let at = entries.partition_point(|own| order(own) < order(&entry));
        entries.insert(at, entry);
    }
    *list = Value::Array(entries);
}

/// Whether credentials are among those that an image was pulled with. A secret whose content was changed since still is.
pub(super) fn fits(known: &Value, found: &Found) -> bool {
    let is = |own: &Value, owner: &CredentialOwner| order(own) == [&*owner.namespace, &*owner.name, &*owner.uid];
    let entries = |list: &str| known[list].as_array().into_iter().flatten();
    match &found.source {
        CredentialSource::Node => false,
        CredentialSource::Secret(owner) => {
            let hash = found.hash();
            entries("kubernetesSecrets").any(|own| own["credentialHash"] == *hash || is(own, owner))
        }
        CredentialSource::Account(owner) => entries("kubernetesServiceAccounts").any(|own| is(own, owner)),
    }
}

pub(super) fn write(path: &Path, content: &Value) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if let Some(parent) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(parent)?;
    }
    sys::fs::write_atomic(path, content.to_string().as_bytes(), FILE_MODE)
}

/// A file of this kind; nothing where there is none.
fn read(path: &Path, kind: &str) -> io::Result<Option<Value>> {
    use std::io::Read as _;
    let mut text = String::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(MAX_BYTES).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let value: Value = serde_json::from_str(&text)?;
    let known = value["kind"] == kind && READABLE.iter().any(|version| value["apiVersion"] == *version);
    if known { Ok(Some(value)) } else { Err(io::Error::new(io::ErrorKind::InvalidData, format!("it is no {kind}"))) }
}

/// The files of a directory, without those that are being written.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_FILES);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FILE_PREFIX)).map(|entry| entry.path())
}

fn all(directory: &Path, kind: &str) -> Vec<(PathBuf, Value)> {
    files(directory).filter_map(|path| read(&path, kind).ok().flatten().map(|value| (path, value))).collect()
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A record of an image cannot be removed");
        }
        _ => {}
    }
}
