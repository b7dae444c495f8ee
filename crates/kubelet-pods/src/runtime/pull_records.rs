//! Which images this kubelet pulled, and with whose credentials: a pod that brings none that fit has the image pulled anew, so
//! that nobody uses what only others may see. The files are upstream's. See <https://kep.k8s.io/2535>.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_machinery::time::Time;
use base::SharedClock;
use node_api::cri::Images;
use node_api::cri::v1::ImageSpec;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::registry_auth::{CredentialSource, Found};
use crate::interfaces::{CredentialOwner, PullVerification};
use crate::metrics::KubeletMetrics;

const VERSION: &str = "kubelet.config.k8s.io/v1beta1";
/// Versions whose records say the same.
const READABLE: [&str; 2] = [VERSION, "kubelet.config.k8s.io/v1alpha1"];
const INTENT: &str = "ImagePullIntent";
const RECORD: &str = "ImagePulledRecord";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const FILE_PREFIX: &str = "sha256-";
/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// Secrets that a record remembers of an image because it was pulled with them.
const MAX_PULLED: usize = 1000;
/// From so many on, those that only look like one of them are not remembered too.
const MAX_MATCHED: usize = 100;
/// Files of each kind that are looked at.
const MAX_FILES: usize = 100_000;

/// An image as records have it.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// The name by which it is pulled.
    pub image: &'a str,
    /// The same with its registry, and without tag and digest.
    pub repository: &'a str,
}

/// How a pull ended.
#[derive(Debug, Clone, Copy)]
pub enum End<'a> {
    /// It brought this image, with these credentials or as nobody.
    Brought { reference: &'a str, credentials: Option<&'a Found> },
    /// It brought nothing.
    Failed,
    /// Nobody waited for it; the runtime may bring the image all the same.
    Unseen,
}

/// The pulls of an image that are on their way.
#[derive(Debug, Default)]
struct Begun {
    count: usize,
    /// Of a pull before these the end was not seen. That stays on disk until it is known for whom the image is.
    unseen: bool,
}

/// What is known of a pod's right to an image that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nobody asks.
    Allowed,
    /// It was pulled with what the pod has, too, or is everybody's.
    Recorded,
    /// The registry has to say.
    MustAuthenticate,
    /// Records cannot be read; the registry has to say as well.
    Unreadable,
}

impl Verdict {
    /// As metrics have it.
    fn name(self) -> &'static str {
        match self {
            Self::Allowed => "credentialPolicyAllowed",
            Self::Recorded => "credentialRecordFound",
            Self::MustAuthenticate => "mustAuthenticate",
            Self::Unreadable => "error",
        }
    }
}

/// The records of a node.
pub struct PullRecords {
    pulling: PathBuf,
    pulled: PathBuf,
    verification: PullVerification,
    /// By image.
    begun: Mutex<HashMap<String, Begun>>,
    /// Records are changed one at a time.
    changes: Mutex<()>,
    /// Whether what earlier kubelets left has been looked at.
    recovered: OnceCell<()>,
    clock: SharedClock,
    metrics: Arc<KubeletMetrics>,
}

impl PullRecords {
    /// Those below a kubelet's root directory.
    pub fn new(root: &Path, verification: PullVerification, clock: SharedClock, metrics: &Arc<KubeletMetrics>) -> Self {
        let root = root.join("image_manager");
        for family in [&metrics.pull_intents_in_memory, &metrics.pull_records_in_memory] {
            family.with(&[]).set(0.0);
        }
        let own = Self {
            pulling: root.join("pulling"),
            pulled: root.join("pulled"),
            verification,
            begun: Mutex::default(),
            changes: Mutex::default(),
            recovered: OnceCell::new(),
            clock,
            metrics: Arc::clone(metrics),
        };
        own.count();
        own
    }

    /// An image is about to be pulled.
    ///
    /// # Errors
    /// That cannot be written down; nobody may pull then, as nobody would know that the image is not preloaded.
    pub fn begin(&self, image: &str) -> io::Result<()> {
        {
            let (mut begun, path) = (self.begun.lock(), self.intent(image));
            if let Some(begun) = begun.get_mut(image) {
                begun.count += 1;
                return Ok(());
            }
            let unseen = path.exists();
            write(&path, &json!({"kind": INTENT, "apiVersion": VERSION, "image": image}))?;
            begun.insert(image.to_owned(), Begun { count: 1, unseen });
        }
        self.count();
        Ok(())
    }

    /// A pull is over.
    pub fn end(&self, of: Recorded<'_>, end: End<'_>) {
        if let End::Brought { reference, credentials } = end
            && let Err(error) = self.note(reference, of.repository, credentials, MAX_PULLED)
        {
            tracing::error!(image = of.image, %error, "The record of a pulled image cannot be written");
            // That the image was pulled is known, and for whom is not.
            return self.left(of.image, End::Unseen);
        }
        self.left(of.image, end);
    }

    /// One pull less is on its way.
    fn left(&self, image: &str, end: End<'_>) {
        {
            let mut all = self.begun.lock();
            let Some(begun) = all.get_mut(image) else { return };
            begun.unseen = match end {
                End::Brought { .. } => false,
                End::Failed => begun.unseen,
                End::Unseen => true,
            };
            begun.count = begun.count.saturating_sub(1);
            if begun.count > 0 {
                return;
            }
            if !begun.unseen {
                remove(&self.intent(image));
            }
            all.remove(image);
        }
        self.count();
    }

    /// Whether a pod may use an image that is there only once it has been pulled with the pod's own credentials, which
    /// `credentials` finds out, where that is asked for.
    pub async fn must_pull(
        &self,
        images: &dyn Images,
        of: Recorded<'_>,
        reference: &str,
        credentials: impl Future<Output = Vec<Found>>,
    ) -> bool {
        self.recovered.get_or_init(|| self.recover(images)).await;
        let verdict = self.judge(of, reference, credentials).await;
        self.metrics.pull_checks.with(&[verdict.name()]).inc();
        matches!(verdict, Verdict::MustAuthenticate | Verdict::Unreadable)
    }

    async fn judge(&self, of: Recorded<'_>, reference: &str, credentials: impl Future<Output = Vec<Found>>) -> Verdict {
        let record = match read(&self.record(reference), RECORD) {
            Ok(record) => record,
            Err(error) => {
                tracing::error!(image = of.image, %error, "The record of a pulled image cannot be read");
                return Verdict::Unreadable;
            }
        };
        let is_ours = record.is_some() || self.intent(of.image).exists();
        let is_asked = match &self.verification {
            PullVerification::Never => false,
            PullVerification::NotPreloaded => is_ours,
            PullVerification::NotListed(listed) => !listed.iter().any(|own| is_listed(own, of.repository)),
            PullVerification::Always => true,
        };
        if !is_asked {
            return Verdict::Allowed;
        }
        let Some(record) = record else { return Verdict::MustAuthenticate };
        let known = &record["credentialMapping"][of.repository];
        if known["nodePodsAccessible"] == true {
            return Verdict::Recorded;
        }
        if known.as_object().is_none_or(Map::is_empty) {
            return Verdict::MustAuthenticate;
        }
        let found = credentials.await;
        let Some(fitting) = found.iter().find(|found| fits(known, found)) else { return Verdict::MustAuthenticate };
        if let Err(error) = self.note(reference, of.repository, Some(fitting), MAX_MATCHED) {
            tracing::warn!(image = of.image, %error, "The record of a pulled image cannot be extended");
        }
        Verdict::Recorded
    }

    /// Forgets images that are not among these any more, but for those that were noted since.
    pub fn prune(&self, references: &dyn Fn(&str) -> bool, since: Time) {
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

    /// Looks at what earlier kubelets left: files of older versions, and pulls whose end they did not see. Of those that
    /// brought an image nobody knows for whom; the others may still do so, whoever did not see their end.
    async fn recover(&self, images: &dyn Images) {
        self.migrate();
        for (path, intent) in all(&self.pulling, INTENT) {
            let Some(image) = intent["image"].as_str() else { continue };
            if self.begun.lock().contains_key(image) {
                continue;
            }
            let spec = ImageSpec { image: image.to_owned(), ..ImageSpec::default() };
            let Ok(status) = images.image_status(spec, false).await else { continue };
            let Some(found) = status.image else { continue };
            match self.note_unknown(&found.id) {
                Ok(()) => remove(&path),
                Err(error) => tracing::error!(image, %error, "The record of a pulled image cannot be written"),
            }
        }
        self.count();
    }

    fn migrate(&self) {
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

    fn intent(&self, image: &str) -> PathBuf {
        self.pulling.join(file_name(image))
    }

    fn record(&self, reference: &str) -> PathBuf {
        self.pulled.join(file_name(reference))
    }

    /// Notes that an image was pulled and that nobody knows with whose credentials, unless more is known.
    fn note_unknown(&self, reference: &str) -> io::Result<()> {
        let _changing = self.changes.lock();
        if self.record(reference).exists() { Ok(()) } else { self.write_record(reference, Map::new()) }
    }

    /// Notes that credentials fit an image of a repository, if fewer than so many are known already.
    fn note(&self, reference: &str, repository: &str, credentials: Option<&Found>, most: usize) -> io::Result<()> {
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
    fn count(&self) {
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
fn extend(known: &mut Value, credentials: Option<&Found>, most: usize) {
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
fn fits(known: &Value, found: &Found) -> bool {
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

/// A repository, or all below one.
fn is_listed(own: &str, repository: &str) -> bool {
    match own.strip_suffix("/*") {
        Some(prefix) => repository.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')),
        None => own == repository,
    }
}

fn write(path: &Path, content: &Value) -> io::Result<()> {
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

#[cfg(test)]
#[path = "pull_records_tests.rs"]
mod tests;
