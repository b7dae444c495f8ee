//! events.k8s.io/v1: one file per kind, with what it is made of.

mod event;

pub use event::{Event, EventSeries};

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.events.v1";
/// The API group.
pub const GROUP: &str = "events.k8s.io";
/// The version.
pub const VERSION: &str = "v1";
