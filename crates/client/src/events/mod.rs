//! Events: what people read in `kubectl describe`. Best effort by design: bounded, dropped under pressure, never in
//! the way of the work they speak of.
//!
//! Two APIs: core/v1 with counting, merging and a spam filter for most components, and events.k8s.io/v1 with series
//! for the scheduler.

mod correlator;
mod deliveries;
mod queue;
mod recorder;
mod series;
#[cfg(test)]
mod tests;

use api_machinery::object::Object;
use api_types::core_v1::ObjectReference;

pub use recorder::EventRecorder;
pub use series::{SeriesEvent, SeriesRecorder};

/// Whether an event is good news or bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// For information.
    Normal,
    /// Something may be wrong.
    Warning,
}

impl EventType {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// A reference to an object, as events carry it.
#[must_use]
pub fn object_reference(object: &dyn Object) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        kind: object.kind().to_owned(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        api_version: object.api_version(),
        resource_version: meta.resource_version.clone(),
        field_path: String::new(),
    }
}

/// What the texts of a reference take in memory.
fn reference_bytes(about: &ObjectReference) -> usize {
    let ObjectReference { kind, namespace, name, uid, api_version, resource_version, field_path } = about;
    [kind, namespace, name, uid, api_version, resource_version, field_path].map(String::len).into_iter().sum()
}

/// The namespace of an object's events.
fn event_namespace(about: &ObjectReference) -> String {
    if about.namespace.is_empty() { "default".to_owned() } else { about.namespace.clone() }
}

/// `{object}.{nanoseconds in hex}`, or a random name where that would not be a valid one.
fn event_name(about: &ObjectReference, nanos: u128, rng: &base::Rng) -> String {
    let name = format!("{}.{nanos:x}", about.name);
    if api_machinery::names::dns1123_subdomain(&name).is_empty() { name } else { rng.uuid() }
}
