//! Groups that a token does not name itself: it says who can be asked for them, who answers with another token (a
//! distributed claim). <https://openid.net/specs/openid-connect-core-1_0.html#AggregatedDistributedClaims>

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::quote::go_quote;
use api_machinery::value::Value as Json;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::demands::{Demands, unverified_issuer};
use super::discovery;
use super::expressions::Claims;
use super::fetch::without_query;
use super::keys::{KeysCx, RemoteKeys};

const NAMES: &str = "_claim_names";
const SOURCES: &str = "_claim_sources";
/// Issuers of such claims that are remembered. Tokens name them, but only those of an issuer that is trusted.
const MAX_ISSUERS: usize = 16;
/// When an issuer that could not be found is looked for again.
const PAUSE: Duration = Duration::from_secs(10);

/// Finds one claim elsewhere.
pub(super) struct DistributedClaim {
    claim: String,
    demands: Demands,
    cx: KeysCx,
    issuers: Mutex<HashMap<String, Arc<tokio::sync::Mutex<Found>>>>,
}

/// What is known of who makes tokens of claims; held while he is looked for.
#[derive(Default)]
struct Found {
    keys: Option<Arc<RemoteKeys>>,
    not_before: Option<Instant>,
}

impl DistributedClaim {
    /// `demands` hold for the tokens of claims, too.
    pub(super) fn new(claim: String, demands: Demands, cx: KeysCx) -> Self {
        Self { claim, demands, cx: KeysCx { metrics: None, ..cx }, issuers: Mutex::default() }
    }

    /// Adds the claim, where it is elsewhere.
    pub(super) async fn expand(&self, claims: &mut Claims) -> Result<(), String> {
        if claims.contains_key(&self.claim) {
            return Ok(());
        }
        let Some((url, token)) = source(claims, &self.claim)? else { return Ok(()) };
        let value = self.resolve(&url, &token).await?;
        claims.insert(self.claim.clone(), value);
        Ok(())
    }

    async fn resolve(&self, url: &str, token: &str) -> Result<Json, String> {
        let (claim, shown) = (&self.claim, without_query(url));
        let answer = self.cx.fetcher.get(url, Some(token).filter(|token| !token.is_empty())).await;
        let answer = answer.map_err(|error| format!("while getting distributed claim {}: {error}", go_quote(claim)))?;
        let signed = String::from_utf8_lossy(&answer).trim().to_owned();
        let issuer = unverified_issuer(&signed).ok_or_else(|| {
            let claim = go_quote(claim);
            format!("getting untrusted issuer from endpoint {shown} failed for claim {claim}: malformed token")
        })?;
        let keys = self.keys_of(&issuer).await.ok_or_else(|| {
            let issuer = without_query(&issuer);
            let quoted = go_quote(&issuer);
            format!("verifying untrusted issuer {issuer} failed: verifier not initialized for issuer: {quoted}")
        })?;
        let failed = |why: String| format!("verify distributed claim token: {why}");
        let parsed = self.demands.check(&signed, &issuer, self.cx.clock.wall()).map_err(failed)?;
        let verified = keys.verify(&parsed).await;
        let mut claims = verified.map_err(|why| failed(format!("failed to verify signature: {why}")))?;
        claims.remove(claim).ok_or_else(|| {
            format!("jwt returned by distributed claim endpoint {} did not contain claim: {claim}", go_quote(&shown))
        })
    }

    /// The keys of an issuer, if it can be found.
    async fn keys_of(&self, issuer: &str) -> Option<Arc<RemoteKeys>> {
        let state = {
            let mut issuers = self.issuers.lock();
            if issuers.len() >= MAX_ISSUERS && !issuers.contains_key(issuer) {
                issuers.clear();
            }
            Arc::clone(issuers.entry(issuer.to_owned()).or_default())
        };
        let mut found = state.lock().await;
        let now = self.cx.clock.monotonic();
        if found.keys.is_none() && found.not_before.is_none_or(|not_before| now >= not_before) {
            found.not_before = Some(now + PAUSE);
            match discovery::keys_url(&self.cx.fetcher, issuer, None).await {
                Ok(url) => found.keys = Some(Arc::new(RemoteKeys::new(url, self.cx.clone()))),
                Err(error) => {
                    tracing::warn!(issuer = %without_query(issuer), error, "An issuer of distributed claims was not found");
                }
            }
        }
        found.keys.clone()
    }
}

/// Whom to ask for a claim, and with which token; nobody where it is not elsewhere.
fn source(claims: &Claims, claim: &str) -> Result<Option<(String, String)>, String> {
    let Some(names) = claims.get(NAMES) else { return Ok(None) };
    let names = names.as_object().ok_or("oidc: error parsing distributed claim names: not an object")?;
    let sources = claims.get(SOURCES).ok_or("oidc: no claim sources")?;
    let sources = sources.as_object().ok_or("oidc: could not parse claim sources: not an object")?;
    let Some(named) = names.get(claim) else { return Ok(None) };
    let named = named.as_str().ok_or("oidc: error parsing distributed claim names: not a text")?;
    let found = sources
        .get(named)
        .ok_or_else(|| format!("id token _claim_names contained a source {named} missing in _claims_sources"))?;
    let text = |name: &str| found.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
    Ok(Some((text("endpoint"), text("access_token"))).filter(|(url, _)| !url.is_empty()))
}
