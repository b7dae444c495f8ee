//! The way of spans to a collector over OTLP: which traces are recorded, batches, a bounded queue.
//!
//! What spans are, and how they follow a request, is [`base::trace`]. Nothing waits for a collector: spans that find the
//! queue full are dropped and counted. Specification: <https://opentelemetry.io/docs/specs/otlp/>.

#[cfg(feature = "collector")]
pub mod collector;
mod endpoint;
mod exporter;
mod messages;
mod settings;
#[cfg(test)]
mod tests;
mod tracer;

pub use endpoint::EndpointError;
pub use settings::{DEFAULT_ENDPOINT, TracingSettings};
pub use tracer::{Parent, Resource, Tracer, traced};
