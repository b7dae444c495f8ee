//! The authorizers that the configuration asks for.

mod counted;
mod nodes;
mod roles;

use std::sync::Arc;

use authz::node::{Graph, NodeAuthorizer};
use authz::rbac::Rbac;
use authz::{AlwaysAllow, AlwaysDeny, Authorizer, Chain};
use base::{SharedClock, TaskGroup};
use component_base::metrics::Counters;
use registry::Registry;

pub(crate) use roles::MirroredRoles;

use crate::config::{AuthorizationConfig, AuthorizationMode};
use counted::Counted;

/// RBAC over what the server has seen of roles and bindings.
pub(crate) type RbacAuthorizer = Rbac<MirroredRoles>;

/// The chain of authorizers. What they look at is followed for as long as the tasks live.
pub(crate) fn build(
    config: &AuthorizationConfig,
    rbac: &Arc<RbacAuthorizer>,
    registry: &Registry,
    clock: &SharedClock,
    tasks: &TaskGroup,
    decisions: &Counters,
) -> Chain {
    let authorizer = |mode: &AuthorizationMode| -> Arc<dyn Authorizer> {
        let (kind, authorizer): (_, Arc<dyn Authorizer>) = match mode {
            AuthorizationMode::AlwaysAllow => ("AlwaysAllow", Arc::new(AlwaysAllow)),
            AuthorizationMode::AlwaysDeny => ("AlwaysDeny", Arc::new(AlwaysDeny)),
            AuthorizationMode::Node => {
                let graph = Arc::new(Graph::default());
                nodes::keep(&graph, registry, clock, tasks);
                ("Node", Arc::new(NodeAuthorizer::new(graph)))
            }
            AuthorizationMode::Rbac => ("RBAC", Arc::clone(rbac) as _),
        };
        Arc::new(Counted::new(authorizer, kind, decisions))
    };
    Chain::new(config.modes.iter().map(authorizer).collect())
}
