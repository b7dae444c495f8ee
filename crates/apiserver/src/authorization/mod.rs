//! The authorizers that the configuration asks for.

mod roles;

use std::sync::Arc;

use authz::rbac::Rbac;
use authz::{AlwaysAllow, AlwaysDeny, Authorizer, Chain};

pub(crate) use roles::MirroredRoles;

use crate::config::{AuthorizationConfig, AuthorizationMode};

/// RBAC over what the server has seen of roles and bindings.
pub(crate) type RbacAuthorizer = Rbac<MirroredRoles>;

/// The chain of authorizers.
pub(crate) fn build(config: &AuthorizationConfig, rbac: &Arc<RbacAuthorizer>) -> Chain {
    let authorizer = |mode: &AuthorizationMode| -> Arc<dyn Authorizer> {
        match mode {
            AuthorizationMode::AlwaysAllow => Arc::new(AlwaysAllow),
            AuthorizationMode::AlwaysDeny => Arc::new(AlwaysDeny),
            AuthorizationMode::Node => Arc::new(Chain::default()),
            AuthorizationMode::Rbac => Arc::clone(rbac) as _,
        }
    };
    Chain::new(config.modes.iter().map(authorizer).collect())
}
