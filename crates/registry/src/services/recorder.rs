//! What is told of every address and port that is given out or refused, for whoever counts that.

use std::time::Duration;

use super::network::Cidr;

/// Who chose a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The client asked for it.
    Static,
    /// The server chose it.
    Dynamic,
}

impl Scope {
    /// Its name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

/// Is told of allocation. Dry runs are not told.
pub trait AllocationRecorder: Send + Sync + 'static {
    /// An address of a network was given out, or could not be, after this long.
    fn address(&self, network: Cidr, scope: Scope, succeeded: bool, took: Duration);
    /// A port was given out, or could not be.
    fn port(&self, scope: Scope, succeeded: bool);
    /// How many ports are taken now, and how many are free.
    fn ports(&self, taken: u32, free: u32);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoRecorder;

impl AllocationRecorder for NoRecorder {
    fn address(&self, _network: Cidr, _scope: Scope, _succeeded: bool, _took: Duration) {}
    fn port(&self, _scope: Scope, _succeeded: bool) {}
    fn ports(&self, _taken: u32, _free: u32) {}
}
