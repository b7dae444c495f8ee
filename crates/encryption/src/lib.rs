//! Encryption at rest, as upstream's `--encryption-provider-config` has it: bytes in the store are upstream's, so that
//! a server of either make reads what the other wrote.
//!
//! A file is read and checked ([`config`]), becomes rules (which resource has which providers), and the rules become
//! transformers for the store. [`Live`] follows the file while the server runs.

mod ciphers;
pub mod config;
mod kms;
mod live;
mod metrics;
mod providers;
mod rules;
#[cfg(test)]
mod tests;
mod validate;

use base::{SharedClock, SharedRng, TaskGroup};

pub use live::Live;
pub use metrics::EncryptionMetrics;

/// What providers are given by the server.
#[derive(Clone)]
pub struct Surroundings {
    /// The time.
    pub clock: SharedClock,
    /// For the names of calls; keys are the system's.
    pub rng: SharedRng,
    /// Where what follows plug-ins and the file runs.
    pub tasks: TaskGroup,
    /// What is counted.
    pub metrics: EncryptionMetrics,
    /// Whether plug-ins of the deprecated version may be used (gate `KMSv1`).
    pub kms_v1: bool,
}
