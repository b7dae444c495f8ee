//! The keys of an issuer: fetched when a token names one that is not known, as issuers change their keys when they like.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base::{Backoff, SharedClock, SharedRng};
use pki::jwks::{self, WebKey};
use pki::jws::UnverifiedToken;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::expressions::Claims;
use super::fetch::Fetcher;
use super::metrics::IssuerMetrics;

/// Between two fetches there is so much time at least; more, while they bring nothing new.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);
const FACTOR: f64 = 2.0;
const JITTER: f64 = 0.1;

const NOT_ANSWERED: &str = "fetching keys: no answer yet";
const NOT_VERIFIED: &str = "failed to verify id token signature";

/// What keeping keys up to date needs of the process.
#[derive(Clone)]
pub(super) struct KeysCx {
    pub(super) fetcher: Arc<Fetcher>,
    pub(super) clock: SharedClock,
    pub(super) rng: SharedRng,
    pub(super) metrics: Option<IssuerMetrics>,
}

/// The keys that an address has.
pub(super) struct RemoteKeys {
    url: String,
    cx: KeysCx,
    known: ArcSwap<KeySet>,
    fetching: Mutex<Fetching>,
}

#[derive(Default)]
struct KeySet {
    keys: Vec<WebKey>,
    /// How many fetches came to an end before these keys were known.
    generation: u64,
}

struct Fetching {
    not_before: Instant,
    pause: Backoff,
    /// Why the last fetch failed, if it did.
    problem: Option<String>,
}

impl KeySet {
    fn verified(&self, token: &UnverifiedToken) -> Option<Claims> {
        let named = token.key_id();
        let mut fit = self.keys.iter().filter(|own| named.is_empty() || own.key_id == named);
        fit.find_map(|own| token.verify(&own.key).ok().cloned())
    }
}

impl RemoteKeys {
    pub(super) fn new(url: String, cx: KeysCx) -> Self {
        let pause = Backoff::new(FIRST_PAUSE, FACTOR, LAST_PAUSE, JITTER);
        let fetching = Mutex::new(Fetching { not_before: cx.clock.monotonic(), pause, problem: None });
        Self { url, cx, known: ArcSwap::default(), fetching }
    }

    /// The claims of a token that one of the keys has signed.
    pub(super) async fn verify(&self, token: &UnverifiedToken) -> Result<Claims, String> {
        let known = self.known.load_full();
        if let Some(claims) = known.verified(token) {
            return Ok(claims);
        }
        let known = self.newer_than(known.generation).await?;
        known.verified(token).ok_or_else(|| NOT_VERIFIED.to_owned())
    }

    /// Fetches keys, unless somebody else just did. Tokens come from whoever likes to send some, so that an issuer is not
    /// asked for each: without a fetch there is what is known.
    async fn newer_than(&self, generation: u64) -> Result<Arc<KeySet>, String> {
        let mut fetching = self.fetching.lock().await;
        let known = self.known.load_full();
        if known.generation != generation {
            return Ok(known);
        }
        if self.cx.clock.monotonic() < fetching.not_before {
            return fetching.problem.clone().map_or(Ok(known), Err);
        }
        // Whoever asks may be cut off while the issuer says nothing: that counts as a fetch that failed.
        let mut pause = fetching.pause.step(&self.cx.rng);
        fetching.not_before = self.cx.clock.monotonic() + pause;
        fetching.problem = Some(NOT_ANSWERED.to_owned());
        let fetched = self.fetch().await;
        let is_new = fetched.as_ref().is_ok_and(|keys| *keys != known.keys);
        if is_new {
            fetching.pause.reset();
            pause = fetching.pause.step(&self.cx.rng);
        }
        fetching.not_before = self.cx.clock.monotonic() + pause;
        fetching.problem = fetched.as_ref().err().cloned();
        let set = Arc::new(KeySet { keys: fetched?, generation: generation + 1 });
        self.known.store(Arc::clone(&set));
        Ok(set)
    }

    async fn fetch(&self) -> Result<Vec<WebKey>, String> {
        let document = self.cx.fetcher.get(&self.url, None).await.map_err(|error| error.to_string());
        let keys = document.and_then(|document| {
            let keys = jwks::parse_key_set(&document).ok_or("oidc: failed to decode keys: not a key set")?;
            Ok((document, keys))
        });
        if let Some(metrics) = &self.cx.metrics {
            let document = keys.as_ref().map(|(document, _)| document.as_ref()).map_err(|_| ());
            metrics.fetched_keys(document, self.cx.clock.wall());
        }
        keys.map(|(_, keys)| keys).map_err(|why: String| format!("fetching keys {why}"))
    }
}
