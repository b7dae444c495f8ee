//! Rules of events, which both groups that serve them share. They are kept as core objects, so that errors name the
//! fields of those.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::names;
use api_machinery::object::Object;
use api_machinery::time::{MicroTime, Time};
use api_types::core_v1::{EventSource, ObjectReference};

use crate::field_rules as rules;
use crate::info::Column;
use crate::table::{self, Cell};

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

/// An event of either group: both show one stored object alike.
pub(crate) trait Printed: Object + Sized {
    /// What a row shows.
    fn row(&self) -> Row<'_>;

    /// The table.
    const COLUMNS: &'static [Cell<Self>] = &[
        Cell::text("Last Seen", |event, now| event.row().last_seen(now).into()),
        Cell::text("Type", |event, _| event.row().texts[0].into()),
        Cell::text("Reason", |event, _| event.row().texts[1].into()),
        Cell::text("Object", |event, _| event.row().object().into()),
        Cell::wide("Subobject", |event, _| event.row().about.field_path.clone().into()),
        Cell::wide("Source", |event, _| event.row().source().into()),
        Cell::text("Message", |event, _| event.row().texts[2].trim().into()),
        Cell::wide("First Seen", |event, now| event.row().first_seen(now).into()),
        Cell::wide("Count", |event, _| event.row().times().into()),
        Cell { column: Column { priority: 1, ..Column::NAME }, ..Cell::NAME },
    ];
}

impl Row<'_> {
    fn first_seen(&self, now: Time) -> String {
        let first = self.seen.0;
        table::since(if first.is_zero() { self.event_time.to_time() } else { first }, now)
    }

    fn last_seen(&self, now: Time) -> String {
        match self.series {
            Some((last, _)) => table::since(last.to_time(), now),
            None if self.seen.1.is_zero() => self.first_seen(now),
            None => table::since(self.seen.1, now),
        }
    }

    fn times(&self) -> i32 {
        self.series.map_or(self.count, |(_, count)| count).max(1)
    }

    fn object(&self) -> String {
        match (self.about.kind.to_lowercase(), self.about.name.as_str()) {
            (kind, "") => kind,
            (kind, name) => format!("{kind}/{name}"),
        }
    }

    fn source(&self) -> String {
        let or = |one: &str, other: &str| if one.is_empty() { other.to_owned() } else { one.to_owned() };
        let (component, host) = (or(&self.source.component, self.reporter.0), or(&self.source.host, self.reporter.1));
        if host.is_empty() { component } else { format!("{component}, {host}") }
    }
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
