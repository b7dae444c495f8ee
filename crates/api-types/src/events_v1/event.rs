//! Event and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::{MicroTime, Time};

use crate::core_v1::{EventSource, ObjectReference};

/// Reports something that happened in the cluster. Kept for a limited time.
#[api(kind = "Event", resource = "events", namespaced)]
pub struct Event {
    /// Standard object metadata.
    #[field(1, always)]
    pub metadata: ObjectMeta,
    /// Time at which the event was first seen. Required.
    #[field(2, always, required)]
    pub event_time: MicroTime,
    /// Data on repeats. Absent for a single event.
    #[field(3)]
    pub series: Option<EventSeries>,
    /// Name of the reporting controller, such as kubernetes.io/kubelet.
    #[field(4)]
    pub reporting_controller: String,
    /// Instance of the controller, at most 128 characters.
    #[field(5)]
    pub reporting_instance: String,
    /// What was done or failed, machine-readable, at most 128 characters.
    #[field(6)]
    pub action: String,
    /// Why it was done, machine-readable, at most 128 characters.
    #[field(7)]
    pub reason: String,
    /// Object the event is about.
    #[field(8)]
    pub regarding: ObjectReference,
    /// Second object that takes part in the event.
    #[field(9)]
    pub related: Option<ObjectReference>,
    /// Text for people, at most 1024 characters.
    #[field(10)]
    pub note: String,
    /// Kind of event: Normal or Warning.
    #[field(11)]
    pub type_: String,
    /// Event source, kept for the older event API.
    #[field(12)]
    pub deprecated_source: EventSource,
    /// First time seen, kept for the older event API.
    #[field(13)]
    pub deprecated_first_timestamp: Time,
    /// Last time seen, kept for the older event API.
    #[field(14)]
    pub deprecated_last_timestamp: Time,
    /// Number of occurrences, kept for the older event API.
    #[field(15)]
    pub deprecated_count: i32,
}

/// Data on an event that repeats.
#[api]
pub struct EventSeries {
    /// Number of occurrences so far, at least 2.
    #[field(1, always, required)]
    pub count: i32,
    /// Time at which the event was last seen.
    #[field(2, always, required)]
    pub last_observed_time: MicroTime,
}
