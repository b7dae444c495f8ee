//! Rules of events, which both groups that serve them share. They are kept as core objects, so that errors name the
//! fields of those.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::meta::ObjectMeta;
use api_machinery::names;

use crate::field_rules as rules;
use crate::info::Column;

/// The table's columns: both groups show one stored object alike.
pub(crate) const COLUMNS: &[Column] = &[
    Column { name: "Last Seen", type_: "string", format: "", priority: 0 },
    Column { name: "Type", type_: "string", format: "", priority: 0 },
    Column { name: "Reason", type_: "string", format: "", priority: 0 },
    Column { name: "Object", type_: "string", format: "", priority: 0 },
    Column { name: "Subobject", type_: "string", format: "", priority: 1 },
    Column { name: "Source", type_: "string", format: "", priority: 1 },
    Column { name: "Message", type_: "string", format: "", priority: 0 },
    Column { name: "First Seen", type_: "string", format: "", priority: 1 },
    Column { name: "Count", type_: "string", format: "", priority: 1 },
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
