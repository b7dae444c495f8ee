//! Something to be told about an object, in an event.

use api_machinery::object::Object;
use client::EventType;
use controller::Cx;

/// For information.
pub(crate) fn normal(cx: &Cx, about: &dyn Object, reason: &str, message: impl Into<String>) {
    cx.events.event(about, EventType::Normal, reason, message);
}

/// Something may be wrong.
pub(crate) fn warning(cx: &Cx, about: &dyn Object, reason: &str, message: impl Into<String>) {
    cx.events.event(about, EventType::Warning, reason, message);
}
