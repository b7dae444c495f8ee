//! Where the kubelet's events go.

use std::collections::BTreeMap;

use api_types::core_v1::ObjectReference;
use client::{EventRecorder, EventType};

use crate::interfaces::{Events, Level};

/// Events to the API server.
pub struct ApiEvents(pub EventRecorder);

impl Events for ApiEvents {
    fn event(&self, about: ObjectReference, level: Level, reason: &str, message: &str) {
        self.annotated(about, &BTreeMap::new(), level, reason, message);
    }

    fn annotated(
        &self,
        about: ObjectReference,
        annotations: &BTreeMap<String, String>,
        level: Level,
        reason: &str,
        message: &str,
    ) {
        let kind = match level {
            Level::Normal => EventType::Normal,
            Level::Warning => EventType::Warning,
        };
        tracing::info!(
            v = 1, object = %format_args!("{}/{}", about.namespace, about.name), kind = about.kind,
            r#type = kind.as_str(), reason, message, "Event occurred"
        );
        self.0.annotated_event(about, annotations.clone(), kind, reason, message);
    }
}

/// Events of a kubelet without an API server: the log only.
pub struct LoggedEvents;

impl Events for LoggedEvents {
    fn event(&self, about: ObjectReference, _: Level, reason: &str, message: &str) {
        tracing::info!(object = %format_args!("{}/{}", about.namespace, about.name), reason, message, "Event occurred");
    }
}

/// An event that a test looks at.
#[cfg(any(test, feature = "fake"))]
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    pub about: ObjectReference,
    pub level: Level,
    pub reason: String,
    pub message: String,
}

/// Keeps events for a test.
#[cfg(any(test, feature = "fake"))]
#[derive(Default)]
pub struct RecordedEvents(parking_lot::Mutex<Vec<Recorded>>);

#[cfg(any(test, feature = "fake"))]
impl RecordedEvents {
    /// Takes what was recorded so far.
    pub fn taken(&self) -> Vec<Recorded> {
        std::mem::take(&mut self.0.lock())
    }
}

#[cfg(any(test, feature = "fake"))]
impl Events for RecordedEvents {
    fn event(&self, about: ObjectReference, level: Level, reason: &str, message: &str) {
        let (reason, message) = (reason.to_owned(), message.to_owned());
        self.0.lock().push(Recorded { about, level, reason, message });
    }
}
