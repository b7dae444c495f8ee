//! Rules of events, which both groups that serve them share. They are kept as core objects, so that errors name the
//! fields of those.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::names;
use api_machinery::time::{MicroTime, Time};
use api_machinery::value::Value;
use api_types::core_v1::{EventSource, ObjectReference};

use crate::field_rules as rules;
use crate::info::Column;
use crate::table;

/// The table's columns: both groups show one stored object alike.
pub(crate) const COLUMNS: &[Column<'static>] = &[
    Column::text("Last Seen"),
    Column::text("Type"),
    Column::text("Reason"),
    Column::text("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::text("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    Column { name: "Name", type_: "string", format: "name", priority: 1 },
];

const MAX_TEXT_BYTES: usize = 128;
const MAX_MESSAGE_BYTES: usize = 1024;
const OTHER_NAMESPACE: &str = "does not match event.namespace";

/// What the rules look at, whichever group the event came through.
pub(crate) struct Report<'a> {
    /// The event's metadata.
    pub(crate) meta: &'a ObjectMeta,
    /// The namespace of what it is about.
    pub(crate) about: &'a str,
    /// Whether it has a time of its own, as events of the newer form do.
    pub(crate) timed: bool,
    /// The name of the reporter's field.
    pub(crate) reporter_field: &'static str,
    /// Who reports.
    pub(crate) reporter: &'a str,
    /// Which of several.
    pub(crate) instance: &'a str,
    /// What was done.
    pub(crate) action: &'a str,
    /// Why.
    pub(crate) reason: &'a str,
    /// In words.
    pub(crate) message: &'a str,
}

/// What a row shows, whichever group the event came through.
pub(crate) struct Row<'a> {
    /// The event's name.
    pub(crate) name: &'a str,
    /// When it was first seen by a reporter of the older form, and last.
    pub(crate) seen: (Time, Time),
    /// When it was seen by one of the newer form.
    pub(crate) event_time: MicroTime,
    /// When the last of a series was seen, and how many there were.
    pub(crate) series: Option<(MicroTime, i32)>,
    /// How often it was seen by a reporter of the older form.
    pub(crate) count: i32,
    /// What it is about.
    pub(crate) about: &'a ObjectReference,
    /// Who reports, in the older form and in the newer.
    pub(crate) source: &'a EventSource,
    /// The reporter and which of several, in the newer form.
    pub(crate) reporter: (&'a str, &'a str),
    /// `Normal` or `Warning`, why, and in words.
    pub(crate) texts: [&'a str; 3],
}

/// A field of the object that an event is about, for field selectors.
pub(crate) fn reference_field(about: &ObjectReference, field: &str) -> Option<String> {
    let text = match field {
        "kind" => &about.kind,
        "namespace" => &about.namespace,
        "name" => &about.name,
        "uid" => &about.uid,
        "apiVersion" => &about.api_version,
        "resourceVersion" => &about.resource_version,
        "fieldPath" => &about.field_path,
        _ => return None,
    };
    Some(text.clone())
}

/// The cells of a row, in the order of [`COLUMNS`].
pub(crate) fn cells(row: &Row<'_>, now: Time) -> Vec<Value> {
    let (first_seen, last_seen) = row.seen;
    let first = table::since(if first_seen.is_zero() { row.event_time.to_time() } else { first_seen }, now);
    let (last, count) = match row.series {
        Some((last, count)) => (table::since(last.to_time(), now), count),
        None if last_seen.is_zero() => (first.clone(), row.count),
        None => (table::since(last_seen, now), row.count),
    };
    let about = match (row.about.kind.to_lowercase(), row.about.name.as_str()) {
        (kind, "") => kind,
        (kind, name) => format!("{kind}/{name}"),
    };
    let or = |one: &str, other: &str| if one.is_empty() { other.to_owned() } else { one.to_owned() };
    let (component, host) = (or(&row.source.component, row.reporter.0), or(&row.source.host, row.reporter.1));
    let source = if host.is_empty() { component } else { format!("{component}, {host}") };
    let [type_, reason, message] = row.texts;
    vec![
        last.into(),
        type_.into(),
        reason.into(),
        about.into(),
        row.about.field_path.clone().into(),
        source.into(),
        message.trim().into(),
        first.into(),
        count.max(1).into(),
        row.name.into(),
    ]
}

/// Checks what holds for every event.
pub(crate) fn validate(event: &Report<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let namespace = event.meta.namespace.as_str();
    let fits = match (event.timed, event.about) {
        (false, "") => matches!(namespace, "" | "default"),
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (false, about) => about == namespace,
        (true, _) => true,
    };
    if !fits {
        let at = Path::new("involvedObject").child("namespace");
        errors.push(at.invalid(event.about, OTHER_NAMESPACE));
    }
    if event.timed {
        validate_timed(event, &mut errors);
    }
    errors.push_invalid(&Path::new("namespace"), namespace, names::dns1123_subdomain(namespace));
    errors
}

fn validate_timed(event: &Report<'_>, errors: &mut ErrorList) {
    let at = Path::new(event.reporter_field);
    rules::required(&at, event.reporter, errors);
    errors.push_invalid(&at, event.reporter, names::qualified_name(event.reporter));
    for (field, value) in [("reportingInstance", event.instance), ("action", event.action), ("reason", event.reason)] {
        let at = Path::new(field);
        rules::required(&at, value, errors);
        if value.len() > MAX_TEXT_BYTES {
            errors.push(at.invalid("", format!("can have at most {MAX_TEXT_BYTES} characters")));
        }
    }
    if event.message.len() > MAX_MESSAGE_BYTES {
        let detail = format!("can have at most {MAX_MESSAGE_BYTES} characters");
        errors.push(Path::new("message").invalid("", detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_where_their_objects_are() {
        for (timed, about, namespace, expected) in [
            (false, "a", "a", 0),
            (false, "a", "b", 1),
            (false, "", "default", 0),
            (false, "", "kube-system", 1),
            (true, "", "kube-system", 0),
            (true, "", "a", 1),
        ] {
            let meta = ObjectMeta { namespace: namespace.into(), ..ObjectMeta::default() };
            let report = Report {
                meta: &meta,
                about,
                timed,
                reporter_field: "reportingComponent",
                reporter: "a.com/b",
                instance: "i",
                action: "a",
                reason: "r",
                message: "",
            };
            assert_eq!(validate(&report).len(), expected, "{timed} {about} {namespace}");
        }
    }
}
