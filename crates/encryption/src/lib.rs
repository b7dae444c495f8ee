//! Encryption at rest, as upstream's `--encryption-provider-config` has it: bytes in the store are upstream's, so that
//! a server of either make reads what the other wrote.
//!
//! A file is read and checked ([`config`]), becomes rules (which resource has which providers), and the rules become
//! transformers for the store. [`Live`] follows the file while the server runs.

mod ciphers;
pub mod config;
mod live;
mod metrics;
mod providers;
mod rules;
#[cfg(test)]
mod tests;
mod validate;

pub use live::Live;
pub use metrics::EncryptionMetrics;
