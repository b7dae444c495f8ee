//! apps/v1beta1: what had another form there than it has in `apps_v1`. Nobody serves it any more; a store may hold it.

mod deployment;
mod deployment_rollback;
mod scale;

pub use deployment::{Deployment, DeploymentSpec};
pub use deployment_rollback::{DeploymentRollback, RollbackConfig};
pub use scale::{Scale, ScaleStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.apps.v1beta1";
/// The API group.
pub const GROUP: &str = "apps";
/// The version.
pub const VERSION: &str = "v1beta1";
