//! policy/v1: one file per kind, with what it is made of.

pub mod constants;
mod eviction;
mod pod_disruption_budget;

pub use eviction::Eviction;
pub use pod_disruption_budget::{PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.policy.v1";
/// The API group.
pub const GROUP: &str = "policy";
/// The version.
pub const VERSION: &str = "v1";
