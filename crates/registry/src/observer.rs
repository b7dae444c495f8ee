//! What is told of writes to whoever counts it.

use std::time::Duration;

use api_machinery::object::Object;
use kinds::info::ResourceInfo;
use kinds::rules::Endpoint;

/// What came of looking whether an update changes nothing but the times of field ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Nothing else changes: the times stay, too.
    Equal,
    /// The object need not be looked at: the owners of fields change, or not even the times.
    NotNeeded,
    /// The object changes.
    ObjectsDiffer,
}

impl Comparison {
    /// Its name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal_objects",
            Self::NotNeeded => "unequal_objects_fast",
            Self::ObjectsDiffer => "unequal_objects_slow",
        }
    }
}

/// Is told of writes. Dry runs are not told.
pub trait WriteObserver: Send + Sync + 'static {
    /// An object was replaced by way of an endpoint.
    fn updated(&self, _resource: &ResourceInfo<'_>, _endpoint: Endpoint, _old: &dyn Object, _new: &dyn Object) {}
    /// The times of field ownership were looked at for so long.
    fn compared(&self, _outcome: Comparison, _took: Duration) {}
    /// No further object joins a lease that so many have.
    fn lease_full(&self, _objects: u64) {}
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoObserver;

impl WriteObserver for NoObserver {}
