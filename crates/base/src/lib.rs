//! What every long-running part needs and that knows nothing of Kubernetes: time, randomness, back-off, what is remembered
//! for a while and found by a hash, tasks that are drained at shutdown, who opens connections, writes that many requests
//! share, on whose behalf a task is at work, how memory is let go of, and bytes as text.

mod backoff;
mod by_hash;
mod clock;
mod connect;
mod expiring;
mod gathered;
mod hex;
mod rng;
mod tasks;
mod tidy;
pub mod trace;

pub use backoff::Backoff;
pub use by_hash::ByHash;
pub use clock::{Clock, SharedClock, StandingClock, SystemClock, TokioClock};
pub use connect::{Connecting, Connection, Connector, Direct, SharedConnector, Stream, host_and_port};
pub use expiring::Expiring;
pub use gathered::Gathered;
pub use hex::hex;
pub use rng::{Rng, SharedRng};
pub use tasks::{Drained, TaskGroup, ready_tasks_first};
pub use tidy::Tidy;
pub use tokio_util::sync::CancellationToken;
