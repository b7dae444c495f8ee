//! The audit log of an API server (`audit.k8s.io/v1`): which requests are told of, as a policy says; what is told, put together
//! by everybody on a request's road; and where it goes. Nothing here knows a request: `docs/adr/0009-audit-context.md`.

mod context;
mod delivery;
mod event;
mod log_file;
mod metrics;
mod policy;
#[cfg(test)]
mod tests;

pub use context::{Auditor, Context, NotStored};
pub use delivery::{Delivery, Mode};
pub use event::{Origin, Stage, Target};
pub use log_file::{LogFile, Rotation};
pub use metrics::AuditMetrics;
pub use policy::{Asked, Policy, PolicyError};
