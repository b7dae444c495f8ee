//! Service account tokens for pods: asked for, kept, and renewed well before they expire.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use api_machinery::time::Time;
use api_types::authentication_v1::{BoundObjectReference, TokenRequest};
use api_types::core_v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use client::{Client, ClientError};
use parking_lot::Mutex;

/// Tokens are renewed when this old, however long they live.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Renewals of many pods are spread over this.
const MAX_JITTER_SECONDS: u64 = 10;
/// What is asked for where the volume does not say.
const DEFAULT_LIFETIME_SECONDS: i64 = 60 * 60;
/// Tokens kept; a node's pods have a few each.
const MAX_TOKENS: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pod_uid: String,
    namespace: String,
    account: String,
    /// Empty for whatever account has the name.
    account_uid: String,
    audience: String,
    expiration_seconds: i64,
}

#[derive(Clone)]
struct Held {
    token: String,
    issued: SystemTime,
    expires: SystemTime,
    jitter: Duration,
}

/// A token, and until when it is good.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) token: String,
    pub(crate) expires: Time,
}

impl From<Held> for Issued {
    fn from(held: Held) -> Self {
        Self { token: held.token, expires: Time::from(held.expires) }
    }
}

impl Held {
    fn needs_renewal(&self, now: SystemTime) -> bool {
        let age = now.duration_since(self.issued).unwrap_or_default();
        let lifetime = self.expires.duration_since(self.issued).unwrap_or_default();
        age + self.jitter > MAX_AGE || age + self.jitter > lifetime.mul_f64(0.8)
    }
}

/// Why there is no token, in upstream's words. The server is asked again when the volume is looked at again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    /// The old one cannot be used any more.
    #[error("token {token} expired and refresh failed: {source}")]
    Expired { token: String, source: ClientError },
    #[error("failed to fetch token: {0}")]
    Fetch(ClientError),
}

/// The tokens of the pods of a node.
pub(crate) struct Tokens {
    client: Client,
    held: Mutex<BTreeMap<Key, Held>>,
}

impl Tokens {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone(), held: Mutex::default() }
    }

    /// A token as the volume wants it. An old one is used for as long as it is valid when the server cannot be asked.
    pub(crate) async fn token(&self, pod: &Pod, wish: &ServiceAccountTokenProjection) -> Result<String, TokenError> {
        Ok(self.issued(pod, &wish.audience, wish.expiration_seconds).await?.token)
    }

    /// The same for an audience and a lifetime.
    pub(crate) async fn issued(
        &self,
        pod: &Pod,
        audience: &str,
        expiration_seconds: Option<i64>,
    ) -> Result<Issued, TokenError> {
        self.of(pod, String::new(), audience, expiration_seconds).await
    }

    /// The same of the pod's account as it was seen, and of no other that got its name since.
    pub(crate) async fn of_account(&self, pod: &Pod, uid: &str, audience: &str) -> Result<String, TokenError> {
        Ok(self.of(pod, uid.to_owned(), audience, None).await?.token)
    }

    async fn of(
        &self,
        pod: &Pod,
        account_uid: String,
        audience: &str,
        expiration_seconds: Option<i64>,
    ) -> Result<Issued, TokenError> {
        let key = Key {
            pod_uid: pod.metadata.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            account: pod.spec.service_account_name.clone(),
            account_uid,
            audience: audience.to_owned(),
            expiration_seconds: expiration_seconds.unwrap_or(DEFAULT_LIFETIME_SECONDS),
        };
        let now = self.client.clock().wall();
        let held = self.held.lock().get(&key).cloned();
        if let Some(held) = &held
            && !held.needs_renewal(now)
        {
            return Ok(held.clone().into());
        }
        match (self.request(&key, pod, now).await, held) {
            (Ok(fresh), _) => {
                self.keep(key, fresh.clone(), now);
                Ok(fresh.into())
            }
            (Err(error), Some(held)) if now < held.expires => {
                tracing::warn!(%error, namespace = key.namespace, account = key.account, "Renewing a token failed");
                Ok(held.into())
            }
            (Err(source), Some(_)) => Err(TokenError::Expired { token: describe(&key), source }),
            (Err(error), None) => Err(TokenError::Fetch(error)),
        }
    }

    async fn request(&self, key: &Key, pod: &Pod, now: SystemTime) -> Result<Held, ClientError> {
        let mut request = TokenRequest::default();
        request.metadata.uid.clone_from(&key.account_uid);
        if !key.audience.is_empty() {
            request.spec.audiences.push(key.audience.clone());
        }
        request.spec.expiration_seconds = Some(key.expiration_seconds);
        request.spec.bound_object_ref = Some(BoundObjectReference {
            kind: "Pod".into(),
            api_version: "v1".into(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
        });
        let api = self.client.namespaced::<ServiceAccount>(&key.namespace);
        let answer = api.create_subresource::<TokenRequest, TokenRequest>(&key.account, "token", &request).await?;
        let expires = expiry(answer.status.expiration_timestamp, now, key.expiration_seconds);
        let jitter = Duration::from_secs(self.client.rng().below(MAX_JITTER_SECONDS));
        Ok(Held { token: answer.status.token, issued: now, expires, jitter })
    }

    fn keep(&self, key: Key, fresh: Held, now: SystemTime) {
        let mut held = self.held.lock();
        if held.len() >= MAX_TOKENS {
            held.retain(|_, token| now < token.expires);
        }
        if held.len() < MAX_TOKENS {
            held.insert(key, fresh);
        }
    }

    /// Forgets the tokens of a pod.
    pub(crate) fn forget(&self, pod_uid: &str) {
        self.held.lock().retain(|key, _| key.pod_uid != pod_uid);
    }
}

fn expiry(stated: Time, now: SystemTime, wished_seconds: i64) -> SystemTime {
    if stated.is_zero() {
        return now + Duration::from_secs(u64::try_from(wished_seconds).unwrap_or_default());
    }
    SystemTime::from(stated)
}

fn describe(key: &Key) -> String {
    format!("{:?}/{:?}/{}/{:?}", key.account, key.namespace, key.expiration_seconds, key.audience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_renewed_early() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let held = |lifetime: u64| Held {
            token: String::new(),
            issued: start,
            expires: start + Duration::from_secs(lifetime),
            jitter: Duration::from_secs(5),
        };
        let cases = [(3600, 2800, false), (3600, 2880, true), (600, 470, false), (600, 480, true)];
        for (lifetime, age, expected) in cases {
            let now = start + Duration::from_secs(age);
            assert_eq!(held(lifetime).needs_renewal(now), expected, "{lifetime} {age}");
        }
        let year = held(365 * 24 * 3600);
        assert!(!year.needs_renewal(start + MAX_AGE - Duration::from_secs(6)));
        assert!(year.needs_renewal(start + MAX_AGE));
    }
}
