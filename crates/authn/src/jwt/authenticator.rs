//! Accepting the tokens of issuers elsewhere.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_machinery::quote::go_quote;
use api_types::apiserver_config_v1::{Issuer, JWTAuthenticator};
use async_trait::async_trait;
use base::{CancellationToken, SharedClock, SharedRng, TaskGroup};
use client::Trust;
use parking_lot::Mutex;
use pki::jws::Algorithm;

use super::demands::{Demands, unverified_issuer};
use super::discovery;
use super::distributed::DistributedClaim;
use super::fetch::{Connector, Egress, Fetcher};
use super::keys::{KeysCx, RemoteKeys};
use super::metrics::{IssuerMetrics, JwtMetrics};
use super::rules::Rules;
use crate::authenticator::{AuthnError, TokenAuthenticator};
use crate::identity::Identity;

/// How often an issuer is looked for until it is found, as upstream.
const RETRY: Duration = Duration::from_secs(10);

/// What authenticators of tokens need of the process.
#[derive(Clone)]
pub struct JwtCx {
    /// Makes ways to issuers.
    pub connector: Arc<dyn Connector>,
    /// How tokens may be signed.
    pub algorithms: Vec<Algorithm>,
    /// The clock.
    pub clock: SharedClock,
    /// The source of jitter.
    pub rng: SharedRng,
    /// What is measured.
    pub metrics: JwtMetrics,
}

/// The authenticators of a configuration, in its order. What they do in the background ends with them.
pub struct JwtAuthenticators {
    members: Vec<Arc<JwtAuthenticator>>,
    tasks: TaskGroup,
}

/// Accepts the tokens of one issuer.
struct JwtAuthenticator {
    issuer: Issuer,
    rules: Rules,
    demands: Demands,
    keys_cx: KeysCx,
    /// Nothing until the issuer was found.
    keys: OnceLock<RemoteKeys>,
    found: CancellationToken,
    /// Why the issuer was not found yet.
    problem: Mutex<String>,
    groups: Option<DistributedClaim>,
    metrics: IssuerMetrics,
}

impl JwtAuthenticators {
    /// Starts to look for the issuers. `rules` are those that were compiled of `configured`; tasks run in `tasks`.
    #[must_use]
    pub fn start(configured: &[JWTAuthenticator], rules: Vec<Rules>, cx: &JwtCx, tasks: TaskGroup) -> Self {
        let make = |(own, rules): (&JWTAuthenticator, Rules)| {
            let member = Arc::new(JwtAuthenticator::new(&own.issuer, rules, cx, &tasks));
            let searching = Arc::clone(&member);
            tasks.spawn_cancellable("jwt-issuer", async move { searching.search().await });
            member
        };
        let members = configured.iter().zip(rules).map(make).collect();
        Self { members, tasks }
    }

    /// Waits until every issuer was found.
    pub async fn found(&self) {
        for member in &self.members {
            member.found.cancelled().await;
        }
    }

    /// Why some issuers were not found yet.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let missing = self.members.iter().filter(|member| !member.found.is_cancelled());
        missing.map(|member| member.problem.lock().clone()).collect()
    }
}

impl Drop for JwtAuthenticators {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[async_trait]
impl TokenAuthenticator for JwtAuthenticators {
    async fn authenticate_token(&self, token: &str, _: &[String]) -> Result<Option<Identity>, AuthnError> {
        let Some(issuer) = unverified_issuer(token) else { return Ok(None) };
        match self.members.iter().find(|member| member.issuer.url == issuer) {
            Some(member) => member.identify(token).await.map(Some),
            None => Ok(None),
        }
    }
}

impl JwtAuthenticator {
    fn new(issuer: &Issuer, rules: Rules, cx: &JwtCx, tasks: &TaskGroup) -> Self {
        let trust = match issuer.certificate_authority.as_bytes() {
            [] => Trust::System,
            pem => Trust::Pem(pem.to_vec()),
        };
        let egress = Egress::named(&issuer.egress_selector_type);
        let fetcher = Arc::new(Fetcher::new(Arc::clone(&cx.connector), trust, egress, tasks.clone()));
        let metrics = cx.metrics.of_issuer(&issuer.url);
        let (clock, rng) = (Arc::clone(&cx.clock), cx.rng.clone());
        let keys_cx = KeysCx { fetcher, clock, rng, metrics: Some(metrics.clone()) };
        let demands = Demands { audiences: issuer.audiences.clone(), algorithms: cx.algorithms.clone() };
        let groups = rules.groups_claim().map(str::to_owned);
        Self {
            groups: groups.map(|claim| DistributedClaim::new(claim, demands.clone(), keys_cx.clone())),
            problem: Mutex::new(format!("oidc: authenticator for issuer {} is not initialized", go_quote(&issuer.url))),
            issuer: issuer.clone(),
            rules,
            demands,
            keys_cx,
            keys: OnceLock::new(),
            found: CancellationToken::new(),
            metrics,
        }
    }

    /// Looks for the issuer until it is found: it may run in the cluster that this server is for.
    async fn search(&self) {
        let issuer = &self.issuer;
        let elsewhere = issuer.discovery_url.as_deref().filter(|url| !url.is_empty());
        loop {
            match discovery::keys_url(&self.keys_cx.fetcher, &issuer.url, elsewhere).await {
                Ok(url) => {
                    // Nobody else sets it.
                    let _first = self.keys.set(RemoteKeys::new(url, self.keys_cx.clone()));
                    self.found.cancel();
                    return;
                }
                Err(error) => {
                    tracing::warn!(issuer = issuer.url, error, "An issuer of tokens was not found");
                    *self.problem.lock() = error;
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn identify(&self, token: &str) -> Result<Identity, AuthnError> {
        let begun = self.keys_cx.clock.monotonic();
        let outcome = self.verified(token).await;
        self.metrics.answered(outcome.is_ok(), self.keys_cx.clock.monotonic() - begun);
        outcome
    }

    async fn verified(&self, token: &str) -> Result<Identity, AuthnError> {
        let keys = self.keys.get().ok_or_else(|| AuthnError::refused("oidc: authenticator not initialized"))?;
        let failed = |why: String| AuthnError::Refused(format!("oidc: verify token: {why}"));
        let parsed = self.demands.check(token, &self.issuer.url, self.keys_cx.clock.wall()).map_err(failed)?;
        let claims = keys.verify(&parsed).await;
        let mut claims = claims.map_err(|why| failed(format!("failed to verify signature: {why}")))?;
        if let Some(groups) = &self.groups {
            let expanded = groups.expand(&mut claims).await;
            expanded.map_err(|why| AuthnError::Refused(format!("oidc: could not expand distributed claims: {why}")))?;
        }
        let user = self.rules.user(&claims)?;
        Ok(Identity::of(user))
    }
}
