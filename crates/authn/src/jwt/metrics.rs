//! What is told of issuers and their tokens, with upstream's names.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use component_base::metrics::{Desc, Gauges, Histograms, Metrics, Stability, hash_label};
use parking_lot::Mutex;

const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
const LATENCY: Desc = Desc::new(
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "How long it takes to find out about a token of an issuer.",
    Stability::Alpha,
)
.labels(&["jwt_issuer_hash", "result"])
.buckets(SECONDS);
const LAST_FETCH: Desc = Desc::new(
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
    "When the keys of an issuer were last fetched, or could not be.",
    Stability::Alpha,
)
.labels(&["apiserver_id_hash", "jwt_issuer_hash", "result"]);
const KEY_SET: Desc = Desc::new(
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
    "The hash of the key set of an issuer that was fetched last.",
    Stability::Alpha,
)
.labels(&["apiserver_id_hash", "hash", "jwt_issuer_hash"]);

/// The families, shared by all issuers.
#[derive(Clone)]
pub struct JwtMetrics {
    latency: Histograms,
    keys: Option<KeyFamilies>,
    server: String,
}

#[derive(Clone)]
struct KeyFamilies {
    last_fetch: Gauges,
    key_set: Gauges,
    /// The hash of the key set that is shown, by the hash of the issuer.
    shown: Arc<Mutex<BTreeMap<String, String>>>,
}

impl JwtMetrics {
    /// Adds the families; `server` is the hash of the server's identity. Keys are told of where `keys` says so (the gate
    /// StructuredAuthenticationConfigurationJWKSMetrics).
    #[must_use]
    pub fn new(metrics: &Metrics, server: String, keys: bool) -> Self {
        let families = || KeyFamilies {
            last_fetch: metrics.gauges(&LAST_FETCH),
            key_set: metrics.gauges(&KEY_SET),
            shown: Arc::default(),
        };
        Self { latency: metrics.histograms(&LATENCY), keys: keys.then(families), server }
    }

    pub(super) fn of_issuer(&self, url: &str) -> IssuerMetrics {
        IssuerMetrics { families: self.clone(), issuer: hash_label(url.as_bytes()) }
    }
}

/// The series of one issuer.
#[derive(Clone)]
pub(super) struct IssuerMetrics {
    families: JwtMetrics,
    issuer: String,
}

impl IssuerMetrics {
    pub(super) fn answered(&self, ok: bool, took: Duration) {
        let result = if ok { "success" } else { "failure" };
        self.families.latency.with(&[&self.issuer, result]).observe(took.as_secs_f64());
    }

    /// Keys were fetched, the text of which is this, or could not be.
    pub(super) fn fetched_keys(&self, document: Result<&[u8], ()>, now: SystemTime) {
        let (issuer, server) = (&self.issuer, &self.families.server);
        let Some(keys) = &self.families.keys else { return };
        let result = if document.is_ok() { "success" } else { "failure" };
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        keys.last_fetch.with(&[server, issuer, result]).set(seconds);
        let Ok(document) = document else { return };
        let hash = hash_label(document);
        let mut shown = keys.shown.lock();
        if let Some(former) = shown.insert(issuer.clone(), hash.clone())
            && former != hash
        {
            keys.key_set.remove(&[server, &former, issuer]);
        }
        keys.key_set.with(&[server, &hash, issuer]).set(1.0);
    }
}
