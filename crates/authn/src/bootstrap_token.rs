//! Bootstrap tokens: credentials of machines that join, kept as Secrets in `kube-system`. Whatever does not match is "no
//! opinion", never an error, so that probing tells nothing.

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::Secret;
use async_trait::async_trait;
use base::SharedClock;
use pki::{BootstrapToken, constant_time_equal};

use crate::authenticator::{AuthnError, LookupError, TokenAuthenticator};
use crate::identity::Identity;

const NAMESPACE: &str = "kube-system";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const BOOTSTRAPPERS: &str = "system:bootstrappers";
const MAX_GROUP_SUFFIX_CHARACTERS: usize = 256;

/// Reads Secrets, usually from an informer's cache.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The Secret, or `None` when it does not exist.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError>;
}

/// Authenticates bootstrap tokens.
pub struct BootstrapTokens {
    secrets: Arc<dyn Secrets>,
    clock: SharedClock,
}

impl BootstrapTokens {
    /// Looks tokens up in `secrets`.
    #[must_use]
    pub fn new(secrets: Arc<dyn Secrets>, clock: SharedClock) -> Self {
        Self { secrets, clock }
    }
}

#[async_trait]
impl TokenAuthenticator for BootstrapTokens {
    async fn authenticate_token(&self, token: &str, _audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        let Some(token) = BootstrapToken::parse(token) else { return Ok(None) };
        let Some(secret) = self.secrets.secret(NAMESPACE, &token.secret_name()).await? else { return Ok(None) };
        Ok(identify(&token, &secret, self.clock.wall().into()))
    }
}

fn identify(token: &BootstrapToken, secret: &Secret, now: Time) -> Option<Identity> {
    let data = |key: &str| secret.data.get(key).map(|value| value.0.as_slice()).unwrap_or_default();
    if secret.metadata.deletion_timestamp.is_some() || secret.type_ != SECRET_TYPE {
        return None;
    }
    if !token.secret_matches(data("token-secret")) || !constant_time_equal(data("token-id"), token.id().as_bytes()) {
        return None;
    }
    if is_expired(data("expiration"), now) || data("usage-bootstrap-authentication") != b"true" {
        return None;
    }
    let groups = groups(data("auth-extra-groups"))?;
    Some(Identity::new(&format!("system:bootstrap:{}", token.id()), groups))
}

/// No time means never; a time that cannot be read counts as past.
fn is_expired(expiration: &[u8], now: Time) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let parsed = std::str::from_utf8(expiration).ok().and_then(|text| Time::parse(text).ok());
    parsed.is_none_or(|until| until <= now)
}

/// The extra groups, sorted, and `system:bootstrappers`; `None` if any is outside the reserved prefix.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let extra = std::str::from_utf8(extra).ok()?;
    let mut groups = vec![BOOTSTRAPPERS.to_owned()];
    for group in extra.split(',').filter(|_| !extra.is_empty()) {
        if !is_bootstrap_group(group) {
            return None;
        }
        groups.push(group.to_owned());
    }
    groups.sort();
    groups.dedup();
    Some(groups)
}

/// `\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`
#[must_use]
pub fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    rest.len() <= MAX_GROUP_SUFFIX_CHARACTERS
        && rest.bytes().all(|byte| plain(byte) || byte == b':' || byte == b'-')
        && rest.bytes().last().is_some_and(plain)
}

#[cfg(test)]
#[path = "bootstrap_token_tests.rs"]
mod tests;
