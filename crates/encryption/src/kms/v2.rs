//! KMS v2. One seed is made for each key of the plug-in, encrypted by it once, and stored beside every value that is
//! written with it; the seed of a value that is read is decrypted once. The plug-in is asked for its key all the time: as
//! soon as it names another, another seed is made. See KEP-3299.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use base::{Expiring, SharedClock, SharedRng};
use parking_lot::Mutex;
use prost::Message as _;
use server_api::kms::stored::{EncryptedDekSourceType, EncryptedObject};
use server_api::kms::v2::key_management_service_client::KeyManagementServiceClient;
use server_api::kms::v2::{DecryptRequest, EncryptRequest, StatusRequest, StatusResponse};
use tokio::sync::watch;
use tokio::time::Instant;

use super::calls::Calls;
use super::envelope::{self, SourceKey, key_id_hash};
use super::health::{LastHealth, UNWELL_FOR};
use super::{KmsError, Opened, Plugin};
use crate::Surroundings;
use crate::ciphers::{AES_GCM, Cipher, SEED_BYTES, random, with_seed};
use crate::metrics::{EncryptionMetrics, Way};

/// For how long after its key was last confirmed a seed may be written with.
const WRITE_LIMIT: Duration = Duration::from_secs(3 * 60);
/// How often a plug-in that is well is asked for its key.
const WELL_INTERVAL: Duration = Duration::from_secs(60);
/// How often one that is not is.
const UNWELL_INTERVAL: Duration = Duration::from_secs(10);
/// How long a seed that was decrypted is kept.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How many are kept. Each start of each server makes one, and each rotation does; a value has one, whoever wrote it.
const MAX_KEPT: usize = 10_000;
/// The interfaces that are spoken; the second is what the first was called in its beta.
const VERSIONS: [&str; 2] = ["v2", "v2beta1"];
const HEALTHY: &str = "ok";
const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";
const STATUS: &str = "/v2.KeyManagementService/Status";

/// What a seed or key that was asked for decrypts with, if the plug-in decrypted it.
type Decrypted = Result<Arc<dyn Cipher>, KmsError>;

/// A provider.
pub(super) struct KmsV2 {
    calls: Calls,
    /// What is written with; nothing until the plug-in has named its key.
    current: ArcSwapOption<Current>,
    /// Whether it was asked for its key at all.
    asked: watch::Sender<bool>,
    /// Seeds and keys of values that were read. That a plug-in did not decrypt one is kept for a moment, so that a list
    /// does not wait for it again and again.
    kept: Mutex<Expiring<SourceKey, Decrypted>>,
    /// Held while the plug-in is asked for its key: whoever asks as well gets the same answer.
    health: tokio::sync::Mutex<Health>,
    clock: SharedClock,
    rng: SharedRng,
    metrics: EncryptionMetrics,
}

/// What is known of the plug-in's health.
#[derive(Default)]
struct Health {
    /// The interface that it named first.
    version: Option<String>,
    last: LastHealth,
}

/// A seed, and until when it may be written with.
#[derive(Clone)]
struct Current {
    seed: Arc<Seed>,
    expires: Instant,
    /// The same, for messages.
    expires_at: SystemTime,
}

struct Seed {
    cipher: Arc<dyn Cipher>,
    /// What is stored with every value, without the value.
    object: EncryptedObject,
    source_key: SourceKey,
}

impl KmsV2 {
    pub(super) fn new(calls: Calls, around: &Surroundings) -> Self {
        Self {
            calls,
            current: ArcSwapOption::empty(),
            asked: watch::Sender::new(false),
            kept: Mutex::new(Expiring::new(MAX_KEPT)),
            health: tokio::sync::Mutex::default(),
            clock: Arc::clone(&around.clock),
            rng: Arc::clone(&around.rng),
            metrics: around.metrics.clone(),
        }
    }

    /// What is written with. At the start the first answer of the plug-in is waited for.
    async fn current(&self) -> Result<Arc<Current>, KmsError> {
        if self.current.load().is_none() {
            // Two calls at most, each with its limit.
            let limit = self.calls.limit().saturating_mul(2);
            let mut asked = self.asked.subscribe();
            let _too_late = tokio::time::timeout(limit, asked.wait_for(|asked| *asked)).await;
        }
        self.current.load_full().ok_or(KmsError::NoState)
    }

    /// What values that were written with a key are decrypted with.
    async fn cipher(&self, object: &EncryptedObject, current: &Current) -> Decrypted {
        let source_key = envelope::source_key(object);
        if source_key == current.seed.source_key {
            return Ok(Arc::clone(&current.seed.cipher));
        }
        if let Some(kept) = self.kept.lock().get(&source_key, self.clock.monotonic()) {
            return kept;
        }
        self.metrics.cache_missed();
        let decrypted = self.decrypt(object).await;
        let now = self.clock.monotonic();
        let until = now + if decrypted.is_ok() { KEPT_FOR } else { UNWELL_FOR };
        let mut kept = self.kept.lock();
        kept.insert(source_key, decrypted.clone(), until, now);
        self.metrics.sources_kept(&self.calls.provider, kept.len());
        decrypted
    }

    async fn decrypt(&self, object: &EncryptedObject) -> Decrypted {
        let request = DecryptRequest {
            ciphertext: object.encrypted_dek_source.clone(),
            uid: self.rng.uuid(),
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let decrypt = |channel| {
            let (mut service, request) = (KeyManagementServiceClient::new(channel), request.clone());
            async move { service.decrypt(request).await }
        };
        let plain = self.calls.call(DECRYPT, decrypt).await.map_err(KmsError::Decrypt)?.plaintext;
        let cipher = match envelope::source_type(object)? {
            EncryptedDekSourceType::AesGcmKey => (AES_GCM.with_key)(&plain),
            EncryptedDekSourceType::HkdfSha256XnonceAesGcmSeed => with_seed(&plain),
        };
        Ok(cipher?.into())
    }

    /// Makes a seed, and lets the plug-in encrypt it.
    async fn generate(&self, uid: &str) -> Result<Seed, KmsError> {
        let began = self.clock.monotonic();
        let seed = random::<SEED_BYTES>();
        self.metrics.key_generated(seed.is_ok(), self.clock.monotonic() - began);
        let seed = seed?;
        let encrypt = |channel| {
            let mut service = KeyManagementServiceClient::new(channel);
            let request = EncryptRequest { plaintext: seed.to_vec(), uid: uid.to_owned() };
            async move { service.encrypt(request).await }
        };
        let answer = self.calls.call(ENCRYPT, encrypt).await.map_err(KmsError::Encrypt)?;
        let object = EncryptedObject {
            encrypted_data: Vec::new(),
            key_id: answer.key_id,
            encrypted_dek_source: answer.ciphertext,
            annotations: answer.annotations,
            encrypted_dek_source_type: EncryptedDekSourceType::HkdfSha256XnonceAesGcmSeed.into(),
        };
        envelope::check(&object)?;
        Ok(Seed { cipher: with_seed(&seed)?.into(), source_key: envelope::source_key(&object), object })
    }

    /// Asks the plug-in for its key, and sees to it that it is the one that is written with.
    async fn ask(&self, version: &mut Option<String>) -> Result<(), String> {
        let name = &self.calls.provider;
        let status = |channel| {
            let mut service = KeyManagementServiceClient::new(channel);
            async move { service.status(StatusRequest {}).await }
        };
        let status = self.calls.call(STATUS, status).await.map_err(|error| {
            format!("failed to perform status section of the healthz check for KMS Provider {name}, error: {error}")
        })?;
        let mut wrong = Vec::new();
        if status.healthz != HEALTHY {
            wrong.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        wrong.extend(wrong_version(&status, version));
        match envelope::check_key_id(&status.key_id) {
            Err(error) => {
                self.metrics.invalid_key_id(name, error.label());
                wrong.push(format!("got invalid KMSv2 KeyID hash {:?}: {error}", key_id_hash(&status.key_id)));
            }
            Ok(()) => {
                self.metrics.key_id_told(name, &key_id_hash(&status.key_id), self.clock.wall());
                wrong.extend(self.rotate(&status.key_id).await.err().map(|error| error.to_string()));
            }
        }
        match wrong.as_slice() {
            [] => Ok(()),
            [only] => Err(format!("kmsv2 Provider {name} is not healthy, error: {only}")),
            all => Err(format!("kmsv2 Provider {name} is not healthy, error: [{}]", all.join(", "))),
        }
    }

    /// Goes on with the seed that there is while the plug-in's key is its, and makes another otherwise.
    async fn rotate(&self, key_id: &str) -> Result<(), KmsError> {
        // What the plug-in said held when it was asked, whatever time making a seed takes.
        let (expires, expires_at) = (self.clock.monotonic() + WRITE_LIMIT, self.clock.wall() + WRITE_LIMIT);
        let current = self.current.load_full();
        if let Some(current) = current.as_ref().filter(|own| own.seed.object.key_id == key_id) {
            self.current.store(Some(Arc::new(Current { seed: Arc::clone(&current.seed), expires, expires_at })));
            return Ok(());
        }
        let uid = self.rng.uuid();
        let generated = self.generate(&uid).await;
        let held = current.as_ref().map_or_else(String::new, |own| key_id_hash(&own.seed.object.key_id));
        match generated {
            Ok(seed) if seed.object.key_id == key_id => {
                let (provider, key) = (&self.calls.provider, key_id_hash(key_id));
                tracing::info!(provider, uid, key, former_key = held, "A seed for another key is written with");
                self.current.store(Some(Arc::new(Current { seed: Arc::new(seed), expires, expires_at })));
                Ok(())
            }
            other => Err(KmsError::NotRotated(not_rotated(&uid, key_id, &held, &other, current.as_deref()))),
        }
    }

    /// Keeps a seed that is no longer written with for those who read what was.
    fn keep(&self, current: &Current) {
        let now = self.clock.monotonic();
        let mut kept = self.kept.lock();
        if kept.get(&current.seed.source_key, now).is_none() {
            let cipher = Arc::clone(&current.seed.cipher);
            kept.insert(current.seed.source_key, Ok(cipher), now + KEPT_FOR, now);
            self.metrics.sources_kept(&self.calls.provider, kept.len());
        }
    }
}

/// What is said of a seed that cannot be written with.
fn not_rotated(
    uid: &str,
    key_id: &str,
    held: &str,
    generated: &Result<Seed, KmsError>,
    current: Option<&Current>,
) -> String {
    let nil = || "<nil>".to_owned();
    let no_state = if current.is_some() { nil() } else { KmsError::NoState.to_string() };
    let failure = generated.as_ref().err().map_or_else(nil, ToString::to_string);
    let encrypted_with = generated.as_ref().map_or_else(|_| String::new(), |seed| key_id_hash(&seed.object.key_id));
    let expires = current.map_or_else(|| "0001-01-01T00:00:00Z".to_owned(), |own| shown(own.expires_at));
    format!(
        "failed to rotate DEK uid={uid:?}, useSeed=true, errState={no_state}, errGen={failure}, statusKeyIDHash={:?}, \
         encryptKeyIDHash={encrypted_with:?}, stateKeyIDHash={held:?}, expirationTimestamp={expires}",
        key_id_hash(key_id)
    )
}

/// What is wrong with the interface that a plug-in names; the first that it names is kept.
fn wrong_version(status: &StatusResponse, version: &mut Option<String>) -> Option<String> {
    let named = &status.version;
    if !VERSIONS.contains(&named.as_str()) {
        return Some(format!("expected KMSv2 API version v2, got {named}"));
    }
    let first = version.get_or_insert_with(|| named.clone());
    (first != named).then(|| {
        format!("KMSv2 API version should not change after the initial status response version {first}, got {named}")
    })
}

fn shown(time: SystemTime) -> String {
    Time::from(time).to_string()
}

#[async_trait]
impl Plugin for KmsV2 {
    async fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, KmsError> {
        let current = self.current().await?;
        if self.clock.monotonic() > current.expires {
            let hash = key_id_hash(&current.seed.object.key_id);
            return Err(KmsError::Expired { hash, at: shown(current.expires_at), now: shown(self.clock.wall()) });
        }
        self.keep(&current);
        let object = &current.seed.object;
        self.metrics.key_id_used(Way::ToStorage, &self.calls.provider, &key_id_hash(&object.key_id), self.clock.wall());
        let encrypted_data = current.seed.cipher.seal(place, plain)?;
        Ok(EncryptedObject { encrypted_data, ..object.clone() }.encode_to_vec())
    }

    async fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, KmsError> {
        let object = envelope::decode(stored)?;
        let current = self.current().await?;
        let cipher = self.cipher(&object, &current).await?;
        let hash = key_id_hash(&object.key_id);
        self.metrics.key_id_used(Way::FromStorage, &self.calls.provider, &hash, self.clock.wall());
        let value = cipher.open(place, &object.encrypted_data)?;
        let writes = &current.seed.object;
        let stale =
            object.key_id != writes.key_id || object.encrypted_dek_source_type != writes.encrypted_dek_source_type;
        Ok(Opened { value, stale })
    }

    async fn check(&self) -> Result<(), String> {
        let mut health = self.health.lock().await;
        if let Some(last) = health.last.get(self.clock.monotonic()) {
            return last;
        }
        let answer = self.ask(&mut health.version).await;
        self.asked.send_replace(true);
        health.last.note(answer, self.clock.monotonic())
    }

    async fn follow(self: Arc<Self>) {
        loop {
            let interval = match self.check().await {
                Ok(()) => WELL_INTERVAL,
                Err(error) => {
                    tracing::error!(error, "A KMS plug-in is not well");
                    UNWELL_INTERVAL
                }
            };
            tokio::time::sleep(interval).await;
        }
    }
}
