//! DeploymentRollback, which was posted to go back. It had the same form in extensions/v1beta1.

use std::collections::BTreeMap;

use api_machinery::api;

/// Asks for an earlier revision of a deployment.
#[api(kind = "DeploymentRollback")]
pub struct DeploymentRollback {
    /// Name of the deployment.
    #[field(1, always, required)]
    pub name: String,
    /// Annotations to set on the deployment.
    #[field(2)]
    pub updated_annotations: BTreeMap<String, String>,
    /// The revision.
    #[field(3, always, required)]
    pub rollback_to: RollbackConfig,
}

/// An earlier revision.
#[api]
pub struct RollbackConfig {
    /// Its number; 0 for the one before the last.
    #[field(1)]
    pub revision: i64,
}
