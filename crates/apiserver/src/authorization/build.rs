//! From a configuration to a chain.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::GoDuration;
use api_types::apiserver_config_v1::{
    AuthorizationConfiguration, AuthorizerConfiguration, WebhookConfiguration, WebhookConnectionInfo,
};
use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use authz::configuration::IN_CLUSTER;
use authz::webhook::{self, FailurePolicy, ReviewVersion, Settings, Ttls, WebhookAuthorizer, WebhookMetrics};
use authz::{AlwaysAllow, AlwaysDeny, Attributes, Authorizer, Chain, Outcome, RuleSet};
use base::TaskGroup;
use client::{ClientConfig, ClientCx, Webhook, WebhookRetry};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Counters;
use egress::EgressSelector;

use super::counted::Counted;

/// The first wait between two tries of a question, as upstream.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The authorizers that there is one of. They are made at the start, and stay whatever a file says later.
pub(super) struct BuiltIn {
    pub(super) node: Option<Arc<dyn Authorizer>>,
    pub(super) abac: Option<Arc<dyn Authorizer>>,
    pub(super) rbac: Option<Arc<dyn Authorizer>>,
    /// The types that were named at the start, webhooks aside.
    pub(super) required: Vec<&'static str>,
}

/// What chains are made with.
pub(super) struct Builder {
    pub(super) built_in: BuiltIn,
    pub(super) webhooks: WebhookMetrics,
    pub(super) decisions: Counters,
    pub(super) egress: EgressSelector,
    pub(super) lifecycle: Lifecycle,
}

/// A chain, and the connections of its webhooks, which end with it: with the last request that it decides about.
pub(super) struct Assembled {
    chain: Chain,
    tasks: TaskGroup,
}

impl Drop for Assembled {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

#[async_trait]
impl Authorizer for Assembled {
    async fn authorize(&self, attributes: &Attributes) -> Outcome {
        self.chain.authorize(attributes).await
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> RuleSet {
        self.chain.rules_for(user, namespace)
    }
}

impl Builder {
    /// The chain of a configuration that was checked.
    ///
    /// # Errors
    /// When a webhook's connection cannot be made of what its file says, or an authorizer was not there at the start.
    pub(super) fn assemble(&self, configuration: &AuthorizationConfiguration) -> Result<Assembled, String> {
        let tasks = self.lifecycle.tasks().child("authorization-webhooks");
        let authorizer = |own: &AuthorizerConfiguration| -> Result<Arc<dyn Authorizer>, String> {
            let inner = self.authorizer(own, &tasks)?;
            Ok(Arc::new(Counted::new(inner, &own.type_, &own.name, &self.decisions)))
        };
        let authorizers: Result<_, String> = configuration.authorizers.iter().map(authorizer).collect();
        Ok(Assembled { chain: Chain::new(authorizers?), tasks })
    }

    fn authorizer(&self, own: &AuthorizerConfiguration, tasks: &TaskGroup) -> Result<Arc<dyn Authorizer>, String> {
        let BuiltIn { node, abac, rbac, .. } = &self.built_in;
        let from_start = match own.type_.as_str() {
            "AlwaysAllow" => return Ok(Arc::new(AlwaysAllow)),
            "AlwaysDeny" => return Ok(Arc::new(AlwaysDeny)),
            "Node" => node,
            "ABAC" => abac,
            "RBAC" => rbac,
            _ => return self.webhook(own, tasks),
        };
        from_start.clone().ok_or_else(|| {
            let type_ = &own.type_;
            format!("authorizer type {type_} is not allowed if it was not enabled at initial server startup")
        })
    }

    fn webhook(&self, own: &AuthorizerConfiguration, tasks: &TaskGroup) -> Result<Arc<dyn Authorizer>, String> {
        let Some(webhook) = &own.webhook else { return Err(format!("unknown authorization mode {}", own.type_)) };
        let lifecycle = &self.lifecycle;
        let cx = ClientCx::of(lifecycle, tasks.clone()).through(Arc::clone(self.egress.control_plane()));
        let config = connection(&webhook.connection_info)?;
        let timeout = positive(webhook.timeout);
        let service = Webhook::new(config, Some(timeout), FIRST_DELAY, WebhookRetry::Passing, cx);
        let service = service.map_err(|error| error.to_string())?;
        let settings = settings(&own.name, webhook)?;
        let clock = Arc::clone(lifecycle.clock());
        Ok(Arc::new(WebhookAuthorizer::new(service, settings, self.webhooks.clone(), clock)))
    }
}

fn connection(info: &WebhookConnectionInfo) -> Result<ClientConfig, String> {
    let config = if info.type_ == IN_CLUSTER {
        ClientConfig::in_cluster().map(|config| config.with_component("kube-apiserver"))
    } else {
        Webhook::config(Path::new(info.kube_config_file.as_deref().unwrap_or_default()), "kube-apiserver")
    };
    config.map_err(|error| error.to_string())
}

fn settings(name: &str, webhook: &WebhookConfiguration) -> Result<Settings, String> {
    let version = &webhook.subject_access_review_version;
    let remembered = |asked: Option<bool>, ttl| if asked == Some(false) { Duration::ZERO } else { positive(ttl) };
    let conditions = webhook.match_conditions.iter().map(|own| webhook::compile(&own.expression));
    Ok(Settings {
        name: name.to_owned(),
        version: ReviewVersion::find(version).ok_or_else(|| {
            format!("unsupported webhook authorizer version {version:?}, supported versions are \"v1\", \"v1beta1\"")
        })?,
        ttls: Ttls {
            authorized: remembered(webhook.cache_authorized_requests, webhook.authorized_ttl),
            unauthorized: remembered(webhook.cache_unauthorized_requests, webhook.unauthorized_ttl),
        },
        failure_policy: if webhook.failure_policy == "Deny" { FailurePolicy::Deny } else { FailurePolicy::NoOpinion },
        conditions: conditions.collect::<Result<_, _>>()?,
    })
}

/// A duration whose negative values mean none.
fn positive(duration: GoDuration) -> Duration {
    Duration::from_nanos(u64::try_from(duration.nanos()).unwrap_or(0))
}
