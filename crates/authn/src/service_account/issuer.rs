//! Making bound service account tokens: what TokenRequest asks for, clamped and extended as upstream does.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::Rng;

use super::claims::{BoundObject, Claims, ObjectRef};
use super::keys::{SignError, TokenSigner};
use super::username;

/// The lifetime that clients ask for when they can live with a longer one: one hour and seven seconds, as the kubelet's
/// projected volumes did by default.
const EXTENDABLE_SECONDS: i64 = 3607;
/// What such a token really gets.
const EXTENDED_SECONDS: i64 = 365 * 24 * 3600;
const MINIMUM_SECONDS: i64 = 600;
const MAXIMUM_SECONDS: i64 = 1 << 32;

/// Whether well-known lifetimes are stretched to a year: `--service-account-extend-token-expiration`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpirationExtension {
    /// Stretched, with a warning once the wished lifetime is over.
    Extended,
    /// As asked.
    Exact,
}

/// Makes tokens for TokenRequest.
pub struct TokenIssuer {
    issuer: String,
    signer: Arc<dyn TokenSigner>,
    api_audiences: Vec<String>,
    maximum: Option<Duration>,
    extension: ExpirationExtension,
    /// The longest that a token lives whose lifetime is stretched, in seconds.
    extended: i64,
}

/// What a TokenRequest asks for, after the objects it names were looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenWish {
    /// Namespace of the service account.
    pub namespace: String,
    /// The service account.
    pub service_account: ObjectRef,
    /// Audiences; empty means the API server's.
    pub audiences: Vec<String>,
    /// Lifetime in seconds, already validated: see [`expiration_problem`].
    pub expiration_seconds: i64,
    /// What the token is bound to besides the account.
    pub bound: Option<BoundObject>,
}

/// A signed token with what the reply and audit say about it.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedToken {
    /// The token itself.
    pub token: String,
    /// `status.expirationTimestamp`: the wished end, even where the token really lives longer.
    pub expiration: SystemTime,
    /// The lifetime granted, which the reply's spec shows.
    pub expiration_seconds: i64,
    /// The audiences in the token.
    pub audiences: Vec<String>,
    /// The token's ID; audit notes `authentication.kubernetes.io/issued-credential-id: JTI={id}`.
    pub id: String,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// What is wrong with a wished lifetime, for `spec.expirationSeconds`.
#[must_use]
pub fn expiration_problem(seconds: i64) -> Option<&'static str> {
    match seconds {
        short if short < MINIMUM_SECONDS => Some("may not specify a duration less than 10 minutes"),
        long if long > MAXIMUM_SECONDS => Some("may not specify a duration larger than 2^32 seconds"),
        _ => None,
    }
}

/// Whether a token of `account` may be bound to a pod that runs as `pod_account`.
///
/// # Errors
/// The text of the 400.
pub fn may_bind_to_pod(account: &str, pod_account: &str) -> Result<(), String> {
    if account == pod_account {
        return Ok(());
    }
    Err(format!("cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."))
}

/// Why a bound object reference does not fit the object found (409), if so. An empty wish fits any.
#[must_use]
pub fn uid_conflict(wished: &str, found: &str) -> Option<String> {
    (!wished.is_empty() && wished != found).then(|| {
        format!(
            "the UID in the bound object reference ({wished}) does not match the UID in record. The object might have been deleted and then recreated"
        )
    })
}

impl TokenIssuer {
    /// Issues as `issuer`; `maximum` is `--service-account-max-token-expiration`.
    #[must_use]
    pub fn new(
        issuer: &str,
        signer: Arc<dyn TokenSigner>,
        api_audiences: Vec<String>,
        maximum: Option<Duration>,
        extension: ExpirationExtension,
    ) -> Self {
        Self { issuer: issuer.to_owned(), signer, api_audiences, maximum, extension, extended: EXTENDED_SECONDS }
    }

    /// The same where no token may live longer than this, not even a stretched one.
    #[must_use]
    pub fn living_at_most(self, longest: Duration) -> Self {
        let longest = i64::try_from(longest.as_secs()).unwrap_or(i64::MAX);
        Self { extended: self.extended.min(longest), ..self }
    }

    /// Makes and signs a token.
    ///
    /// # Errors
    /// When signing fails; the reply is then 500 `failed to generate token: {err}`.
    pub async fn issue(&self, wish: &TokenWish, now: SystemTime, rng: &Rng) -> Result<IssuedToken, SignError> {
        let mut warnings = Vec::new();
        let granted = self.clamp(wish.expiration_seconds, &mut warnings);
        let audiences = if wish.audiences.is_empty() { &self.api_audiences } else { &wish.audiences };
        let extended = self.is_extended(wish, granted, audiences);
        let issued = seconds(now);
        let claims = Claims {
            issuer: self.issuer.clone(),
            subject: username(&wish.namespace, &wish.service_account.name),
            audiences: audiences.clone(),
            expires: Some(issued.saturating_add(if extended { self.extended } else { granted })),
            not_before: Some(issued),
            issued: Some(issued),
            id: rng.uuid(),
            namespace: wish.namespace.clone(),
            service_account: wish.service_account.clone(),
            warn_after: extended.then(|| issued.saturating_add(granted)),
            ..bound_claims(wish.bound.as_ref())
        };
        Ok(IssuedToken {
            token: self.signer.sign(&claims.to_payload()).await?,
            expiration: now + Duration::from_secs(u64::try_from(granted).unwrap_or(0)),
            expiration_seconds: granted,
            audiences: claims.audiences,
            id: claims.id,
            warnings,
        })
    }

    fn clamp(&self, wished: i64, warnings: &mut Vec<String>) -> i64 {
        let maximum = self.maximum.and_then(|maximum| i64::try_from(maximum.as_secs()).ok()).filter(|&n| n > 0);
        match maximum {
            Some(maximum) if wished > maximum => {
                warnings.push(format!("requested expiration of {wished} seconds shortened to {maximum} seconds"));
                maximum
            }
            _ => wished,
        }
    }

    fn is_extended(&self, wish: &TokenWish, granted: i64, audiences: &[String]) -> bool {
        self.extension == ExpirationExtension::Extended
            && matches!(wish.bound, Some(BoundObject::Pod { .. }))
            && granted == EXTENDABLE_SECONDS
            && audiences.iter().all(|audience| self.api_audiences.contains(audience))
    }
}

fn bound_claims(bound: Option<&BoundObject>) -> Claims {
    match bound.cloned() {
        None => Claims::default(),
        Some(BoundObject::Pod { pod, node }) => Claims { pod: Some(pod), node, ..Claims::default() },
        Some(BoundObject::Secret(secret)) => Claims { secret: Some(secret), ..Claims::default() },
        Some(BoundObject::Node(node)) => Claims { node: Some(node), ..Claims::default() },
    }
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_secs()).ok()).unwrap_or(0)
}
