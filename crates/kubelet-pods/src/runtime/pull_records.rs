//! Which images this kubelet pulled, and with whose credentials: a pod that brings none that fit has the image pulled anew, so
//! that nobody uses what only others may see. The files ([`super::pull_record_files`]) are upstream's. See
//! <https://kep.k8s.io/2535>.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::kubelet_config_v1beta1::{ImagePullCredentials, ImagePulledRecord};
use base::SharedClock;
use node_api::cri::Images;
use node_api::cri::v1::ImageSpec;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::pull_record_files::{MAX_MATCHED, MAX_PULLED, RecordFiles, fits};
use super::registry_auth::Found;
use crate::file_calls::{CallError, FileCalls};
use crate::interfaces::PullVerification;
use crate::metrics::KubeletMetrics;

/// An image as records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The name by which it is pulled.
    pub image: String,
    /// The same with its registry, and without tag and digest.
    pub repository: String,
}

/// How a pull ended.
#[derive(Debug, Clone)]
pub enum End {
    /// It brought this image, with these credentials or as nobody.
    Brought { reference: String, credentials: Option<Box<Found>> },
    /// It brought nothing.
    Failed,
    /// Nobody waited for it; the runtime may bring the image all the same.
    Unseen,
}

/// The pulls of an image that are on their way.
#[derive(Debug, Default)]
struct Begun {
    count: usize,
    /// Whether that is written down.
    written: bool,
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

/// The records of a node. Files are written by threads that may block, those of one image in turn.
pub struct PullRecords {
    files: RecordFiles,
    calls: FileCalls,
    verification: PullVerification,
    /// By image. Not held while a file is written.
    begun: Mutex<HashMap<String, Begun>>,
    /// Whether what earlier kubelets left has been looked at.
    recovered: OnceCell<()>,
    metrics: Arc<KubeletMetrics>,
}

impl PullRecords {
    /// Those below a kubelet's root directory.
    pub fn new(
        root: &Path,
        verification: PullVerification,
        clock: SharedClock,
        metrics: &Arc<KubeletMetrics>,
    ) -> Arc<Self> {
        for family in [&metrics.pull_intents_in_memory, &metrics.pull_records_in_memory] {
            family.with(&[]).set(0.0);
        }
        let files = RecordFiles::new(root, clock, Arc::clone(metrics));
        files.count();
        Arc::new(Self {
            files,
            calls: FileCalls::default(),
            verification,
            begun: Mutex::default(),
            recovered: OnceCell::new(),
            metrics: Arc::clone(metrics),
        })
    }

    /// Calls about an image's files on a thread that may block, one after the other.
    async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        image: &str,
        call: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let own = Arc::clone(self);
        self.calls.run(image, move || call(&own)).await
    }

    /// An image is about to be pulled.
    ///
    /// # Errors
    /// That cannot be written down; nobody may pull then, as nobody would know that the image is not preloaded.
    pub async fn begin(self: &Arc<Self>, of: Recorded) -> io::Result<Noted> {
        self.begun.lock().entry(of.image.clone()).or_default().count += 1;
        let noted = Noted { records: Some(Arc::clone(self)), of };
        let image = noted.of.image.clone();
        // Where that fails the pull is over, and a file that an earlier one left stays.
        self.on_disk(&noted.of.image, move |own| own.write_intent(&image)).await.map_err(io::Error::other)??;
        Ok(noted)
    }

    fn write_intent(&self, image: &str) -> io::Result<()> {
        if self.begun.lock().get(image).is_some_and(|begun| begun.written) {
            return Ok(());
        }
        let unseen = self.files.is_intended(image);
        self.files.intend(image)?;
        // Who asked may have stopped waiting; the file is then that of a pull whose end nobody saw.
        if let Some(begun) = self.begun.lock().get_mut(image) {
            (begun.written, begun.unseen) = (true, begun.unseen || unseen);
        }
        Ok(())
    }

    /// A pull is over.
    fn end(&self, of: &Recorded, end: &End) {
        if let End::Brought { reference, credentials } = end
            && let Err(error) = self.files.note(reference, &of.repository, credentials.as_deref(), MAX_PULLED)
        {
            tracing::error!(image = of.image, %error, "The record of a pulled image cannot be written");
            // That the image was pulled is known, and for whom is not.
            self.left(&of.image, &End::Unseen);
        } else if self.left(&of.image, end) {
            self.files.forget_intent(&of.image);
        }
        self.files.count();
    }

    /// One pull less is on its way. Returns whether nothing is left to be written down of the image's pulls.
    fn left(&self, image: &str, end: &End) -> bool {
        let mut all = self.begun.lock();
        let Some(begun) = all.get_mut(image) else { return false };
        begun.unseen = match end {
            End::Brought { .. } => false,
            End::Failed => begun.unseen,
            End::Unseen => true,
        };
        begun.count = begun.count.saturating_sub(1);
        if begun.count > 0 {
            return false;
        }
        all.remove(image).is_some_and(|begun| !begun.unseen)
    }

    /// Whether a pod may use an image that is there only once it has been pulled with the pod's own credentials, which
    /// `credentials` finds out, where that is asked for.
    pub async fn must_pull(
        self: &Arc<Self>,
        images: &dyn Images,
        of: &Recorded,
        reference: &str,
        credentials: impl Future<Output = Vec<Found>>,
    ) -> bool {
        self.recovered.get_or_init(|| self.recover(images)).await;
        let judged = self.judge(of, reference, credentials).await;
        let verdict = judged.unwrap_or_else(|error| {
            tracing::error!(image = of.image, %error, "The record of a pulled image cannot be read");
            Verdict::Unreadable
        });
        self.metrics.pull_checks.with(&[verdict.name()]).inc();
        matches!(verdict, Verdict::MustAuthenticate | Verdict::Unreadable)
    }

    async fn judge(
        self: &Arc<Self>,
        of: &Recorded,
        reference: &str,
        credentials: impl Future<Output = Vec<Found>>,
    ) -> io::Result<Verdict> {
        let (image, named) = (of.image.clone(), reference.to_owned());
        let look = move |own: &Self| Ok((own.files.record_of(&named)?, own.files.is_intended(&image)));
        let looked: io::Result<(Option<ImagePulledRecord>, bool)> =
            self.on_disk(&of.image, look).await.map_err(io::Error::other)?;
        let (record, is_intended) = looked?;
        if !self.is_asked(&of.repository, record.is_some() || is_intended) {
            return Ok(Verdict::Allowed);
        }
        let Some(record) = record else { return Ok(Verdict::MustAuthenticate) };
        let known = record.credential_mapping.get(&of.repository);
        let Some(known) = known.filter(|known| **known != ImagePullCredentials::default()) else {
            return Ok(Verdict::MustAuthenticate);
        };
        if known.node_pods_accessible {
            return Ok(Verdict::Recorded);
        }
        let found = credentials.await;
        let Some(fitting) = found.into_iter().find(|found| fits(known, found)) else {
            return Ok(Verdict::MustAuthenticate);
        };
        let (named, repository) = (reference.to_owned(), of.repository.clone());
        let note = move |own: &Self| own.files.note(&named, &repository, Some(&fitting), MAX_MATCHED);
        if let Err(error) = self.on_disk(&of.image, note).await.map_err(io::Error::other).and_then(|noted| noted) {
            tracing::warn!(image = of.image, %error, "The record of a pulled image cannot be extended");
        }
        Ok(Verdict::Recorded)
    }

    /// Whether somebody has to say that pods may use images of a repository.
    fn is_asked(&self, repository: &str, is_ours: bool) -> bool {
        match &self.verification {
            PullVerification::Never => false,
            PullVerification::NotPreloaded => is_ours,
            PullVerification::NotListed(listed) => !listed.iter().any(|own| is_listed(own, repository)),
            PullVerification::Always => true,
        }
    }

    /// Forgets images that are not among these any more, but for those that were noted since.
    pub async fn prune(self: &Arc<Self>, references: BTreeSet<String>, since: Time) {
        let prune = move |own: &Self| own.files.prune(&|reference| references.contains(reference), since);
        if let Err(error) = self.on_disk(ALL_IMAGES, prune).await {
            tracing::warn!(%error, "The records of images that are gone stay");
        }
    }

    /// Looks at what earlier kubelets left: files of older versions, and pulls whose end they did not see. Of those that
    /// brought an image nobody knows for whom; the others may still do so, whoever did not see their end.
    async fn recover(self: &Arc<Self>, images: &dyn Images) {
        let list = |own: &Self| {
            own.files.migrate();
            own.files.intended()
        };
        for image in self.on_disk(ALL_IMAGES, list).await.unwrap_or_default() {
            let spec = ImageSpec { image: image.clone(), ..ImageSpec::default() };
            let Ok(status) = images.image_status(spec, false).await else { continue };
            let Some(found) = status.image else { continue };
            let turn = image.clone();
            // Where the process ends, the next one looks again.
            let _ = self.on_disk(&turn, move |own| own.take_over(&image, &found.id)).await;
        }
    }

    /// An image of which nobody saw the end of the pull is there.
    fn take_over(&self, image: &str, reference: &str) {
        if self.begun.lock().contains_key(image) {
            return;
        }
        match self.files.note_unknown(reference) {
            Ok(()) => self.files.forget_intent(image),
            Err(error) => tracing::error!(image, %error, "The record of a pulled image cannot be written"),
        }
    }
}

/// What calls about all images take turns by; no image is called so.
const ALL_IMAGES: &str = "";

/// A pull that is noted. Whoever breaks it off does not see its end.
pub struct Noted {
    records: Option<Arc<PullRecords>>,
    of: Recorded,
}

impl Noted {
    /// The pull is over.
    pub async fn end(mut self, end: End) {
        let Some(records) = self.records.clone() else { return };
        let turn = self.of.image.clone();
        let call = move |own: &PullRecords| {
            self.records = None;
            own.end(&self.of, &end);
        };
        if let Err(error) = records.on_disk(&turn, call).await {
            tracing::warn!(image = turn, %error, "The end of a pull is not noted");
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        if let Some(records) = self.records.take() {
            // The file stays as it is.
            records.left(&self.of.image, &End::Unseen);
        }
    }
}

/// A repository, or all below one.
fn is_listed(own: &str, repository: &str) -> bool {
    match own.strip_suffix("/*") {
        Some(prefix) => repository.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/')),
        None => own == repository,
    }
}

#[cfg(test)]
#[path = "pull_records_tests.rs"]
mod tests;
