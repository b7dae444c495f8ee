//! Where traces go: one type for the configurations of all components, as upstream's `component-base/tracing/api/v1`.

mod configuration;

pub use configuration::TracingConfiguration;

pub(crate) const PACKAGE: &str = "io.k8s.component-base.tracing.api.v1";
