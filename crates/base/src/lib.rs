//! What every long-running part needs and that knows nothing of Kubernetes: time, randomness, back-off, tasks that
//! are drained at shutdown, and feature gates.

mod backoff;
mod clock;
mod gates;
mod rng;
mod tasks;

pub use backoff::Backoff;
pub use clock::{Clock, SharedClock, SystemClock, TokioClock};
pub use gates::{Gate, GateError, Gates, Stage};
pub use rng::{Rng, SharedRng};
pub use tasks::{Drained, TaskGroup};
pub use tokio_util::sync::CancellationToken;
