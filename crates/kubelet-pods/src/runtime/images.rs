//! Making sure that a container's image is there: pull policies, credentials, back-off, and how many pulls run at once.
//!
//! An image that is there is used only by pods that may see it: [`super::pull_records`] knows with whose credentials it came
//! (gate `KubeletEnsureSecretPulledImages`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, ObjectReference, Pod};
use base::SharedClock;
use client::TokenBucket;
use node_api::cri::v1::{Image, ImageSpec, PodSandboxConfig};
use node_api::cri::{CriError, Images};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::back_off::KeyedBackOff;
use super::failure::{Failure, WaitingReason};
use super::image_name::ImageName;
use super::pull_records::{End, PullRecords, Recorded};
use super::registry_auth::{Found, Keyring};
use super::text::go_duration;
use crate::interfaces::{Events, ImageCredentials, Level, PodSettings};
use crate::metrics::KubeletMetrics;

const BACK_OFF_INITIAL: Duration = Duration::from_secs(10);
const BACK_OFF_MAX: Duration = Duration::from_secs(300);
/// Pulls at once where there is no limit; a bound all the same.
const UNLIMITED_PULLS: usize = 256;

/// Pulls images for pods.
pub struct ImagePuller {
    images: Arc<dyn Images>,
    /// Who has credentials beside the pod and the node's files.
    credentials: Option<Arc<dyn ImageCredentials>>,
    /// With whose credentials images came; none where nobody asks.
    records: Option<Arc<PullRecords>>,
    events: Arc<dyn Events>,
    clock: SharedClock,
    back_off: KeyedBackOff,
    /// The last error of a pull by back-off key, for the message while it is backed off.
    last_errors: super::failure::Failures,
    slots: Semaphore,
    rate: Option<TokenBucket>,
    metrics: Arc<KubeletMetrics>,
    /// Gate `RuntimeClassInImageCriApi` (KEP-4216): images are the handler's that runs the pod.
    by_handler: bool,
    /// How long the images of each pod took to pull.
    spent: Mutex<HashMap<String, Duration>>,
}

/// An image that is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ready {
    /// What containers are created from.
    pub reference: String,
    /// The user that the image names.
    pub uid: Option<i64>,
    pub username: String,
}

/// What a pull is for.
pub struct Wanted<'a> {
    pub pod: &'a Pod,
    pub container: &'a Container,
    /// The object that events are about, down to the container's field.
    pub about: &'a ObjectReference,
    pub keyring: &'a Keyring,
    pub sandbox: &'a PodSandboxConfig,
    /// The pod's runtime handler; empty for the default.
    pub handler: &'a str,
}

impl ImagePuller {
    pub fn new(
        (images, credentials): (Arc<dyn Images>, Option<Arc<dyn ImageCredentials>>),
        events: Arc<dyn Events>,
        clock: SharedClock,
        settings: &PodSettings,
        metrics: Arc<KubeletMetrics>,
    ) -> Self {
        let verification = settings.pull_verification.clone();
        let records = verification.map(|own| PullRecords::new(&settings.root_dir, own, Arc::clone(&clock), &metrics));
        let parallel = match (settings.serialize_image_pulls, settings.max_parallel_image_pulls) {
            (true, _) => 1,
            (false, Some(limit)) => limit.max(1),
            (false, None) => UNLIMITED_PULLS,
        };
        let rate = (settings.registry_pull_qps > 0.0)
            .then(|| TokenBucket::new(settings.registry_pull_qps, settings.registry_burst, clock.monotonic()));
        Self {
            images,
            credentials,
            records,
            events,
            back_off: KeyedBackOff::new(BACK_OFF_INITIAL, BACK_OFF_MAX, 2 * BACK_OFF_MAX),
            last_errors: super::failure::Failures::default(),
            slots: Semaphore::new(parallel),
            rate,
            clock,
            metrics,
            by_handler: settings.images_by_handler,
            spent: Mutex::default(),
        }
    }

    /// The image of a container, pulled if its policy says so.
    pub async fn ensure(&self, wanted: &Wanted<'_>) -> Result<Ready, Failure> {
        let image = &wanted.container.image;
        let name = ImageName::parse(image).map_err(|error| {
            self.metrics.image_wanted(&wanted.container.image_pull_policy, None, None);
            let message = format!("Failed to apply default image tag {image:?}: {error}");
            self.warn(wanted, "InspectFailed", &message);
            Failure::new(WaitingReason::InvalidImageName, message)
        })?;
        let spec = ImageSpec {
            image: name.with_default_tag(),
            annotations: wanted.pod.metadata.annotations.clone().into_iter().collect(),
            user_specified_image: image.clone(),
            runtime_handler: if self.by_handler { wanted.handler.to_owned() } else { String::new() },
            ..Default::default()
        };
        let policy = policy(wanted.container, &name);
        if policy == "Always" {
            self.metrics.image_wanted(policy, None, Some(true));
        } else if let Some(ready) = self.usable(wanted, &spec, &name, policy).await? {
            return Ok(ready);
        }
        self.pull_unless_backed_off(wanted, &spec, &name).await
    }

    /// The image if it is there and the pod may use it; nothing if it is to be pulled.
    async fn usable(
        &self,
        wanted: &Wanted<'_>,
        spec: &ImageSpec,
        name: &ImageName,
        policy: &str,
    ) -> Result<Option<Ready>, Failure> {
        let image = &wanted.container.image;
        let counted = |present, pull| self.metrics.image_wanted(policy, present, pull);
        let present = self.present(wanted, spec).await.inspect_err(|_| counted(None, None))?;
        let is_present = present.is_some();
        if let Some(ready) = present
            && self.may_use(wanted, spec, name, &ready.reference).await
        {
            counted(Some(true), Some(false));
            let access = if self.records.is_some() { " and can be accessed by the pod" } else { "" };
            let text = format!("Container image {image:?} already present on machine{access}");
            self.normal(wanted, "Pulled", &text);
            return Ok(Some(ready));
        }
        if policy == "Never" {
            counted(Some(is_present), is_present.then_some(true));
            let message = format!("Container image {image:?} is not present with pull policy of Never");
            self.warn(wanted, "ErrImageNeverPull", &message);
            return Err(Failure::new(WaitingReason::ErrImageNeverPull, message));
        }
        counted(Some(is_present), Some(true));
        Ok(None)
    }

    /// The credentials that a pod has for an image, in the order in which they are tried.
    async fn credentials_of(&self, wanted: &Wanted<'_>, repository: &str) -> Vec<Found> {
        let mut found = wanted.keyring.lookup(repository);
        if let Some(credentials) = &self.credentials {
            found.extend(Keyring::of(credentials.lookup(wanted.pod, repository).await).lookup(repository));
        }
        found
    }

    /// Whether a pod may use an image that is there without pulling it itself.
    async fn may_use(&self, wanted: &Wanted<'_>, spec: &ImageSpec, name: &ImageName, reference: &str) -> bool {
        let Some(records) = &self.records else { return true };
        let repository = name.full_repository();
        let own = self.credentials_of(wanted, &repository);
        let recorded = Recorded { image: spec.image.clone(), repository: repository.clone() };
        !records.must_pull(&*self.images, &recorded, reference, own).await
    }

    /// Forgets with whose credentials images came that are not among these.
    pub async fn forget_images(&self, present: BTreeSet<String>, since: std::time::SystemTime) {
        if let Some(records) = &self.records {
            records.prune(present, since.into()).await;
        }
    }

    /// What is known of the image on this machine.
    async fn present(&self, wanted: &Wanted<'_>, spec: &ImageSpec) -> Result<Option<Ready>, Failure> {
        match self.images.image_status(spec.clone(), false).await {
            Ok(answer) => Ok(answer.image.map(ready)),
            Err(error) => {
                let message = format!("Failed to inspect image {:?}: {error}", spec.image);
                self.warn(wanted, "InspectFailed", &message);
                Err(Failure::new(WaitingReason::ImageInspectError, message))
            }
        }
    }

    async fn pull_unless_backed_off(
        &self,
        wanted: &Wanted<'_>,
        spec: &ImageSpec,
        name: &ImageName,
    ) -> Result<Ready, Failure> {
        let (uid, image) = (&wanted.pod.metadata.uid, &wanted.container.image);
        let key = format!("{uid}_{image}");
        if let Some(left) = self.back_off.remaining_since_step(&key, &*self.clock) {
            let text = format!("Back-off pulling image {image:?}");
            self.normal(wanted, "BackOff", &text);
            let cause = self.last_errors.get(uid, image);
            let cause = cause.map(|last| format!(": {}: {}", last.reason, last.message)).unwrap_or_default();
            return Err(Failure::new(WaitingReason::ImagePullBackOff, text + &cause).after(left));
        }
        let outcome = self.pull(wanted, spec, name).await;
        match &outcome {
            Ok(_) => self.last_errors.clear(uid, image),
            // The next try comes soon, whatever the back-off: it says that there is one.
            Err(failure) => {
                self.back_off.step(&key, None, &*self.clock);
                self.last_errors.set(uid, image, failure.clone());
            }
        }
        outcome
    }

    async fn pull(&self, wanted: &Wanted<'_>, spec: &ImageSpec, name: &ImageName) -> Result<Ready, Failure> {
        let image = &wanted.container.image;
        let asked = self.clock.monotonic();
        self.normal(wanted, "Pulling", &format!("Pulling image {image:?}"));
        let Ok(_slot) = self.slots.acquire().await else {
            return Err(Failure::new(WaitingReason::ErrImagePull, "image puller is closed"));
        };
        let began = self.clock.monotonic();
        let found = self.pull_and_note(wanted, spec, name).await.map_err(|error| {
            self.warn(wanted, "Failed", &format!("Failed to pull image {image:?}: {error}"));
            pull_failure(image, &error)
        })?;
        let now = self.clock.monotonic();
        let text = format!(
            "Successfully pulled image {image:?} in {} ({} including waiting). Image size: {} bytes.",
            to_millis(now - began),
            to_millis(now - asked),
            found.size
        );
        self.normal(wanted, "Pulled", &text);
        self.metrics.pulled(found.size, now - asked);
        *self.spent.lock().entry(wanted.pod.metadata.uid.clone()).or_default() += now - asked;
        Ok(ready(found))
    }

    /// Pulls an image and notes with whose credentials it came.
    async fn pull_and_note(&self, wanted: &Wanted<'_>, spec: &ImageSpec, name: &ImageName) -> Result<Image, PullError> {
        if self.rate.as_ref().is_some_and(|rate| !rate.try_take(self.clock.monotonic())) {
            return Err(PullError::TooMany);
        }
        let repository = name.full_repository();
        let found = self.credentials_of(wanted, &repository).await;
        let noted = match &self.records {
            Some(records) => {
                let of = Recorded { image: spec.image.clone(), repository };
                Some(records.begin(of).await.map_err(PullError::Record)?)
            }
            None => None,
        };
        let brought = self.bring(found, wanted, spec).await;
        if let Some(noted) = noted {
            let end = match &brought {
                // By what the image is called here: so it is asked for when the next pod wants it.
                Ok((image, credentials)) => {
                    End::Brought { reference: image.id.clone(), credentials: credentials.clone().map(Box::new) }
                }
                Err(_) => End::Failed,
            };
            noted.end(end).await;
        }
        Ok(brought?.0)
    }

    /// Pulls an image and looks at it. Returns it with what it came with.
    async fn bring(
        &self,
        found: Vec<Found>,
        wanted: &Wanted<'_>,
        spec: &ImageSpec,
    ) -> Result<(Image, Option<Found>), PullError> {
        let (reference, credentials) = self.pull_with(found, wanted, spec).await?;
        let status = self.images.image_status(ImageSpec { image: reference.clone(), ..spec.clone() }, false).await;
        let mut image = status.ok().and_then(|answer| answer.image).unwrap_or_default();
        if image.id.is_empty() {
            image.id = reference;
        }
        Ok((image, credentials))
    }

    /// Tries credentials in order; without any it pulls as nobody. Returns the reference, and what it came with. The error
    /// is the last one's.
    async fn pull_with(
        &self,
        found: Vec<Found>,
        wanted: &Wanted<'_>,
        spec: &ImageSpec,
    ) -> Result<(String, Option<Found>), PullError> {
        let tries: Vec<Option<Found>> =
            if found.is_empty() { vec![None] } else { found.into_iter().map(Some).collect() };
        let mut last = PullError::TooMany;
        for found in tries {
            let auth = found.as_ref().map(|found| found.auth.clone());
            match self.images.pull_image(spec.clone(), auth, Some(wanted.sandbox.clone())).await {
                Ok(reference) => return Ok((reference, found)),
                Err(error) => last = error.into(),
            }
        }
        Err(last)
    }

    /// Whether the image of a container is on this machine already, for those who only want to know.
    pub fn forget_expired(&self) {
        self.back_off.collect(self.clock.monotonic());
    }

    /// How long a pod waited for its images.
    pub fn spent(&self, uid: &str) -> Duration {
        self.spent.lock().get(uid).copied().unwrap_or_default()
    }

    pub fn forget_pod(&self, uid: &str) {
        if let Some(credentials) = &self.credentials {
            credentials.forget_pod(uid);
        }
        self.spent.lock().remove(uid);
        self.last_errors.forget_pod(uid);
    }

    fn normal(&self, wanted: &Wanted<'_>, reason: &str, message: &str) {
        self.events.event(wanted.about.clone(), Level::Normal, reason, message);
    }

    fn warn(&self, wanted: &Wanted<'_>, reason: &str, message: &str) {
        self.events.event(wanted.about.clone(), Level::Warning, reason, message);
    }
}

/// The container's policy, or what follows from the tag where the API server filled in none (static pods).
fn policy<'a>(container: &'a Container, name: &ImageName) -> &'a str {
    match container.image_pull_policy.as_str() {
        "" if name.is_latest() => "Always",
        "" => "IfNotPresent",
        set => set,
    }
}

fn ready(image: Image) -> Ready {
    Ready { reference: image.id, uid: image.uid.map(|uid| uid.value), username: image.username }
}

/// Why an image did not come. Each may be tried again; the back-off says when.
#[derive(Debug, thiserror::Error)]
enum PullError {
    /// More pulls than the node's limit allows.
    #[error("pull QPS exceeded")]
    TooMany,
    /// That it is being pulled cannot be written down.
    #[error("failed to record image pull intent: {0}")]
    Record(std::io::Error),
    /// The runtime failed.
    #[error(transparent)]
    Runtime(#[from] CriError),
}

/// Runtimes mark two kinds of failure by how their text begins.
fn pull_failure(image: &str, error: &PullError) -> Failure {
    let text = error.to_string();
    let bare = match error {
        PullError::TooMany | PullError::Record(_) => text.as_str(),
        PullError::Runtime(_) => text.split_once(" desc = ").map_or(text.as_str(), |(_, text)| text),
    };
    if let Some(rest) = bare.strip_prefix(WaitingReason::RegistryUnavailable.name()) {
        let text = format!("image pull failed for {image} because the registry is unavailable{rest}");
        return Failure::new(WaitingReason::RegistryUnavailable, text);
    }
    if let Some(rest) = bare.strip_prefix(WaitingReason::SignatureValidationFailed.name()) {
        let text = format!("image pull failed for {image} because the signature validation failed{rest}");
        return Failure::new(WaitingReason::SignatureValidationFailed, text);
    }
    Failure::new(WaitingReason::ErrImagePull, text)
}

fn to_millis(duration: Duration) -> String {
    go_duration(Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
