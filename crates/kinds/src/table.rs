//! What the cells of printed tables have in common.

use std::collections::BTreeMap;

use api_machinery::human_duration::age_text;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::Container;
use component_helpers::selectors::selector_of;

/// The age of an object.
pub(crate) fn age(meta: &ObjectMeta, now: Time) -> Value {
    since(meta.creation_timestamp, now).into()
}

/// How long ago a moment was.
pub(crate) fn since(then: Time, now: Time) -> String {
    if then.is_zero() { "<unknown>".into() } else { age_text(now.seconds_since(then)) }
}

/// The names of containers.
pub(crate) fn names(containers: &[Container]) -> Value {
    joined(containers.iter().map(|container| container.name.as_str()), ",").into()
}

/// The images of containers.
pub(crate) fn images(containers: &[Container]) -> Value {
    joined(containers.iter().map(|container| container.image.as_str()), ",").into()
}

/// Texts with a separator between them.
pub(crate) fn joined<'a>(items: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(separator)
}

/// Labels as `k=v,k2=v2`.
pub(crate) fn labels(labels: &BTreeMap<String, String>) -> Value {
    or_none(api_machinery::labels::format_labels(labels)).into()
}

/// A selector in text form; `bad` where it cannot be understood.
pub(crate) fn selector(selector: Option<&LabelSelector>, bad: &str) -> Value {
    match selector_of(selector) {
        Ok(selector) => or_none(selector.to_string()).into(),
        Err(_) => bad.into(),
    }
}

/// The text, or `<none>` where it is empty.
pub(crate) fn or_none(text: impl Into<String>) -> String {
    or_else(text, "<none>")
}

/// The text, or another where it is empty.
pub(crate) fn or_else(text: impl Into<String>, empty: &str) -> String {
    let text = text.into();
    if text.is_empty() { empty.to_owned() } else { text }
}

/// The first few of a list and how many more there are.
pub(crate) fn first_few(items: &[String], shown: usize) -> String {
    let text = items.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(",");
    match items.len().checked_sub(shown) {
        Some(more) if more > 0 => format!("{text} + {more} more..."),
        _ => text,
    }
}

/// The storage among resources; none is nothing.
pub(crate) fn storage(resources: &BTreeMap<String, Quantity>) -> String {
    resources.get("storage").cloned().unwrap_or_default().to_string()
}

/// Access modes as `kubectl` abbreviates them, in a fixed order.
pub(crate) fn access_modes(modes: &[String]) -> Vec<&'static str> {
    const SHORT: &[(&str, &str)] =
        &[("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    SHORT.iter().filter(|(mode, _)| modes.iter().any(|own| own == mode)).map(|(_, short)| *short).collect()
}

/// The storage class of a volume or claim; the old annotation wins.
pub(crate) fn class_of(meta: &ObjectMeta, field: Option<&str>) -> String {
    let annotation = meta.annotations.get(crate::claim_spec::CLASS_ANNOTATION).map(String::as_str);
    annotation.or(field).unwrap_or_default().to_owned()
}
