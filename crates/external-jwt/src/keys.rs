//! The keys of an external signer, fetched as often as it says and when a token names one that is not known.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::quote::go_quote;
use arc_swap::ArcSwap;
use base::{SharedClock, TaskGroup};
use pki::PublicKey;
use server_api::signer::{FetchKeysResponse, Key};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::ExternalSigner;
use crate::error::SignerError;
use crate::header::MAX_KEY_ID_BYTES;

/// When keys that could not be fetched are fetched again, as upstream.
const RETRY: Duration = Duration::from_secs(10);
/// Tokens come from whoever likes to send some: for an unknown key the signer is asked this often at most.
const PAUSE: Duration = Duration::from_secs(1);
/// Keys that a signer may have.
const MAX_KEYS: usize = 1000;
/// No hint is longer: a year.
const MAX_HINT: Duration = Duration::from_secs(365 * 24 * 3600);

/// A key of the signer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalKey {
    /// The signer's name for it.
    pub key_id: String,
    /// The key.
    pub key: PublicKey,
    /// It is good for tokens that were signed already, and told to nobody.
    pub excluded: bool,
}

struct Known {
    keys: Arc<[ExternalKey]>,
    refresh_at: Instant,
}

/// The keys that the signer has now.
pub struct KeyCache {
    signer: ExternalSigner,
    known: ArcSwap<Known>,
    /// When keys were last asked for.
    asked: Mutex<Instant>,
    clock: SharedClock,
}

impl KeyCache {
    /// Fetches the keys, and keeps them up to date for as long as the tasks live.
    ///
    /// # Errors
    /// The signer has no keys that can be used.
    pub async fn start(signer: ExternalSigner, tasks: &TaskGroup) -> Result<Arc<Self>, SignerError> {
        let clock = Arc::clone(&signer.clock);
        let known = ArcSwap::from_pointee(fetch(&signer, &clock).await?);
        let asked = Mutex::new(clock.monotonic());
        let cache = Arc::new(Self { signer, known, asked, clock });
        let own = Arc::clone(&cache);
        tasks.spawn_cancellable("external-keys", async move { own.refresh().await });
        Ok(cache)
    }

    async fn refresh(&self) {
        loop {
            tokio::time::sleep_until(self.known.load().refresh_at).await;
            let mut asked = self.asked.lock().await;
            let fetched = self.fetch().await;
            *asked = self.clock.monotonic();
            drop(asked);
            if fetched.is_err() {
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    async fn fetch(&self) -> Result<(), SignerError> {
        let fetched = fetch(&self.signer, &self.clock).await;
        let known = fetched.inspect_err(|error| tracing::warn!(%error, "Fetching keys of tokens failed"))?;
        self.known.store(Arc::new(known));
        Ok(())
    }

    /// All keys, the one of this name among them if the signer has it; an empty name is every key's.
    pub async fn with(&self, key_id: &str) -> Arc<[ExternalKey]> {
        let keys = self.current();
        let is_there = |keys: &[ExternalKey]| key_id.is_empty() || keys.iter().any(|own| own.key_id == key_id);
        if is_there(&keys) {
            return keys;
        }
        let mut asked = self.asked.lock().await;
        if !is_there(&self.current()) && self.clock.monotonic() >= *asked + PAUSE {
            // Also for those who come after somebody was cut off while the signer said nothing.
            *asked = self.clock.monotonic();
            // What went wrong was told; the former keys stay.
            let _told = self.fetch().await;
            *asked = self.clock.monotonic();
        }
        self.current()
    }

    /// All keys that are known.
    #[must_use]
    pub fn current(&self) -> Arc<[ExternalKey]> {
        Arc::clone(&self.known.load().keys)
    }

    /// How long the keys are good for others.
    #[must_use]
    pub fn max_age(&self) -> Duration {
        self.known.load().refresh_at.saturating_duration_since(self.clock.monotonic())
    }

    /// A token of these claims, which are JSON, signed with a key that others may know.
    ///
    /// # Errors
    /// The signer does not sign, or with what nobody could check.
    pub async fn sign(&self, claims: &str) -> Result<String, SignerError> {
        let outcome = self.try_sign(claims).await;
        self.signer.observer.signed(outcome.as_ref().map_or_else(SignerError::code, |_| "OK"));
        outcome
    }

    async fn try_sign(&self, claims: &str) -> Result<String, SignerError> {
        let signed = self.signer.sign(claims).await?;
        let key_id = &signed.key_id;
        if self.with(key_id).await.iter().any(|own| own.key_id == *key_id && own.excluded) {
            let problem = format!("key used for signing JWT (kid: {key_id}) is excluded from OIDC discovery docs");
            return Err(SignerError::Header(problem));
        }
        Ok(signed.token)
    }
}

async fn fetch(signer: &ExternalSigner, clock: &SharedClock) -> Result<Known, SignerError> {
    let fetched = match signer.fetch_keys().await {
        Ok(answer) => read(&answer, clock).map(|known| (known, seconds(&answer))).map_err(SignerError::Keys),
        Err(error) => Err(error),
    };
    let code = fetched.as_ref().map_or_else(SignerError::code, |_| "OK");
    signer.observer.fetched(code, fetched.as_ref().ok().map(|(_, seconds)| *seconds));
    fetched.map(|(known, _)| known)
}

fn seconds(answer: &FetchKeysResponse) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "seconds of our times are far below what a double holds")]
    answer.data_timestamp.as_ref().map_or(0.0, |time| time.seconds as f64 + f64::from(time.nanos) / 1e9)
}

fn read(answer: &FetchKeysResponse, clock: &SharedClock) -> Result<Known, String> {
    let hint = u64::try_from(answer.refresh_hint_seconds).ok().filter(|seconds| *seconds > 0);
    let hint = hint.ok_or_else(|| format!("found invalid refresh hint ({}s)", answer.refresh_hint_seconds))?;
    if answer.keys.is_empty() {
        return Err("found no keys".to_owned());
    }
    if answer.keys.len() > MAX_KEYS {
        return Err(format!("found {} keys, more than {MAX_KEYS}", answer.keys.len()));
    }
    if answer.data_timestamp.is_none() {
        return Err("invalid data timestamp: proto: invalid nil Timestamp".to_owned());
    }
    let keys: Result<Vec<_>, String> = answer.keys.iter().map(key).collect();
    let refresh_at = clock.monotonic() + Duration::from_secs(hint).min(MAX_HINT);
    Ok(Known { keys: keys?.into(), refresh_at })
}

fn key(own: &Key) -> Result<ExternalKey, String> {
    if own.key_id.is_empty() || own.key_id.len() > MAX_KEY_ID_BYTES {
        return Err(format!("found invalid public key id {}", go_quote(&own.key_id)));
    }
    if own.key.is_empty() {
        return Err("found empty public key".to_owned());
    }
    let key = PublicKey::from_spki(&own.key).map_err(|error| format!("while parsing external public keys: {error}"))?;
    Ok(ExternalKey { key_id: own.key_id.clone(), key, excluded: own.exclude_from_oidc_discovery })
}
