//! What tokens of service accounts are checked and signed with: keys of this server, or somebody else's.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pki::jwks::WebKey;
use pki::{PrivateKey, PublicKey, jws};
use serde_json::Value;

/// For how long others may keep keys that do not change while the server runs.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// The keys that tokens are checked with.
#[async_trait]
pub trait TokenKeys: Send + Sync {
    /// All keys; the one of this name is among them if there is one. An empty name is every key's.
    async fn with(&self, key_id: &str) -> Arc<[WebKey]>;

    /// The keys that others may know, and for how long they are good.
    fn published(&self) -> (Arc<[WebKey]>, Duration);
}

/// Keys that do not change.
pub struct StaticKeys(Arc<[WebKey]>);

impl StaticKeys {
    /// These keys, under the names that they have by themselves.
    #[must_use]
    pub fn shared(keys: impl IntoIterator<Item = PublicKey>) -> Arc<dyn TokenKeys> {
        Arc::new(Self(keys.into_iter().map(WebKey::of).collect()))
    }
}

#[async_trait]
impl TokenKeys for StaticKeys {
    async fn with(&self, _: &str) -> Arc<[WebKey]> {
        Arc::clone(&self.0)
    }

    fn published(&self) -> (Arc<[WebKey]>, Duration) {
        (Arc::clone(&self.0), MAX_AGE)
    }
}

/// Why a token was not signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignError(pub String);

/// Who signs tokens.
#[async_trait]
pub trait TokenSigner: Send + Sync {
    /// A token of these claims.
    ///
    /// # Errors
    /// Whoever signs does not.
    async fn sign(&self, claims: &Value) -> Result<String, SignError>;
}

#[async_trait]
impl TokenSigner for PrivateKey {
    async fn sign(&self, claims: &Value) -> Result<String, SignError> {
        jws::sign(self, claims).map_err(|error| SignError(error.to_string()))
    }
}
