//! What plugs into the server beside the resources of the registry: discovery, OpenAPI, custom resources, reviews,
//! tokens, streaming to nodes, and the work after the start.

use std::collections::BTreeSet;
use std::sync::Arc;

use component_base::Gates;
use component_base::health::Health;
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;

use crate::aggregation::state::Aggregation;
use crate::build_error::BuildError;
use crate::config::{BuiltInResource, ServerConfig};
use crate::custom_resources::{self, ServedKinds};
use crate::hooks::PostStartHook;
use crate::routes::Routes;
use crate::{aggregation, bootstrap, component_statuses, discovery, node_proxy, oidc, openapi, reviews, tokens};

/// What is served: the kinds of this server, and the versions that others answer for.
///
/// # Errors
/// When the certificate for other servers cannot be read.
pub(crate) fn served(
    config: &ServerConfig,
    disabled: &BTreeSet<BuiltInResource>,
    lifecycle: &Lifecycle,
    metrics: &Metrics,
    health: &Health,
) -> Result<(Arc<ServedKinds>, Arc<Aggregation>), BuildError> {
    let served = Arc::new(ServedKinds::without(disabled));
    let others = Arc::new(Aggregation::new(&config.aggregation, &served, lifecycle, metrics)?);
    others.add_check(health)?;
    Ok((served, others))
}

/// Adds every place and every hook.
pub(crate) fn install(
    routes: &mut Routes,
    hooks: &mut Vec<Arc<dyn PostStartHook>>,
    served: &Arc<ServedKinds>,
    others: &Arc<Aggregation>,
    gates: &Gates,
) {
    discovery::install(routes, served, others);
    openapi::install(routes, served, others, gates);
    reviews::install(routes);
    tokens::install(routes);
    component_statuses::install(routes);
    oidc::install(routes);
    node_proxy::install(routes);
    custom_resources::install(hooks, served);
    bootstrap::install(hooks, gates);
    aggregation::install(routes, hooks, others);
}
