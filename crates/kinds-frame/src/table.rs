//! What the cells of printed tables have in common.

use std::collections::BTreeMap;

use api_machinery::human_duration::age_text;
use api_machinery::labels::Selector;
use api_machinery::meta::{LabelSelector, ObjectMeta};
use api_machinery::object::Object;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;
use api_machinery::value::Value;
use api_types::core_v1::Container;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;

use crate::info::Column;

/// A printed column of a kind, and what stands in it.
pub struct Cell<T> {
    /// The heading and the like.
    pub column: Column<'static>,
    /// The text or number of an object, at this time.
    pub show: fn(&T, Time) -> Value,
}

impl<T: Object> Cell<T> {
    /// The name, with which tables begin.
    pub const NAME: Self = Self::name(|object, _| object.meta().name.clone().into());
    /// How old the object is.
    pub const AGE: Self = Self::text("Age", |object, now| since(object.meta().creation_timestamp, now).into());
    /// When it was created, for kinds that have no columns of their own.
    pub const CREATED_AT: Self = Self {
        column: Column { type_: "date", ..Column::text("Created At") },
        show: |object, _| object.meta().creation_timestamp.to_string().into(),
    };

    /// A name with something to say beside it.
    pub const fn name(show: fn(&T, Time) -> Value) -> Self {
        Self { column: Column::NAME, show }
    }

    /// A column of texts.
    pub const fn text(name: &'static str, show: fn(&T, Time) -> Value) -> Self {
        Self { column: Column::text(name), show }
    }

    /// A column of texts that only wide tables have.
    pub const fn wide(name: &'static str, show: fn(&T, Time) -> Value) -> Self {
        Self { column: Column { priority: 1, ..Column::text(name) }, show }
    }

    /// A column of whole numbers.
    pub const fn number(name: &'static str, show: fn(&T, Time) -> Value) -> Self {
        Self { column: Column { type_: "integer", ..Column::text(name) }, show }
    }

    /// A column of truths, which may be written as texts.
    pub const fn boolean(name: &'static str, show: fn(&T, Time) -> Value) -> Self {
        Self { column: Column { type_: "boolean", ..Column::text(name) }, show }
    }
}

/// A name, and whether an annotation marks it as the default among its kind.
pub fn default_name(meta: &ObjectMeta, annotations: &[&str]) -> Value {
    let is_default = annotations.iter().any(|key| meta.annotations.get(*key).is_some_and(|value| value == "true"));
    format!("{}{}", meta.name, if is_default { " (default)" } else { "" }).into()
}

/// The phase of an object, unless it is being deleted.
pub fn phase(meta: &ObjectMeta, phase: &str) -> Value {
    if meta.deletion_timestamp.is_some() { "Terminating" } else { phase }.into()
}

/// The text, or `<unset>` where there is none.
pub fn or_unset(text: Option<&str>) -> Value {
    text.unwrap_or("<unset>").into()
}

/// How long ago a moment was.
pub fn since(then: Time, now: Time) -> String {
    if then.is_zero() { "<unknown>".into() } else { age_text(now.seconds_since(then)) }
}

/// The names of containers.
pub fn names(containers: &[Container]) -> Value {
    joined(containers.iter().map(|container| container.name.as_str()), ",").into()
}

/// The images of containers.
pub fn images(containers: &[Container]) -> Value {
    joined(containers.iter().map(|container| container.image.as_str()), ",").into()
}

/// Texts with a separator between them.
pub fn joined<'a>(items: impl IntoIterator<Item = &'a str>, separator: &str) -> String {
    items.into_iter().collect::<Vec<_>>().join(separator)
}

/// Labels as `k=v,k2=v2`.
pub fn labels(labels: &BTreeMap<String, String>) -> Value {
    or_none(api_machinery::labels::format_labels(labels)).into()
}

/// A selector in text form; `bad` where it cannot be understood.
pub fn selector(selector: Option<&LabelSelector>, bad: &str) -> Value {
    match selector.map_or_else(|| Ok(Selector::nothing()), Selector::from_label_selector) {
        Ok(selector) => or_none(selector.to_string()).into(),
        Err(_) => bad.into(),
    }
}

/// How many items a list has.
#[must_use]
pub fn count<T>(items: &[T]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// The text, or `<none>` where it is empty.
pub fn or_none(text: impl Into<String>) -> String {
    or_else(text, "<none>")
}

/// The text, or another where it is empty.
pub fn or_else(text: impl Into<String>, empty: &str) -> String {
    let text = text.into();
    if text.is_empty() { empty.to_owned() } else { text }
}

/// The first few of a list and how many more there are.
pub fn first_few(items: &[String], shown: usize) -> String {
    let text = items.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(",");
    match items.len().checked_sub(shown) {
        Some(more) if more > 0 => format!("{text} + {more} more..."),
        _ => text,
    }
}

/// The storage among resources; none is nothing.
pub fn storage(resources: &BTreeMap<String, Quantity>) -> String {
    resources.get("storage").cloned().unwrap_or_default().to_string()
}

/// Access modes as `kubectl` abbreviates them, in a fixed order.
pub fn access_modes(modes: &[String]) -> String {
    const SHORT: &[(&str, &str)] =
        &[("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let present = SHORT.iter().filter(|(mode, _)| modes.iter().any(|own| own == mode));
    joined(present.map(|(_, short)| *short), ",")
}

/// The storage class of a volume or claim; the old annotation wins.
pub fn class_of(meta: &ObjectMeta, field: Option<&str>) -> String {
    let annotation = meta.annotations.get(BETA_STORAGE_CLASS_ANNOTATION).map(String::as_str);
    annotation.or(field).unwrap_or_default().to_owned()
}
