//! flowcontrol.apiserver.k8s.io/v1beta1, and v1beta2: what had another form there than it has in `flowcontrol_v1`. Nobody
//! serves them any more; a store may hold them.

mod priority_level_configuration;

pub use priority_level_configuration::{
    LimitedPriorityLevelConfiguration, PriorityLevelConfiguration, PriorityLevelConfigurationSpec,
};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.flowcontrol.v1beta1";
/// The API group.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
