//! Account tokens that somebody else signs: `--service-account-signing-endpoint`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use authn::service_account::{SignError, TokenKeys, TokenSigner};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Counters, Desc, Gauges, Histograms, Metrics, Stability};
use external_jwt::{ExternalKey, ExternalSigner, KeyCache, Observer, SignerError};
use pki::jwks::WebKey;
use serde_json::Value;

use crate::build_error::BuildError;
use crate::config::ServiceAccountConfig;

/// The shortest life of a token that is of use.
const MIN_LIFETIME_SECONDS: i64 = 600;
/// The life that clients ask for who can live with a longer one, and the longer one.
const EXTENDABLE: Duration = Duration::from_secs(3607);
const EXTENDED: Duration = Duration::from_secs(365 * 24 * 3600);

const SECONDS: &[f64] = &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const CALLS: Desc = Desc::new(
    "apiserver_externaljwt_request_duration_seconds",
    "How long calls of the external signer take.",
    Stability::Alpha,
)
.labels(&["code", "method"])
.buckets(SECONDS);
const SIGNED: Desc = Desc::new(
    "apiserver_externaljwt_sign_request_total",
    "Tokens that the external signer was asked for.",
    Stability::Alpha,
)
.labels(&["code"]);
const FETCHED: Desc = Desc::new(
    "apiserver_externaljwt_fetch_keys_request_total",
    "Times that the external signer was asked for its keys.",
    Stability::Alpha,
)
.labels(&["code"]);
const FETCHED_AT: Desc = Desc::new(
    "apiserver_externaljwt_fetch_keys_success_timestamp",
    "When the keys of the external signer were last fetched.",
    Stability::Alpha,
);
const DATA_AT: Desc = Desc::new(
    "apiserver_externaljwt_fetch_keys_data_timestamp",
    "When the external signer has read the keys that were fetched last.",
    Stability::Alpha,
);

/// Whoever signs.
pub(crate) struct External {
    pub(super) keys: Arc<KeyCache>,
    /// The longest that tokens may live, as the signer has it.
    pub(super) longest: Duration,
    /// The longest that is granted without extension.
    pub(super) maximum: Duration,
}

impl External {
    /// Asks the signer what it can do and for its keys, where the configuration names one.
    ///
    /// # Errors
    /// It does not answer in time, or what it can do is of no use.
    pub(crate) async fn start(
        config: &ServiceAccountConfig,
        lifecycle: &Lifecycle,
        metrics: &Metrics,
    ) -> Result<Option<Self>, BuildError> {
        let Some(socket) = &config.signing_endpoint else { return Ok(None) };
        let failed = |error: SignerError| BuildError::ExternalSigner(error.to_string());
        let observer = Arc::new(Families::new(metrics, lifecycle));
        let signer = ExternalSigner::new(socket, observer, Arc::clone(lifecycle.clock())).map_err(failed)?;
        let seconds = signer.max_lifetime().await.map_err(failed)?;
        let (longest, maximum) = lifetimes(seconds, config).map_err(BuildError::ExternalSigner)?;
        let keys = KeyCache::start(signer, lifecycle.tasks()).await.map_err(failed)?;
        Ok(Some(Self { keys, longest, maximum }))
    }
}

/// The longest life of a token, and the longest that is granted without extension.
fn lifetimes(seconds: i64, config: &ServiceAccountConfig) -> Result<(Duration, Duration), String> {
    if seconds < MIN_LIFETIME_SECONDS {
        return Err(format!(
            "max token life supported by external-jwt-signer ({seconds}s) is less than acceptable (min {MIN_LIFETIME_SECONDS}s)"
        ));
    }
    let longest = Duration::from_secs(seconds.unsigned_abs());
    let maximum = config.max_expiration.unwrap_or(longest);
    if maximum > longest {
        return Err(format!(
            "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
             service-account-signing-endpoint: {}s > {seconds}s",
            maximum.as_secs()
        ));
    }
    if config.extend_expiration && (maximum < EXTENDABLE || longest < EXTENDED) {
        tracing::warn!(
            seconds,
            "service-account-extend-token-expiration is true, but tokens of the external signer live shorter than it \
             extends them to"
        );
    }
    Ok((longest, maximum))
}

/// Signs by the external signer, and checks with its keys.
pub(super) struct SignedElsewhere(pub(super) Arc<KeyCache>);

#[async_trait]
impl TokenSigner for SignedElsewhere {
    async fn sign(&self, claims: &Value) -> Result<String, SignError> {
        self.0.sign(&claims.to_string()).await.map_err(|error| SignError(error.to_string()))
    }
}

#[async_trait]
impl TokenKeys for SignedElsewhere {
    async fn with(&self, key_id: &str) -> Arc<[WebKey]> {
        self.0.with(key_id).await.iter().map(web_key).collect()
    }

    fn published(&self) -> (Arc<[WebKey]>, Duration) {
        let keys = self.0.current();
        (keys.iter().filter(|own| !own.excluded).map(web_key).collect(), self.0.max_age())
    }
}

fn web_key(own: &ExternalKey) -> WebKey {
    WebKey { key_id: own.key_id.clone(), key: own.key.clone() }
}

/// What is told of the signer, with upstream's names.
struct Families {
    calls: Histograms,
    signed: Counters,
    fetched: Counters,
    fetched_at: Gauges,
    data_at: Gauges,
    clock: base::SharedClock,
}

impl Families {
    fn new(metrics: &Metrics, lifecycle: &Lifecycle) -> Self {
        Self {
            calls: metrics.histograms(&CALLS),
            signed: metrics.counters(&SIGNED),
            fetched: metrics.counters(&FETCHED),
            fetched_at: metrics.gauges(&FETCHED_AT),
            data_at: metrics.gauges(&DATA_AT),
            clock: Arc::clone(lifecycle.clock()),
        }
    }
}

impl Observer for Families {
    fn called(&self, method: &'static str, code: &'static str, took: Duration) {
        self.calls.with(&[code, method]).observe(took.as_secs_f64());
    }

    fn signed(&self, code: &'static str) {
        self.signed.with(&[code]).inc();
    }

    fn fetched(&self, code: &'static str, data: Option<f64>) {
        self.fetched.with(&[code]).inc();
        if let Some(data) = data {
            let now = self.clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            self.fetched_at.with(&[]).set(now.as_secs_f64());
            self.data_at.with(&[]).set(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_what_both_allow() {
        for (seconds, maximum, expected) in [
            (3600, None, Ok((3600, 3600))),
            (7200, Some(3600), Ok((7200, 3600))),
            (
                599,
                None,
                Err("max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"),
            ),
            (-1, None, Err("max token life supported by external-jwt-signer (-1s) is less than acceptable (min 600s)")),
            (
                3600,
                Some(7200),
                Err("service-account-max-token-expiration cannot be set longer than the token expiration"),
            ),
        ] {
            let config = ServiceAccountConfig {
                max_expiration: maximum.map(Duration::from_secs),
                ..ServiceAccountConfig::default()
            };
            match (lifetimes(seconds, &config), expected) {
                (Ok((longest, maximum)), Ok(expected)) => assert_eq!((longest.as_secs(), maximum.as_secs()), expected),
                (Err(error), Err(expected)) => assert!(error.starts_with(expected), "{error}"),
                (outcome, expected) => panic!("{outcome:?} is not {expected:?}"),
            }
        }
    }
}
