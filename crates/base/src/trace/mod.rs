//! Distributed traces: spans, and the W3C trace context that requests carry from one process to the next.
//!
//! What a task does on behalf of a traced request runs in [`Scope::run`], and whatever it calls asks [`child`] for a span and
//! [`inject`] for the headers of its own requests. Where nothing is traced, both cost one look at a task-local and nothing
//! else. Who records spans is not known here. Specification: <https://www.w3.org/TR/trace-context/>.

mod context;
mod scope;
mod span;

pub use context::{SpanContext, TRACEPARENT, TRACESTATE};
pub use scope::{Entered, Scope, child, child_of_kind, current, inject, within};
pub use span::{AttributeValue, Kind, Record, Recorder, Span};
