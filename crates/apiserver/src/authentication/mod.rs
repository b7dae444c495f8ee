//! The authenticators that the configuration asks for, in upstream's order.

mod external;
mod jwt;
mod lookups;
mod service_accounts;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::apiserver_config_v1::AnonymousAuthConfig;
use authn::service_account::{LegacyTokens, ServiceAccountTokens, TokenUses};
use authn::{
    Anonymous, AudienceAgnostic, Authenticator, BearerHeader, BootstrapTokens, Chain, ClientCertificate, FrontProxy,
    ProxyHeaders, StaticTokens, SubjectUid, TokenAuthenticator, TokenCache, TokenUnion, WebSocketBearer, WebhookTokens,
};
use client::{ClientCx, Webhook, WebhookRetry};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use component_base::tls::CaFile;
use egress::EgressSelector;
use pki::{CaBundle, CaPool};
use registry::Registry;

use crate::build_error::BuildError;
use crate::config::{AuthenticationConfig, ServerConfig, TokenWebhookConfig};
use crate::gates;

pub(crate) use external::External;
pub(crate) use lookups::RegistryObjects;
pub(crate) use service_accounts::ServiceAccounts;

/// The first wait between two tries of a question to the webhook, as upstream.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Who requests are from.
pub(crate) struct Authentication {
    pub(crate) chain: Chain,
    pub(crate) proxy_headers: Option<ProxyHeaders>,
    /// Every source of tokens, behind a cache; what TokenReview asks.
    pub tokens: Arc<dyn TokenAuthenticator>,
    /// What tokens must be good for.
    pub api_audiences: Vec<String>,
    /// Making and checking tokens of service accounts, where the configuration has keys.
    pub service_accounts: Option<ServiceAccounts>,
    /// The bundles that clients are asked for certificates of.
    pub client_cas: Vec<Arc<CaFile>>,
    /// The token by which the server calls itself.
    pub(crate) loopback_token: String,
}

/// What authenticators are made with.
pub(crate) struct Dependencies<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) registry: &'a Arc<Registry>,
    pub(crate) egress: &'a EgressSelector,
    pub(crate) lifecycle: &'a Lifecycle,
    pub(crate) metrics: &'a Metrics,
}

impl Authentication {
    /// Makes the authenticators.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn build(dependencies: &Dependencies<'_>, external: Option<External>) -> Result<Self, BuildError> {
        let config = &dependencies.config.authentication;
        let service_accounts = ServiceAccounts::load(&dependencies.config.service_accounts, external)?;
        let loopback_token = dependencies.lifecycle.rng().uuid();
        let loopback: Arc<dyn TokenAuthenticator> =
            Arc::new(StaticTokens::loopback(&loopback_token, &dependencies.lifecycle.rng().uuid()));
        let tokens = cached(dependencies, token_sources(dependencies, service_accounts.as_ref())?);
        let (mut members, client_cas): (Vec<Arc<dyn Authenticator>>, _) = certificates(dependencies)?;
        // The server's own token is tried before everything; a token that is another one leaves its error behind.
        members.insert(0, Arc::new(BearerHeader(loopback)));
        members.push(Arc::new(BearerHeader(Arc::clone(&tokens))));
        members.push(Arc::new(WebSocketBearer(Arc::clone(&tokens))));
        let api_audiences = dependencies.config.service_accounts.api_audiences.clone();
        Ok(Self {
            chain: Chain::new(members, anonymous(&config.anonymous), api_audiences.clone()),
            proxy_headers: config.front_proxy.as_ref().map(|proxy| proxy.headers.clone()),
            tokens,
            api_audiences,
            service_accounts,
            client_cas,
            loopback_token,
        })
    }
}

impl Authentication {
    /// Whether the server asks itself.
    pub(crate) fn is_loopback(&self, headers: &http::HeaderMap) -> bool {
        let header = headers.get(http::header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
        let token = header.and_then(|value| value.strip_prefix(b"Bearer "));
        token.is_some_and(|token| pki::constant_time_equal(token, self.loopback_token.as_bytes()))
    }
}

/// Who comes without credentials, where that may be.
fn anonymous(config: &AnonymousAuthConfig) -> Option<Anonymous> {
    let paths = config.conditions.iter().map(|condition| condition.path.clone()).collect();
    config.enabled.then_some(Anonymous { paths })
}

fn cached(dependencies: &Dependencies<'_>, sources: Vec<Arc<dyn TokenAuthenticator>>) -> Arc<dyn TokenAuthenticator> {
    let union = Arc::new(TokenUnion::new(sources));
    let lifecycle = dependencies.lifecycle;
    let (clock, tasks) = (Arc::clone(lifecycle.clock()), lifecycle.tasks().clone());
    Arc::new(TokenCache::new(union, authn::SUCCESS_TTL, clock, lifecycle.rng(), tasks).counted(dependencies.metrics))
}

fn token_sources(
    dependencies: &Dependencies<'_>,
    accounts: Option<&ServiceAccounts>,
) -> Result<Vec<Arc<dyn TokenAuthenticator>>, BuildError> {
    let config = &dependencies.config.authentication;
    let objects = Arc::new(RegistryObjects::new(Arc::clone(dependencies.registry)));
    let mut sources: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
    let for_api = |tokens: Arc<dyn TokenAuthenticator>| -> Arc<dyn TokenAuthenticator> {
        Arc::new(AudienceAgnostic::new(tokens, dependencies.config.service_accounts.api_audiences.clone()))
    };
    if let Some(path) = &config.token_file {
        sources.push(for_api(Arc::new(StaticTokens::load(path)?)));
    }
    if !config.static_tokens.is_empty() {
        sources.push(for_api(Arc::new(StaticTokens::parse(&csv(config), "configuration")?)));
    }
    if let Some(accounts) = accounts {
        let settings = &dependencies.config.service_accounts;
        let uses = TokenUses::new(dependencies.metrics);
        sources.push(Arc::new(LegacyTokens::new(
            Arc::clone(&accounts.keys),
            settings.api_audiences.clone(),
            settings.lookup.then(|| Arc::clone(&objects) as _),
            Arc::clone(dependencies.lifecycle.clock()),
            uses.clone(),
        )));
        sources.push(Arc::new(ServiceAccountTokens::new(
            settings.issuers.clone(),
            Arc::clone(&accounts.keys),
            settings.api_audiences.clone(),
            Arc::clone(&objects) as _,
            Arc::clone(dependencies.lifecycle.clock()),
            uses,
        )));
    }
    if config.bootstrap_tokens {
        sources.push(for_api(Arc::new(BootstrapTokens::new(objects, Arc::clone(dependencies.lifecycle.clock())))));
    }
    sources.extend(jwt::source(dependencies)?.map(for_api));
    if let Some(webhook) = &config.token_webhook {
        sources.push(Arc::new(token_webhook(dependencies, webhook)?));
    }
    Ok(sources)
}

fn token_webhook(dependencies: &Dependencies<'_>, config: &TokenWebhookConfig) -> Result<WebhookTokens, BuildError> {
    let failed = |error: client::ConfigError| BuildError::Webhook { what: "authentication", why: error.to_string() };
    let cx = ClientCx::of(dependencies.lifecycle, dependencies.lifecycle.tasks().clone())
        .through(Arc::clone(dependencies.egress.control_plane()));
    let connection = Webhook::config(&config.file, "kube-apiserver").map_err(failed)?;
    let webhook = Webhook::new(connection, None, FIRST_DELAY, WebhookRetry::Passing, cx).map_err(failed)?;
    let audiences = dependencies.config.service_accounts.api_audiences.clone();
    Ok(WebhookTokens::new(
        webhook,
        config.version,
        audiences,
        config.ttl,
        Arc::clone(dependencies.lifecycle.clock()),
        dependencies.lifecycle.rng(),
    ))
}

/// Tokens known beforehand, as a token file would hold them.
fn csv(config: &AuthenticationConfig) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let row = |token: &crate::config::StaticToken| {
        let fields = [&token.token, &token.user, &token.uid, &token.groups.join(",")].map(|field| quoted(field));
        fields.join(",") + "\n"
    };
    config.static_tokens.iter().map(row).collect()
}

type Certificates = (Vec<Arc<dyn Authenticator>>, Vec<Arc<CaFile>>);

/// The authenticators that look at client certificates: the front proxy's first.
fn certificates(dependencies: &Dependencies<'_>) -> Result<Certificates, BuildError> {
    let (config, clock) = (&dependencies.config.authentication, dependencies.lifecycle.clock());
    let (mut members, mut files): Certificates = Default::default();
    if let Some(proxy) = &config.front_proxy {
        let (file, pool) = followed_bundle(&proxy.client_ca_file)?;
        let (names, headers) = (proxy.allowed_names.clone(), proxy.headers.clone());
        members.push(Arc::new(FrontProxy::new(pool, Arc::clone(clock), names, headers)));
        files.push(file);
    }
    if let Some(path) = &config.client_ca_file {
        let (file, pool) = followed_bundle(path)?;
        let uid = if dependencies.lifecycle.gates().enabled(gates::SUBJECT_UID) {
            SubjectUid::Parsed
        } else {
            SubjectUid::Ignored
        };
        members.push(Arc::new(ClientCertificate::new(pool, Arc::clone(clock), uid)));
        files.push(file);
    }
    Ok((members, files))
}

/// A bundle that is read again when its file changes.
fn followed_bundle(path: &Path) -> Result<(Arc<CaFile>, Arc<CaPool>), BuildError> {
    let file = CaFile::load(path)?;
    let pool = Arc::new(CaPool::new(CaBundle::load(path)?));
    let (followed, path) = (Arc::downgrade(&pool), path.to_owned());
    file.on_change(move |_| {
        if let Some(pool) = followed.upgrade()
            && let Err(error) = pool.reload(&path)
        {
            tracing::error!(%error, file = %path.display(), "A new client CA bundle was not accepted");
        }
    });
    Ok((file, pool))
}
