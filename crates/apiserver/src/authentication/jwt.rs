//! Tokens of issuers elsewhere: those that flags state, or whatever `--authentication-config` states now.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_types::apiserver_config_v1::{AnonymousAuthConfig, JWTAuthenticator};
use async_trait::async_trait;
use authn::jwt::{self, Egress, JwtAuthenticators, JwtCx, JwtMetrics, Surroundings};
use authn::{AuthnError, Identity, TokenAuthenticator};
use base::{Direct, TaskGroup};
use client::{ClientConfig, ClientCx, ConfigError, HttpsTransport, Transport, Trust};
use component_base::metrics::{Desc, Stability};
use component_base::reload::ReloadError;
use component_base::swappable::{Build, ReloadFamilies, ReloadMetrics, Swappable};
use egress::EgressSelector;

use super::Dependencies;
use crate::build_error::BuildError;
use crate::gates;
use crate::server_id::server_id_hash;

/// How long the issuers of a changed file may take to be found, as upstream.
const READY_WITHIN: Duration = Duration::from_secs(60);

const RELOADS: Desc = Desc::new(
    "apiserver_authentication_config_controller_automatic_reloads_total",
    "Times that a changed authentication configuration was taken, or refused.",
    Stability::Beta,
)
.labels(&["status", "apiserver_id_hash"]);
const LAST_RELOAD: Desc = Desc::new(
    "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
    "When a changed authentication configuration was last taken, or refused.",
    Stability::Beta,
)
.labels(&["status", "apiserver_id_hash"]);
const IN_FORCE: Desc = Desc::new(
    "apiserver_authentication_config_controller_last_config_info",
    "The hash of the authentication configuration that is in force.",
    Stability::Alpha,
)
.labels(&["apiserver_id_hash", "hash"]);
const FAMILIES: ReloadFamilies = ReloadFamilies { reloads: &RELOADS, last_reload: &LAST_RELOAD, in_force: &IN_FORCE };

/// What authenticators are made with.
struct Builder {
    cx: JwtCx,
    surroundings: Surroundings,
    tasks: TaskGroup,
    /// What the file said of requests without credentials when the server started.
    anonymous: Option<AnonymousAuthConfig>,
}

impl Builder {
    fn assemble(&self, issuers: &[JWTAuthenticator], rules: Vec<jwt::Rules>) -> JwtAuthenticators {
        JwtAuthenticators::start(issuers, rules, &self.cx, self.tasks.child("jwt-issuers"))
    }
}

#[async_trait]
impl Build for Builder {
    type Value = JwtAuthenticators;

    fn build(&self, text: &str, former: Option<&JwtAuthenticators>) -> Result<JwtAuthenticators, ReloadError> {
        let configuration = jwt::parse(text)?;
        let rules = jwt::compile(&configuration, &self.surroundings)?;
        if former.is_some() && configuration.anonymous != self.anonymous {
            return Err("anonymous: Forbidden: changed from initial configuration file".into());
        }
        Ok(self.assemble(&configuration.jwt, rules))
    }

    async fn is_ready(&self, value: &JwtAuthenticators) -> Result<(), ReloadError> {
        let found = tokio::time::timeout(READY_WITHIN, value.found()).await;
        found.map_err(|_| format!("issuers were not found in time: [{}]", value.problems().join(", ")).into())
    }
}

/// Ways to the servers of issuers; directly where the configuration names none. The client's surroundings are those of the
/// process.
struct Ways(EgressSelector, ClientCx);

impl jwt::Connector for Ways {
    fn connect(
        &self,
        origin: &str,
        trust: &Trust,
        egress: Egress,
        tasks: &TaskGroup,
    ) -> Result<Arc<dyn Transport>, ConfigError> {
        let config = ClientConfig { trust: trust.clone(), ..ClientConfig::for_server(origin) };
        let connector = match egress {
            Egress::Default => Direct::shared(),
            Egress::ControlPlane => Arc::clone(self.0.control_plane()),
            Egress::Cluster => Arc::clone(self.0.cluster()),
        };
        let cx = self.1.clone().in_group(tasks.clone()).through(connector);
        let transport: Arc<dyn Transport> = HttpsTransport::of(&config, &cx)?;
        Ok(transport)
    }
}

/// Asks whatever authenticators are in force.
struct Followed(Arc<Swappable<Builder>>);

#[async_trait]
impl TokenAuthenticator for Followed {
    async fn authenticate_token(&self, token: &str, audiences: &[String]) -> Result<Option<Identity>, AuthnError> {
        self.0.current().authenticate_token(token, audiences).await
    }
}

/// The authenticators that the configuration asks for, if it asks for any.
pub(super) fn source(dependencies: &Dependencies<'_>) -> Result<Option<Arc<dyn TokenAuthenticator>>, BuildError> {
    let config = &dependencies.config.authentication.jwt;
    if config.issuers.is_empty() && config.file.is_none() {
        return Ok(None);
    }
    let cx = ClientCx::of(dependencies.lifecycle, dependencies.lifecycle.tasks().clone());
    let key_metrics = dependencies.lifecycle.gates().enabled(gates::JWKS_METRICS);
    let builder = Builder {
        cx: JwtCx {
            connector: Arc::new(Ways(dependencies.egress.clone(), cx)),
            algorithms: config.algorithms.clone(),
            clock: Arc::clone(dependencies.lifecycle.clock()),
            rng: Arc::clone(dependencies.lifecycle.rng()),
            metrics: JwtMetrics::new(dependencies.metrics, server_id_hash(dependencies.lifecycle.gates()), key_metrics),
        },
        surroundings: Surroundings {
            disallowed_issuers: dependencies.config.service_accounts.issuers.clone(),
            egress: dependencies.lifecycle.gates().enabled(gates::ISSUER_EGRESS),
        },
        tasks: dependencies.lifecycle.tasks().clone(),
        anonymous: dependencies.config.authentication.anonymous_of_file.clone(),
    };
    let source: Arc<dyn TokenAuthenticator> = match &config.file {
        Some(path) => follow(path, builder, dependencies)?,
        None => {
            let configuration = api_types::apiserver_config_v1::AuthenticationConfiguration {
                jwt: config.issuers.clone(),
                anonymous: None,
            };
            let rules = jwt::compile(&configuration, &builder.surroundings);
            let rules = rules.map_err(|why| BuildError::Webhook { what: "authentication", why: why.to_string() })?;
            Arc::new(builder.assemble(&config.issuers, rules))
        }
    };
    Ok(Some(source))
}

fn follow(
    path: &Path,
    builder: Builder,
    dependencies: &Dependencies<'_>,
) -> Result<Arc<dyn TokenAuthenticator>, BuildError> {
    let reloads = ReloadMetrics::new(dependencies.metrics, FAMILIES, server_id_hash(dependencies.lifecycle.gates()));
    let tokens = Swappable::load(path, builder, reloads, Arc::clone(dependencies.lifecycle.clock()))
        .map_err(|source| BuildError::Configuration { path: path.to_owned(), source })?;
    tokens.follow(dependencies.lifecycle.tasks());
    Ok(Arc::new(Followed(tokens)))
}
