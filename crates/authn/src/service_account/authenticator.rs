//! Accepting bound service account tokens: signature, audience, times, and that everything the token is bound to still exists.

use std::sync::Arc;

use api_machinery::time::Time;
use async_trait::async_trait;
use base::SharedClock;
use pki::jwks::WebKey;
use pki::jws::UnverifiedToken;
use serde_json::{Map, Value};

use super::claims::{Claims, ObjectRef};
use super::keys::TokenKeys;
use super::uses::{TokenUses, Use};
use super::{group_names, username};
use crate::authenticator::{AuthnError, LookupError, TokenAuthenticator};
use crate::identity::{CREDENTIAL_ID_KEY, Identity, UserInfo, list_valued};

/// How far clocks may differ, and how long a token outlives the deletion of what it is bound to.
const LEEWAY_SECONDS: i64 = 60;

/// What matters of an object a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectState {
    /// The object's uid.
    pub uid: String,
    /// When deletion began.
    pub deletion_timestamp: Option<Time>,
}

impl From<&api_machinery::meta::ObjectMeta> for ObjectState {
    fn from(meta: &api_machinery::meta::ObjectMeta) -> Self {
        Self { uid: meta.uid.clone(), deletion_timestamp: meta.deletion_timestamp }
    }
}

/// Reads the objects tokens are bound to: from a cache, and live when the cache has nothing (it may lag).
#[async_trait]
pub trait BoundObjects: Send + Sync {
    /// A service account.
    async fn service_account(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError>;
    /// A pod.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError>;
    /// A Secret.
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError>;
    /// A node.
    async fn node(&self, name: &str) -> Result<Option<ObjectState>, LookupError>;
}

/// Authenticates tokens of this cluster's service accounts.
pub struct ServiceAccountTokens {
    issuers: Vec<String>,
    keys: Arc<dyn TokenKeys>,
    api_audiences: Vec<String>,
    objects: Arc<dyn BoundObjects>,
    clock: SharedClock,
    uses: TokenUses,
}

impl ServiceAccountTokens {
    /// Accepts tokens of any of `issuers` signed with any of `keys`. `api_audiences` count where a request asks for none.
    #[must_use]
    pub fn new(
        issuers: Vec<String>,
        keys: Arc<dyn TokenKeys>,
        api_audiences: Vec<String>,
        objects: Arc<dyn BoundObjects>,
        clock: SharedClock,
        uses: TokenUses,
    ) -> Self {
        Self { issuers, keys, api_audiences, objects, clock, uses }
    }

    async fn verified_claims(&self, token: &UnverifiedToken) -> Result<Claims, AuthnError> {
        let malformed = "service account token claims could not be validated due to unexpected private claims";
        let payload = verified_payload(&*self.keys, token).await?;
        Claims::from_payload(payload).ok_or_else(|| AuthnError::refused(malformed))
    }

    /// The audiences asked for (or the API server's) that the token names. A token without any is good for the API server.
    fn audiences(&self, claims: &Claims, requested: &[String]) -> Result<Vec<String>, AuthnError> {
        let targets = if requested.is_empty() { &self.api_audiences } else { requested };
        let named = if claims.audiences.is_empty() { &self.api_audiences } else { &claims.audiences };
        let granted: Vec<String> = named.iter().filter(|one| targets.contains(one)).cloned().collect();
        if granted.is_empty() {
            return Err(AuthnError::Refused(audience_mismatch(named, targets)));
        }
        Ok(granted)
    }

    async fn check_objects(&self, claims: &Claims, now: i64) -> Result<(), AuthnError> {
        let (namespace, account) = (claims.namespace.as_str(), &claims.service_account);
        let found = self.objects.service_account(namespace, &account.name).await?;
        let found = found.ok_or_else(|| AuthnError::Lookup(format!("serviceaccounts {:?} not found", account.name)))?;
        if found.uid != account.uid {
            let text = format!("service account UID ({}) does not match claim ({})", found.uid, account.uid);
            return Err(AuthnError::Refused(text));
        }
        if is_gone(&found, now) {
            return Err(AuthnError::Refused(format!("service account {namespace}/{} has been deleted", account.name)));
        }
        if let Some(secret) = &claims.secret {
            check_bound("secret", self.objects.secret(namespace, &secret.name).await?, secret, now)?;
        }
        if let Some(pod) = &claims.pod {
            check_bound("pod", self.objects.pod(namespace, &pod.name).await?, pod, now)?;
        } else if let Some(node) = &claims.node {
            // With a pod the node is only information about it and may be gone.
            check_bound("node", self.objects.node(&node.name).await?, node, now)?;
        }
        Ok(())
    }
}

#[async_trait]
impl TokenAuthenticator for ServiceAccountTokens {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        let Ok(token) = UnverifiedToken::parse(token) else { return Ok(None) };
        let issuer = token.unverified_claim("iss").and_then(Value::as_str).unwrap_or_default();
        if !self.issuers.iter().any(|known| known == issuer) {
            return Ok(None);
        }
        let claims = self.verified_claims(&token).await?;
        let granted = self.audiences(&claims, audiences)?;
        let now = Time::from(self.clock.wall()).unix_seconds().unwrap_or(0);
        check_times(&claims, now)?;
        self.check_objects(&claims, now).await?;
        if claims.audiences.is_empty() {
            self.uses.count(Use::Legacy);
        }
        if let Some(threshold) = claims.warn_after {
            self.uses.count(if now > threshold { Use::Stale } else { Use::Valid });
        }
        Ok(Some(identity(&claims, granted, now)))
    }
}

/// Checks the signature with the keys of the token's `kid`, or with all keys when it names none.
pub(super) async fn verified_payload<'a>(
    keys: &dyn TokenKeys,
    token: &'a UnverifiedToken,
) -> Result<&'a Map<String, Value>, AuthnError> {
    let keys = keys.with(token.key_id()).await;
    let fits = |own: &&WebKey| token.key_id().is_empty() || own.key_id == token.key_id();
    let mut errors = Vec::new();
    for own in keys.iter().filter(fits) {
        match token.verify(&own.key) {
            Ok(payload) => return Ok(payload),
            Err(error) => errors.push(AuthnError::Refused(error.to_string())),
        }
    }
    Err(AuthnError::join(errors).unwrap_or_else(|| AuthnError::refused("invalid signature, no keys found")))
}

/// Why a token is not good for what was asked.
pub(super) fn audience_mismatch(named: &[String], targets: &[String]) -> String {
    format!("token audiences {} is invalid for the target audiences {}", quoted(named), quoted(targets))
}

fn quoted(list: &[String]) -> String {
    let items: Vec<String> = list.iter().map(|one| format!("{one:?}")).collect();
    format!("[{}]", items.join(" "))
}

fn check_times(claims: &Claims, now: i64) -> Result<(), AuthnError> {
    let (early, late) = (now.saturating_sub(LEEWAY_SECONDS), now.saturating_add(LEEWAY_SECONDS));
    if claims.not_before.is_some_and(|start| late < start) {
        return Err(AuthnError::refused("service account token is not valid yet"));
    }
    if claims.expires.is_some_and(|end| early > end) {
        return Err(AuthnError::refused("service account token has expired"));
    }
    if claims.issued.is_some_and(|issued| late < issued) {
        return Err(AuthnError::refused("service account token is issued in the future"));
    }
    Ok(())
}

fn is_gone(object: &ObjectState, now: i64) -> bool {
    let deleted = object.deletion_timestamp.and_then(Time::unix_seconds);
    deleted.is_some_and(|deleted| deleted < now.saturating_sub(LEEWAY_SECONDS))
}

fn check_bound(kind: &str, found: Option<ObjectState>, claim: &ObjectRef, now: i64) -> Result<(), AuthnError> {
    let Some(found) = found.filter(|found| !is_gone(found, now)) else {
        return Err(AuthnError::refused("service account token has been invalidated"));
    };
    if found.uid != claim.uid {
        return Err(AuthnError::Refused(format!(
            "{kind} UID ({}) does not match service account {kind} ref claim ({})",
            found.uid, claim.uid
        )));
    }
    Ok(())
}

fn identity(claims: &Claims, audiences: Vec<String>, now: i64) -> Identity {
    let account = &claims.service_account;
    let user = UserInfo {
        username: username(&claims.namespace, &account.name),
        uid: account.uid.clone(),
        groups: group_names(&claims.namespace).to_vec(),
        extra: list_valued(extra(claims)),
    };
    let mut identity = Identity { audiences, ..Identity::of(user) };
    if claims.audiences.is_empty() {
        annotate(&mut identity, "authentication.k8s.io/legacy-token", claims.subject.clone());
    }
    if let Some(overdue) = claims.warn_after.map(|threshold| now.saturating_sub(threshold)).filter(|&n| n > 0) {
        let text = format!("subject: {}, seconds after warning threshold: {overdue}", claims.subject);
        annotate(&mut identity, "authentication.k8s.io/stale-token", text);
    }
    identity
}

pub(super) fn annotate(identity: &mut Identity, key: &str, value: String) {
    identity.audit_annotations.push((key.to_owned(), value));
}

fn extra(claims: &Claims) -> std::collections::BTreeMap<String, Vec<String>> {
    let mut pairs = Vec::new();
    let mut push = |key: &str, value: String| pairs.push((key.to_owned(), vec![value]));
    if !claims.id.is_empty() {
        push(CREDENTIAL_ID_KEY, format!("JTI={}", claims.id));
    }
    if let Some(pod) = claims.pod.as_ref().filter(|pod| !pod.name.is_empty() && !pod.uid.is_empty()) {
        push("authentication.kubernetes.io/pod-name", pod.name.clone());
        push("authentication.kubernetes.io/pod-uid", pod.uid.clone());
    }
    if let Some(node) = claims.node.as_ref().filter(|node| !node.name.is_empty()) {
        push("authentication.kubernetes.io/node-name", node.name.clone());
        if !node.uid.is_empty() {
            push("authentication.kubernetes.io/node-uid", node.uid.clone());
        }
    }
    pairs.into_iter().collect()
}
