//! metrics.k8s.io/v1beta1: what nodes and pods use right now. Served by an aggregated server, not by the API server.

mod node_metrics;
mod pod_metrics;

pub use node_metrics::NodeMetrics;
pub use pod_metrics::{ContainerMetrics, PodMetrics};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.metrics.pkg.apis.metrics.v1beta1";
/// The API group.
pub const GROUP: &str = "metrics.k8s.io";
/// The version.
pub const VERSION: &str = "v1beta1";
