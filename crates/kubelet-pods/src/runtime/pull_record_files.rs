//! The files about images that were pulled, as upstream has them: which are being pulled, and with whose credentials those
//! that are there came. Everything here blocks; [`super::pull_records`] calls from threads that may.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_machinery::json;
use api_machinery::object::Kind;
use api_machinery::time::Time;
use api_types::Document;
use api_types::kubelet_config_v1beta1::{
    API_VERSION, API_VERSIONS, ImagePullCredentials, ImagePullIntent, ImagePullSecret, ImagePullServiceAccount,
    ImagePulledRecord,
};
use base::SharedClock;
use parking_lot::Mutex;

use super::registry_auth::{CredentialSource, Found};
use crate::interfaces::CredentialOwner;
use crate::metrics::KubeletMetrics;

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

/// By repository, with what an image was pulled from there.
type Mapping = BTreeMap<String, ImagePullCredentials>;

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
        write(&self.intent(image), &ImagePullIntent { image: image.to_owned() })?;
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
        all::<ImagePullIntent>(&self.pulling).map(|(_, found)| found.object.image).collect()
    }

    /// The record of an image; nothing where there is none.
    pub(super) fn record_of(&self, reference: &str) -> io::Result<Option<ImagePulledRecord>> {
        Ok(read(&self.record(reference))?.map(|found| found.object))
    }

    /// Forgets images that are not among these any more, but for those that were noted since.
    pub(super) fn prune(&self, references: &dyn Fn(&str) -> bool, since: Time) {
        let changing = self.changes.lock();
        for (path, Stored { object: record, .. }) in all::<ImagePulledRecord>(&self.pulled) {
            if record.last_updated_time < since && !references(&record.image_ref) {
                remove(&path);
            }
        }
        drop(changing);
        self.count();
    }

    /// Rewrites files of older versions.
    pub(super) fn migrate(&self) {
        migrate::<ImagePullIntent>(&self.pulling);
        migrate::<ImagePulledRecord>(&self.pulled);
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
        if self.record(reference).exists() { Ok(()) } else { self.write_record(reference, Mapping::new()) }
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
        let before = self.record_of(reference).ok().flatten().map(|record| record.credential_mapping);
        let mut mapping = before.clone().unwrap_or_default();
        extend(mapping.entry(repository.to_owned()).or_default(), credentials, most);
        if before.as_ref() == Some(&mapping) { Ok(()) } else { self.write_record(reference, mapping) }
    }

    fn write_record(&self, reference: &str, credential_mapping: Mapping) -> io::Result<()> {
        let last_updated_time = Time::from(self.clock.wall());
        let record = ImagePulledRecord { last_updated_time, image_ref: reference.to_owned(), credential_mapping };
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
pub(super) fn extend(known: &mut ImagePullCredentials, credentials: Option<&Found>, most: usize) {
    if known.node_pods_accessible {
        return;
    }
    match credentials.map(|found| (&found.source, found)) {
        None | Some((CredentialSource::Node, _)) => {
            *known = ImagePullCredentials { node_pods_accessible: true, ..ImagePullCredentials::default() };
        }
        Some((CredentialSource::Secret(owner), found)) => {
            let CredentialOwner { uid, namespace, name } = owner.clone();
            let secret = ImagePullSecret { uid, namespace, name, credential_hash: found.hash() };
            remember(&mut known.kubernetes_secrets, secret, place_of_secret, most);
        }
        Some((CredentialSource::Account(owner), _)) => {
            let CredentialOwner { uid, namespace, name } = owner.clone();
            let account = ImagePullServiceAccount { uid, namespace, name };
            remember(&mut known.kubernetes_service_accounts, account, place_of_account, most);
        }
    }
}

/// Where an object stands in a list.
type Place<'o> = [&'o str; 3];

fn place_of_secret(own: &ImagePullSecret) -> Place<'_> {
    [&own.namespace, &own.name, &own.uid]
}

fn place_of_account(own: &ImagePullServiceAccount) -> Place<'_> {
    [&own.namespace, &own.name, &own.uid]
}

/// Adds an entry to a list, in order; one of the same object is replaced.
fn remember<T>(entries: &mut Vec<T>, entry: T, place: fn(&T) -> Place<'_>, most: usize) {
    let before = entries.len();
    entries.retain(|own| place(own) != place(&entry));
    if entries.len() < before || before < most {
        let at = entries.partition_point(|own| place(own) < place(&entry));
        entries.insert(at, entry);
    }
}

/// Whether credentials are among those that an image was pulled with. A secret whose content was changed since still is.
pub(super) fn fits(known: &ImagePullCredentials, found: &Found) -> bool {
    let of = |owner: &CredentialOwner, place: Place<'_>| place == [&*owner.namespace, &*owner.name, &*owner.uid];
    match &found.source {
        CredentialSource::Node => false,
        CredentialSource::Secret(owner) => {
            let hash = found.hash();
            let mut secrets = known.kubernetes_secrets.iter();
            secrets.any(|own| own.credential_hash == hash || of(owner, place_of_secret(own)))
        }
        CredentialSource::Account(owner) => {
            known.kubernetes_service_accounts.iter().any(|own| of(owner, place_of_account(own)))
        }
    }
}

/// Writes a file as upstream's encoder does, which ends it with a line.
pub(super) fn write<T: Kind>(path: &Path, object: &T) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if let Some(parent) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(parent)?;
    }
    let text = json::encode_typed(T::TYPE.kind, API_VERSION, object) + "\n";
    sys::fs::write_atomic(path, text.as_bytes(), FILE_MODE)
}

/// What a file holds.
struct Stored<T> {
    object: T,
    /// Whether it is as this kubelet would write it.
    is_current: bool,
}

/// A file of this kind; nothing where there is none.
fn read<T: Kind>(path: &Path) -> io::Result<Option<Stored<T>>> {
    use std::io::Read as _;
    let mut text = String::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(MAX_BYTES).read_to_string(&mut text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    decode(&text).map(Some).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

fn decode<T: Kind>(text: &str) -> Result<Stored<T>, String> {
    let document = Document::read_json(text)?;
    let is_current = document.version(T::TYPE.kind, &API_VERSIONS)? == API_VERSION;
    let mut object = T::default();
    document.decode(&mut object)?;
    Ok(Stored { object, is_current })
}

/// Rewrites files of older versions.
fn migrate<T: Kind>(directory: &Path) {
    // They are written where they are looked for.
    let old: Vec<_> = all::<T>(directory).filter(|(_, found)| !found.is_current).collect();
    for (path, old) in old {
        if let Err(error) = write(&path, &old.object) {
            tracing::warn!(path = %path.display(), %error, "A record of an image cannot be migrated");
        }
    }
}

/// The files of a directory, without those that are being written.
fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_FILES);
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(FILE_PREFIX)).map(|entry| entry.path())
}

/// Those of them that can be read.
fn all<T: Kind>(directory: &Path) -> impl Iterator<Item = (PathBuf, Stored<T>)> {
    files(directory).filter_map(|path| read(&path).ok().flatten().map(|found| (path, found)))
}

fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "A record of an image cannot be removed");
        }
        _ => {}
    }
}
