//! Event and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::{MicroTime, Time};

use super::ObjectReference;

/// A report of something that happened in the cluster.
#[api(kind = "Event", resource = "events", namespaced)]
pub struct Event {
    /// Standard metadata such as name, labels and annotations.
    #[field(1, always, required)]
    pub metadata: ObjectMeta,
    /// Object that the event is about.
    #[field(2, always, required)]
    pub involved_object: ObjectReference,
    /// Short CamelCase reason for the event.
    #[field(3)]
    pub reason: String,
    /// Human-readable description of what happened.
    #[field(4)]
    pub message: String,
    /// Component and host that report the event.
    #[field(5)]
    pub source: EventSource,
    /// When the event was first recorded.
    #[field(6)]
    pub first_timestamp: Time,
    /// When the event was last recorded.
    #[field(7)]
    pub last_timestamp: Time,
    /// How often the event occurred.
    #[field(8)]
    pub count: i32,
    /// Event type: Normal or Warning.
    #[field(9)]
    pub type_: String,
    /// When the event was first observed.
    #[field(10)]
    pub event_time: MicroTime,
    /// Data about the series; unset for a single event.
    #[field(11)]
    pub series: Option<EventSeries>,
    /// Action taken or failed regarding the object.
    #[field(12)]
    pub action: String,
    /// Second object involved in the event.
    #[field(13)]
    pub related: Option<ObjectReference>,
    /// Name of the controller that reports the event.
    #[field(14, always)]
    pub reporting_component: String,
    /// ID of the reporting controller instance.
    #[field(15, always)]
    pub reporting_instance: String,
}

/// The origin of an event.
#[api]
pub struct EventSource {
    /// Component that produced the event.
    #[field(1)]
    pub component: String,
    /// Node on which the event was produced.
    #[field(2)]
    pub host: String,
}

/// Data about a series of equal events.
#[api]
pub struct EventSeries {
    /// Occurrences in the series up to the last heartbeat.
    #[field(1)]
    pub count: i32,
    /// When the event was last observed.
    #[field(2)]
    pub last_observed_time: MicroTime,
}
