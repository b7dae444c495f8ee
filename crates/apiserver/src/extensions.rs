//! What plugs into the server beside the resources of the registry: discovery, OpenAPI, custom resources, reviews,
//! tokens, streaming to nodes, and the work after the start.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::BuiltInResource;
use crate::custom_resources::{self, ServedKinds};
use crate::hooks::PostStartHook;
use crate::routes::Routes;
use crate::{bootstrap, component_statuses, discovery, node_proxy, oidc, openapi, reviews, tokens};

/// Adds every place and every hook.
pub(crate) fn install(
    routes: &mut Routes,
    hooks: &mut Vec<Arc<dyn PostStartHook>>,
    disabled: &BTreeSet<BuiltInResource>,
) {
    let served = Arc::new(ServedKinds::without(disabled));
    discovery::install(routes, &served);
    openapi::install(routes, &served);
    reviews::install(routes);
    tokens::install(routes);
    component_statuses::install(routes);
    oidc::install(routes);
    node_proxy::install(routes);
    custom_resources::install(hooks, &served);
    bootstrap::install(hooks);
}
