//! Something to be told about an object, in an event.

use api_machinery::object::Object;
use client::EventType;
use controller::Cx;

/// An event that is not about anything yet, so that plans can hold it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    kind: EventType,
    reason: &'static str,
    message: String,
}

impl Notice {
    /// For information.
    pub(super) fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: EventType::Normal, reason, message: message.into() }
    }

    /// Something may be wrong.
    pub(super) fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind: EventType::Warning, reason, message: message.into() }
    }

    /// The text.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Tells it about an object.
    pub(super) fn tell(&self, cx: &Cx, about: &dyn Object) {
        cx.events.event(about, self.kind, self.reason, self.message.clone());
    }
}
