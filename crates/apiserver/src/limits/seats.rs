//! Whether there is room for a request. Who has none yet may wait for it.

use std::any::Any;
use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::request::{Query, RequestInfo};

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// A request's place, which is free again when this is dropped.
pub(crate) struct Seat {
    _guard: Box<dyn Any + Send>,
    stream: Option<Box<dyn Any + Send>>,
}

impl Seat {
    /// Held by a guard.
    pub(crate) fn held_by(guard: impl Any + Send) -> Self {
        Self { _guard: Box::new(guard), stream: None }
    }

    /// With something that lasts for as long as the answer is being sent.
    pub(crate) fn with_stream_guard(mut self, guard: Option<impl Any + Send>) -> Self {
        self.stream = guard.map(|guard| Box::new(guard) as _);
        self
    }

    /// What lasts for as long as the answer is being sent.
    pub(crate) fn take_stream_guard(&mut self) -> Option<Box<dyn Any + Send>> {
        self.stream.take()
    }
}

/// There is no room, and waiting is no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full {
    /// For how many seconds the client is to stay away.
    pub(crate) retry_after: u32,
}

/// Where a request belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) schema_uid: String,
    pub(crate) level_uid: String,
}

impl Classified {
    /// Tells the client.
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        for (name, uid) in [(SCHEMA_UID, &self.schema_uid), (LEVEL_UID, &self.level_uid)] {
            if let Ok(value) = HeaderValue::from_str(uid) {
                headers.insert(name, value);
            }
        }
    }
}

/// What somebody wants a seat for.
pub(crate) struct Wanted<'a> {
    pub(crate) user: &'a UserInfo,
    pub(crate) info: &'a Arc<RequestInfo>,
    pub(crate) query: &'a Query,
    pub(crate) deadline: Option<Instant>,
}

/// What became of that.
pub(crate) struct Admitted {
    /// Nothing where requests are not told apart.
    pub(crate) classified: Option<Classified>,
    pub(crate) seat: Result<Seat, Full>,
}

/// Gives seats to requests.
#[async_trait]
pub(crate) trait Seats: Send + Sync {
    /// A seat, once there is one; whoever stops waiting takes none.
    async fn take(&self, wanted: &Wanted<'_>) -> Admitted;
}
