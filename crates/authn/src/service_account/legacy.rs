//! Accepting the older service account tokens that live in Secrets: they have no audience and no end, so that the Secret,
//! which must still hold this very token, decides. See KEP-2799 for how their use is tracked.

use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::constants::SERVICE_ACCOUNT_TOKEN_KEY;
use api_types::core_v1::{Secret, ServiceAccount};
use async_trait::async_trait;
use base::SharedClock;
use component_helpers::legacy_tokens::{INVALID_SINCE, LAST_USED, date};
use pki::jws::UnverifiedToken;
use serde_json::{Map, Value};

use super::authenticator::{annotate, verified_payload};
use super::keys::TokenKeys;
use super::uses::{TokenUses, Use};
use super::{group_names, username};
use crate::authenticator::{AuthnError, LookupError, TokenAuthenticator};
use crate::identity::{Identity, UserInfo};

/// Who signs these tokens.
const ISSUER: &str = "kubernetes/serviceaccount";
const CLAIM: &str = "kubernetes.io/serviceaccount";
const AUTOMATIC_WARNING: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of \
                                 auto-generated secret-based tokens.";

/// Reads what these tokens live in, and notes that they are used.
#[async_trait]
pub trait TokenSecrets: Send + Sync {
    /// The Secret, or `None` when it does not exist.
    async fn token_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError>;
    /// The account, or `None` when it does not exist.
    async fn account(&self, namespace: &str, name: &str) -> Result<Option<Arc<ServiceAccount>>, LookupError>;
    /// Labels the Secret with [`LAST_USED`] and a date. What goes wrong is for the log.
    async fn note_use(&self, secret: &Secret, date: &str);
}

/// Authenticates tokens from Secrets.
pub struct LegacyTokens {
    keys: Arc<dyn TokenKeys>,
    api_audiences: Vec<String>,
    /// What decides beside the signature; nothing where it alone does (`--service-account-lookup=false`).
    objects: Option<Arc<dyn TokenSecrets>>,
    clock: SharedClock,
    uses: TokenUses,
}

/// What such a token says.
struct Claims<'a> {
    namespace: &'a str,
    secret: &'a str,
    account: &'a str,
    uid: &'a str,
}

impl<'a> Claims<'a> {
    fn of(payload: &'a Map<String, Value>) -> Result<Self, AuthnError> {
        let text = |key: &str, what: &str| {
            let value = payload.get(key).and_then(Value::as_str).unwrap_or_default();
            if value.is_empty() { Err(AuthnError::Refused(format!("{what} claim is missing"))) } else { Ok(value) }
        };
        let own = |name: &str| format!("{CLAIM}/{name}");
        let subject = text("sub", "sub")?;
        let claims = Self {
            namespace: text(&own("namespace"), "namespace")?,
            secret: text(&own("secret.name"), "secretName")?,
            account: text(&own("service-account.name"), "serviceAccountName")?,
            uid: text(&own("service-account.uid"), "serviceAccountUID")?,
        };
        if subject != username(claims.namespace, claims.account) {
            return Err(AuthnError::refused("sub claim is invalid"));
        }
        Ok(claims)
    }
}

impl LegacyTokens {
    /// Accepts tokens signed with any of `keys`. They are good for all of `api_audiences`. Without `objects` they are good
    /// also when their Secret or account is gone.
    #[must_use]
    pub fn new(
        keys: Arc<dyn TokenKeys>,
        api_audiences: Vec<String>,
        objects: Option<Arc<dyn TokenSecrets>>,
        clock: SharedClock,
        uses: TokenUses,
    ) -> Self {
        Self { keys, api_audiences, objects, clock, uses }
    }

    async fn secret_of(
        objects: &dyn TokenSecrets,
        claims: &Claims<'_>,
        token: &str,
    ) -> Result<Arc<Secret>, AuthnError> {
        let found = objects.token_secret(claims.namespace, claims.secret).await?;
        let Some(secret) = found.filter(|secret| secret.metadata.deletion_timestamp.is_none()) else {
            return Err(AuthnError::refused("Token has been invalidated"));
        };
        let held = secret.data.get(SERVICE_ACCOUNT_TOKEN_KEY).map(|held| held.0.as_slice()).unwrap_or_default();
        if !pki::constant_time_equal(held, token.as_bytes()) {
            return Err(AuthnError::refused("Token does not match server's copy"));
        }
        Ok(secret)
    }

    async fn account_of(objects: &dyn TokenSecrets, claims: &Claims<'_>) -> Result<Arc<ServiceAccount>, AuthnError> {
        let name = claims.account;
        let found = objects.account(claims.namespace, name).await?;
        let found = found.ok_or_else(|| AuthnError::Lookup(format!("serviceaccounts {name:?} not found")))?;
        if found.metadata.deletion_timestamp.is_some() {
            return Err(AuthnError::Refused(format!("ServiceAccount {}/{name} has been deleted", claims.namespace)));
        }
        if found.metadata.uid != claims.uid {
            let (held, claimed) = (&found.metadata.uid, claims.uid);
            return Err(AuthnError::Refused(format!("ServiceAccount UID ({held}) does not match claim ({claimed})")));
        }
        Ok(found)
    }

    /// Looks at what the token lives in, and notes in the identity how it came to be.
    async fn check_objects(
        &self,
        objects: &dyn TokenSecrets,
        claims: &Claims<'_>,
        token: &str,
        identity: &mut Identity,
    ) -> Result<(), AuthnError> {
        let secret = Self::secret_of(objects, claims, token).await?;
        let account = Self::account_of(objects, claims).await?;
        // Also where the token is refused: that somebody still uses it keeps it from being deleted.
        self.track(objects, &secret).await;
        if secret.metadata.labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
            self.uses.count(Use::Invalid);
            return Err(marked_invalid(claims));
        }
        let is_automatic = account.secrets.iter().any(|reference| reference.name == claims.secret);
        let (kind, counted) = if is_automatic { ("autogenerated", Use::Automatic) } else { ("manual", Use::Manual) };
        self.uses.count(counted);
        let key = format!("authentication.k8s.io/legacy-token-{kind}-secret");
        annotate(identity, &key, claims.secret.to_owned());
        if is_automatic {
            identity.warnings.push(AUTOMATIC_WARNING.to_owned());
        }
        Ok(())
    }

    /// Notes the use once a day. Tomorrow's date is another server's whose clock is ahead.
    async fn track(&self, objects: &dyn TokenSecrets, secret: &Secret) {
        let now = Time::from(self.clock.wall());
        let tomorrow = now + std::time::Duration::from_secs(24 * 3600);
        let noted = secret.metadata.labels.get(LAST_USED);
        let (today, tomorrow) = (date(now), date(tomorrow));
        if noted.is_none_or(|noted| *noted != today && *noted != tomorrow) {
            objects.note_use(secret, &today).await;
        }
    }
}

/// The audiences asked for, of those that the token is good for.
fn granted(own: &[String], requested: &[String]) -> Result<Vec<String>, AuthnError> {
    if requested.is_empty() {
        return Ok(own.to_vec());
    }
    let granted: Vec<String> = own.iter().filter(|one| requested.contains(one)).cloned().collect();
    if granted.is_empty() && !own.is_empty() {
        return Err(AuthnError::Refused(super::authenticator::audience_mismatch(own, requested)));
    }
    Ok(granted)
}

fn marked_invalid(claims: &Claims<'_>) -> AuthnError {
    AuthnError::Refused(format!(
        "the token in secret {ns}/{secret} for service account {ns}/{account} has been marked invalid. Use tokens from \
         the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the \
         secret to temporarily allow use of this token",
        ns = claims.namespace,
        secret = claims.secret,
        account = claims.account,
    ))
}

#[async_trait]
impl TokenAuthenticator for LegacyTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        let Ok(parsed) = UnverifiedToken::parse(token) else { return Ok(None) };
        if parsed.unverified_claim("iss").and_then(Value::as_str) != Some(ISSUER) {
            return Ok(None);
        }
        let payload = verified_payload(&*self.keys, &parsed).await?;
        let granted = granted(&self.api_audiences, audiences)?;
        self.uses.count(Use::Legacy);
        let claims = Claims::of(payload)?;
        let user = UserInfo {
            username: username(claims.namespace, claims.account),
            uid: claims.uid.to_owned(),
            groups: group_names(claims.namespace).to_vec(),
            ..UserInfo::default()
        };
        let mut identity = Identity { audiences: granted, ..Identity::of(user) };
        annotate(&mut identity, "authentication.k8s.io/legacy-token", username(claims.namespace, claims.account));
        if let Some(objects) = &self.objects {
            self.check_objects(&**objects, &claims, token, &mut identity).await?;
        }
        Ok(Some(identity))
    }
}

#[cfg(test)]
#[path = "legacy_tests.rs"]
mod tests;
