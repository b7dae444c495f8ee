//! The audit log of an API server (`audit.k8s.io/v1`): which requests are told of, as a policy says; what is told, put together
//! by everybody on a request's road; and where it goes. Nothing here knows a request or a transport:
//! `docs/adr/0009-audit-context.md`.

mod backend;
mod context;
mod event;
mod finished;
mod log_file;
mod log_sink;
mod metrics;
mod objects;
mod older_files;
mod policy;
mod sink;
#[cfg(test)]
mod tests;
mod throttle;

pub use backend::{Backend, Batching, Delivery, Mode, Truncation};
pub use context::{Auditor, Context, NotStored};
pub use event::{Origin, Stage, Target};
pub use finished::{Finished, Format};
pub use log_file::LogFile;
pub use log_sink::LogSink;
pub use metrics::AuditMetrics;
pub use objects::MAX_OBJECT_BYTES;
pub use older_files::Rotation;
pub use policy::{Asked, Policy, PolicyError};
pub use sink::{Sink, SinkError, event_list};
pub use throttle::Rate;
