//! The keys of service account tokens: one to sign with, several to check with.

use std::sync::Arc;

use authn::service_account::{ExpirationExtension, StaticKeys, TokenIssuer, TokenKeys, TokenSigner};
use pki::{PrivateKey, PublicKey};

use super::external::{External, SignedElsewhere};
use crate::build_error::BuildError;
use crate::config::ServiceAccountConfig;

/// Making and checking tokens.
pub(crate) struct ServiceAccounts {
    /// Signs tokens.
    pub issuer: Option<TokenIssuer>,
    /// Whom tokens may be from; the first one signs.
    pub issuers: Vec<String>,
    /// What tokens are checked with, and what is published.
    pub keys: Arc<dyn TokenKeys>,
}

impl ServiceAccounts {
    /// Takes the signer that somebody else is, or else reads the key files; nothing where the configuration has none.
    ///
    /// # Errors
    /// When a file cannot be read or holds no key.
    pub(crate) fn load(config: &ServiceAccountConfig, external: Option<External>) -> Result<Option<Self>, BuildError> {
        if config.issuers.is_empty() {
            return Ok(None);
        }
        let issuers = config.issuers.clone();
        if let Some(External { keys, longest, maximum }) = external {
            let elsewhere = Arc::new(SignedElsewhere(keys));
            let config = ServiceAccountConfig { max_expiration: Some(maximum), ..config.clone() };
            let issuer = Self::issuer(&config, Arc::clone(&elsewhere) as _).living_at_most(longest);
            return Ok(Some(Self { issuer: Some(issuer), issuers, keys: elsewhere }));
        }
        let mut keys = Vec::new();
        for path in &config.key_files {
            let text = std::fs::read(path).map_err(|source| BuildError::read(path, source))?;
            keys.extend(PublicKey::all_from_pem(&text).map_err(|source| BuildError::key(path, source))?);
        }
        let mut issuer = None;
        if let Some(path) = &config.signing_key_file {
            let key = PrivateKey::load(path).map_err(|source| BuildError::key(path, source))?;
            if !keys.iter().any(|known| known.key_id() == key.public_key().key_id()) {
                keys.push(key.public_key().clone());
            }
            issuer = Some(Self::issuer(config, Arc::new(key)));
        }
        Ok(Some(Self { issuer, issuers, keys: StaticKeys::shared(keys) }))
    }

    fn issuer(config: &ServiceAccountConfig, signer: Arc<dyn TokenSigner>) -> TokenIssuer {
        let name = config.issuers.first().map(String::as_str).unwrap_or_default();
        let extension =
            if config.extend_expiration { ExpirationExtension::Extended } else { ExpirationExtension::Exact };
        TokenIssuer::new(name, signer, config.api_audiences.clone(), config.max_expiration, extension)
    }
}
