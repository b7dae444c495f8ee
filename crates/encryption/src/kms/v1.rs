//! KMS v1, which is deprecated: each value has a key of its own, which the plug-in encrypts, and which is stored before the
//! value.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{Expiring, SharedClock};
use parking_lot::Mutex;
use server_api::kms::v1beta1::key_management_service_client::KeyManagementServiceClient;
use server_api::kms::v1beta1::{DecryptRequest, EncryptRequest};
use tokio::time::Instant;

use super::calls::{CallError, Calls};
use super::envelope::ObjectError;
use super::health::LastHealth;
use super::{KmsError, Opened, Plugin};
use crate::Surroundings;
use crate::ciphers::{AES_CBC, AES_GCM, Cipher, random};
use crate::metrics::{EncryptionMetrics, Way};

/// How many keys are kept where the file says nothing.
const DEFAULT_KEPT: usize = 1000;
/// How long a key that was decrypted is kept. Upstream's are kept as long as there is room.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
const KEY_BYTES: usize = 32;
/// The interface, as each request names it.
const VERSION: &str = "v1beta1";
/// What is encrypted and decrypted to see whether the plug-in is well.
const PING: &[u8] = b"ping";
const ENCRYPT: &str = "/v1beta1.KeyManagementService/Encrypt";
const DECRYPT: &str = "/v1beta1.KeyManagementService/Decrypt";

/// A provider.
pub(super) struct KmsV1 {
    calls: Calls,
    /// Keys by what the plug-in made of them; nothing where the file wants none kept.
    kept: Option<Mutex<Expiring<Vec<u8>, Arc<Key>>>>,
    /// How many there is room for.
    room: usize,
    /// When the last values came, from the store and to it.
    arrived: Mutex<[Option<Instant>; 2]>,
    /// Held while the plug-in is asked: whoever asks as well gets the same answer.
    health: tokio::sync::Mutex<LastHealth>,
    clock: SharedClock,
    metrics: EncryptionMetrics,
}

/// The key of one value.
struct Key {
    gcm: Box<dyn Cipher>,
    /// What old servers wrote with.
    cbc: Box<dyn Cipher>,
}

impl KmsV1 {
    /// `cache_size` is how many keys are kept; negative for none.
    pub(super) fn new(calls: Calls, cache_size: Option<i32>, around: &Surroundings) -> Self {
        let size = cache_size.map_or(Some(DEFAULT_KEPT), |size| usize::try_from(size).ok());
        let room = size.unwrap_or_default();
        Self {
            calls,
            kept: size.map(|size| Mutex::new(Expiring::new(size))),
            room,
            arrived: Mutex::default(),
            health: tokio::sync::Mutex::default(),
            clock: Arc::clone(&around.clock),
            metrics: around.metrics.clone(),
        }
    }

    async fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, CallError> {
        let encrypt = |channel| {
            let mut service = KeyManagementServiceClient::new(channel);
            let request = EncryptRequest { version: VERSION.to_owned(), plain: plain.to_vec() };
            async move { service.encrypt(request).await }
        };
        Ok(self.calls.call(ENCRYPT, encrypt).await?.cipher)
    }

    async fn decrypt(&self, cipher: &[u8]) -> Result<Vec<u8>, CallError> {
        let decrypt = |channel| {
            let mut service = KeyManagementServiceClient::new(channel);
            let request = DecryptRequest { version: VERSION.to_owned(), cipher: cipher.to_vec() };
            async move { service.decrypt(request).await }
        };
        Ok(self.calls.call(DECRYPT, decrypt).await?.plain)
    }

    fn keep(&self, encrypted: &[u8], key: &Arc<Key>) {
        let Some(kept) = &self.kept else { return };
        let (now, mut kept) = (self.clock.monotonic(), kept.lock());
        kept.insert(encrypted.to_vec(), Arc::clone(key), now + KEPT_FOR, now);
        self.metrics.v1_kept(kept.len(), self.room);
    }

    fn note_arrival(&self, way: Way) {
        let (now, mut arrived) = (self.clock.monotonic(), self.arrived.lock());
        let [from, to] = &mut *arrived;
        let last = match way {
            Way::FromStorage => from,
            Way::ToStorage => to,
        };
        if let Some(before) = last.replace(now) {
            self.metrics.v1_arrived(way, now - before);
        }
    }

    async fn key(&self, encrypted: &[u8]) -> Result<Arc<Key>, KmsError> {
        let kept = self.kept.as_ref().and_then(|kept| kept.lock().get(&encrypted.to_vec(), self.clock.monotonic()));
        if let Some(key) = kept {
            return Ok(key);
        }
        self.metrics.cache_missed();
        let key = Arc::new(Key::new(&self.decrypt(encrypted).await.map_err(KmsError::DecryptV1)?)?);
        self.keep(encrypted, &key);
        Ok(key)
    }

    async fn ask(&self) -> Result<(), String> {
        let name = &self.calls.provider;
        let failed = |section: &str, why: &dyn std::fmt::Display| {
            format!("failed to perform {section} section of the healthz check for KMS Provider {name}, error: {why}")
        };
        let encrypted = self.encrypt(PING).await.map_err(|error| failed("encrypt", &error))?;
        let decrypted = self.decrypt(&encrypted).await.map_err(|error| failed("decrypt", &error))?;
        if decrypted == PING { Ok(()) } else { Err(failed("decrypt", &"it is not what was encrypted")) }
    }
}

impl Key {
    fn new(key: &[u8]) -> Result<Self, KmsError> {
        Ok(Self { gcm: (AES_GCM.with_key)(key)?, cbc: (AES_CBC.with_key)(key)? })
    }
}

#[async_trait]
impl Plugin for KmsV1 {
    async fn seal(&self, place: &[u8], plain: &[u8]) -> Result<Vec<u8>, KmsError> {
        self.note_arrival(Way::ToStorage);
        let began = self.clock.monotonic();
        let key = random::<KEY_BYTES>();
        self.metrics.key_generated(key.is_ok(), self.clock.monotonic() - began);
        let key = key?;
        let encrypted = self.encrypt(&key).await?;
        let length = u16::try_from(encrypted.len()).map_err(|_| ObjectError::LongSource(encrypted.len()))?;
        let key = Arc::new(Key::new(&key)?);
        self.keep(&encrypted, &key);
        Ok([&length.to_be_bytes()[..], &encrypted, &key.gcm.seal(place, plain)?].concat())
    }

    async fn open(&self, place: &[u8], stored: &[u8]) -> Result<Opened, KmsError> {
        self.note_arrival(Way::FromStorage);
        let (length, rest) = stored.split_first_chunk::<2>().ok_or(ObjectError::Short)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (encrypted, sealed) = rest.split_at_checked(length).ok_or(ObjectError::Short)?;
        let key = self.key(encrypted).await?;
        match key.gcm.open(place, sealed) {
            Ok(value) => Ok(Opened { value, stale: false }),
            // Without a tag anything of a good length opens to something: what was written last is tried first.
            Err(unauthentic) => {
                let value = key.cbc.open(place, sealed).map_err(|_| unauthentic)?;
                Ok(Opened { value, stale: true })
            }
        }
    }

    async fn check(&self) -> Result<(), String> {
        let mut health = self.health.lock().await;
        if let Some(last) = health.get(self.clock.monotonic()) {
            return last;
        }
        let answer = self.ask().await;
        health.note(answer, self.clock.monotonic())
    }

    async fn follow(self: Arc<Self>) {
        // Each value has its own key: there is nothing to see to.
    }
}
