//! The reconciler framework: a controller says what it watches and how to bring one object in order; queues, retries,
//! exclusion per key, start order, shutdown, metrics and health are here.
//!
//! A controller file has no loop, no spawn and no sleep. What a controller decides should be a pure function of what
//! it observed; see the controllers themselves for the pattern.

mod batch;
mod build;
mod claim;
mod cx;
mod debug_pages;
mod descriptor;
mod index;
mod metrics;
pub mod process;
mod refused;
mod run;
mod select;
mod set;
#[cfg(test)]
mod tests;

pub use batch::{Batched, in_batches};
pub use build::{Build, BuildError, Queue, Watching, Workers};
pub use claim::{Claim, adopt_patch, claim, controller_of, controller_ref, is_controlled_by, release_patch};
pub use cx::{Controller, Cx, Next, ReconcileError, Retry};
pub use debug_pages::{DebugPage, DebugPages};
pub use descriptor::Descriptor;
pub use index::{CONTROLLER_UID, NODE_NAME, controller_uid, owned_and_orphans};
pub use metrics::QueueMetricFamilies;
pub use select::{Selection, UnknownControllers};
pub use set::{ClientFor, ControllerSet, Environment, Stopped};
