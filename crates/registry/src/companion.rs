//! What a few kinds keep beside their objects (addresses, ports) and add to the generic engine.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_machinery::object::{KindType, Object};
use api_machinery::status::ApiError;
use async_trait::async_trait;

use crate::context::{Hooks, RequestCx};
use crate::delete::Deletion;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::services::Reservation;
use crate::{namespaces, services};

/// A kind that has a companion, and how that is made of what the registry has.
pub(crate) struct Entry {
    pub(crate) kind: KindType,
    pub(crate) build: fn(&Registry) -> Arc<dyn Companion>,
}

/// Every kind that has one.
static ALL: &[Entry] = &[services::COMPANION, namespaces::COMPANION];

/// The companion of a kind.
pub(crate) fn of(registry: &Registry, group: &str, resource: &str) -> Arc<dyn Companion> {
    let entry = ALL.iter().find(|entry| (entry.kind.group, entry.kind.resource) == (group, resource));
    entry.map_or_else(|| Arc::new(NoCompanion) as Arc<dyn Companion>, |entry| (entry.build)(registry))
}

/// How the write ended that a reservation was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// It is in the store.
    Written,
    /// It is not.
    Refused,
    /// The store did not say. Nothing may be given back, or two objects might end up with the same: repair finds out.
    Unknown,
}

impl WriteResult {
    pub(crate) fn of_error(error: &ApiError) -> Self {
        if error.code >= 500 { Self::Unknown } else { Self::Refused }
    }
}

/// The part of a kind's storage that is not the object itself.
#[async_trait]
pub(crate) trait Companion: Send + Sync {
    /// Before an object is prepared and checked for creation: takes what it needs and writes that into it.
    async fn begin_create(&self, _cx: &RequestCx, _object: &mut dyn Object) -> Result<Reservation, ApiError> {
        Ok(Reservation::default())
    }

    /// The same for an update.
    async fn begin_update(
        &self,
        _cx: &RequestCx,
        _object: &mut dyn Object,
        _live: &dyn Object,
    ) -> Result<Reservation, ApiError> {
        Ok(Reservation::default())
    }

    /// After the write: keeps what was taken and gives back what is no longer used, or the other way round.
    async fn finish(&self, _reservation: Reservation, _result: WriteResult) {}

    /// Begins a deletion in its own way; nothing where the ordinary deletion goes on from here.
    async fn begin_delete(
        &self,
        _resource: &Resource,
        _cx: &RequestCx,
        _relative: &Arc<str>,
        _options: &DeleteOptions,
        _hooks: &Hooks<'_>,
    ) -> Result<Option<Deletion>, ApiError> {
        Ok(None)
    }

    /// After an object has gone.
    async fn deleted(&self, _object: &dyn Object) {}

    /// Whether an object without finalizers may go: a namespace has finalizers of its own.
    fn may_go(&self, _object: &dyn Object) -> bool {
        true
    }
}

/// Most kinds keep nothing beside their objects.
struct NoCompanion;

impl Companion for NoCompanion {}
