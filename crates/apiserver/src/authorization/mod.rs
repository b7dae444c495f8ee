//! The authorizers that the configuration asks for, and what follows its file.

pub(crate) mod attributes;
mod build;
mod counted;
mod followed;
pub(crate) mod forbidden;
mod impersonations;
pub(crate) mod live_roles;
mod nodes;
mod roles;

use std::sync::Arc;

use authz::abac::Abac;
use authz::node::{Graph, NodeAuthorizer};
use authz::rbac::Rbac;
use authz::webhook::WebhookMetrics;
use authz::{Authorizer, configuration};
use component_base::lifecycle::Lifecycle;
use component_base::metrics::{Histograms, Metrics};
use egress::EgressSelector;
use registry::Registry;

pub(crate) use impersonations::Impersonations;
pub(crate) use roles::MirroredRoles;

use crate::build_error::BuildError;
use crate::config::AuthorizationConfig;
use crate::metrics::decisions;
use build::{Builder, BuiltIn};

/// RBAC over what the server has seen of roles and bindings.
pub(crate) type RbacAuthorizer = Rbac<MirroredRoles>;

/// What authorizers are made with.
pub(crate) struct Dependencies<'a> {
    pub(crate) config: &'a AuthorizationConfig,
    pub(crate) rbac: &'a Arc<RbacAuthorizer>,
    pub(crate) registry: &'a Registry,
    pub(crate) egress: &'a EgressSelector,
    pub(crate) lifecycle: &'a Lifecycle,
}

/// The chain of authorizers. What they look at is followed for as long as the server's tasks live.
///
/// # Errors
/// When a file cannot be used.
pub(crate) fn build(dependencies: &Dependencies<'_>, metrics: &Metrics) -> Result<Arc<dyn Authorizer>, BuildError> {
    let builder = Builder {
        built_in: built_in(dependencies, nodes::durations(metrics))?,
        webhooks: WebhookMetrics::new(metrics),
        decisions: decisions(metrics),
        egress: dependencies.egress.clone(),
        lifecycle: dependencies.lifecycle.clone(),
    };
    match &dependencies.config.file {
        None => {
            let made = builder.assemble(&dependencies.config.authorizers);
            Ok(Arc::new(made.map_err(|why| BuildError::Webhook { what: "authorization", why })?))
        }
        Some(path) => followed::start(path, builder, metrics, dependencies.lifecycle),
    }
}

/// The authorizers that there is one of, where the configuration names them.
fn built_in(dependencies: &Dependencies<'_>, of_links: Histograms) -> Result<BuiltIn, BuildError> {
    let Dependencies { config, rbac, registry, lifecycle, .. } = dependencies;
    let named = |wanted: &str| config.authorizers.authorizers.iter().any(|own| own.type_ == wanted);
    let node = named("Node").then(|| {
        let graph = Arc::new(Graph::default());
        nodes::keep(&graph, registry, lifecycle, of_links);
        Arc::new(NodeAuthorizer::new(graph, lifecycle.gates())) as Arc<dyn Authorizer>
    });
    let abac = match &config.policy_file {
        Some(path) if named("ABAC") => Some(Arc::new(Abac::load(path)?) as Arc<dyn Authorizer>),
        _ => None,
    };
    let types = configuration::TYPES.into_iter().filter(|own| *own != configuration::WEBHOOK && named(own));
    Ok(BuiltIn { node, abac, rbac: named("RBAC").then(|| Arc::clone(rbac) as _), required: types.collect() })
}
