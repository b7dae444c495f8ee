//! An event as it is told, in the forms that there are.

use std::sync::OnceLock;

use api_machinery::json;
use api_machinery::quote::go_quote;
use api_machinery::time::MicroTime;
use api_types::audit_v1::Event;
use jiff::Timestamp;

use crate::policy::Level;

/// Set where an object was left out.
pub(crate) const TRUNCATED: &str = "audit.k8s.io/truncated";

/// The form of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// An event each, as JSON.
    #[default]
    Json,
    /// Texts that are older than events are objects.
    Legacy,
}

/// An event of which nothing more is to come. It is encoded once, however many want it.
#[derive(Debug)]
pub struct Finished {
    event: Event,
    json: OnceLock<String>,
}

impl Finished {
    pub(crate) const fn new(event: Event) -> Self {
        Self { event, json: OnceLock::new() }
    }

    /// The event as a list has it: without its kind.
    pub(crate) fn json(&self) -> &str {
        self.json.get_or_init(|| json::encode(&self.event))
    }

    #[cfg(test)]
    pub(crate) fn name(&self) -> &str {
        &self.event.audit_id
    }

    /// Adds the event as a line.
    pub(crate) fn write_line(&self, format: Format, out: &mut String) {
        match format {
            Format::Json => {
                out.push_str("{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",");
                out.push_str(self.json().strip_prefix('{').unwrap_or_default());
            }
            Format::Legacy => out.push_str(&self.legacy()),
        }
        out.push('\n');
    }

    /// The event without its objects, which says that they are missing; nothing where it cannot have any.
    pub(crate) fn truncated(&self) -> Option<Self> {
        if self.event.level == Level::Metadata.name() {
            return None;
        }
        let mut event = Event { request_object: None, response_object: None, ..self.event.clone() };
        event.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        Some(Self::new(event))
    }

    /// The event in one line of text, which tells of no object.
    pub(crate) fn legacy(&self) -> String {
        let event = &self.event;
        let (mut user, mut groups) = ("<none>", "<none>".to_owned());
        if !event.user.username.is_empty() {
            user = &event.user.username;
            if !event.user.groups.is_empty() {
                groups = all_quoted(&event.user.groups);
            }
        }
        let (mut as_user, mut as_groups) = ("<self>", "<lookup>".to_owned());
        if let Some(other) = &event.impersonated_user {
            as_user = &other.username;
            if !other.groups.is_empty() {
                as_groups = all_quoted(&other.groups);
            }
        }
        let namespace = event.object_ref.as_ref().map(|object| object.namespace.as_str());
        let quoted = [
            ("id", event.audit_id.as_str()),
            ("stage", &event.stage),
            ("ip", event.source_ips.first().map_or("<unknown>", String::as_str)),
            ("method", &event.verb),
            ("user", user),
            ("groups", &groups),
            ("as", as_user),
            ("asgroups", &as_groups),
            ("user-agent", &event.user_agent),
            ("namespace", namespace.filter(|own| !own.is_empty()).unwrap_or("<none>")),
            ("uri", &event.request_uri),
        ]
        .map(|(name, value)| format!("{name}={}", go_quote(value)));
        let response = event.response_status.as_ref().map_or("<deferred>".to_owned(), |status| status.code.to_string());
        let time = rfc3339(event.request_received_timestamp);
        format!("{time} AUDIT: {} response=\"{response}\"", quoted.join(" "))
    }
}

fn all_quoted(list: &[String]) -> String {
    list.iter().map(|own| go_quote(own)).collect::<Vec<_>>().join(",")
}

/// With as many digits of the second as there are.
fn rfc3339(time: MicroTime) -> String {
    Timestamp::from_microsecond(time.unix_micros().unwrap_or_default()).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use api_machinery::leaf::RawJson;
    use api_machinery::meta::Status;
    use api_types::audit_v1::ObjectReference;
    use api_types::authentication_v1::UserInfo;

    use super::*;

    fn event() -> Event {
        Event {
            level: "Request".into(),
            audit_id: "a".into(),
            stage: "ResponseComplete".into(),
            verb: "get".into(),
            request_uri: "/x?\"".into(),
            request_received_timestamp: MicroTime::from_unix_micros(1_700_000_000_120_000),
            ..Event::default()
        }
    }

    #[test]
    fn old_lines_are_as_they_were() {
        assert_eq!(
            Finished::new(event()).legacy(),
            "2023-11-14T22:13:20.12Z AUDIT: id=\"a\" stage=\"ResponseComplete\" ip=\"<unknown>\" method=\"get\" \
             user=\"<none>\" groups=\"<none>\" as=\"<self>\" asgroups=\"<lookup>\" user-agent=\"\" \
             namespace=\"<none>\" uri=\"/x?\\\"\" response=\"<deferred>\""
        );
        let user = |name: &str| UserInfo { username: name.into(), groups: vec!["g".into()], ..UserInfo::default() };
        let event = Event {
            user: user("u"),
            impersonated_user: Some(user("v")),
            source_ips: vec!["192.0.2.1".into(), "192.0.2.2".into()],
            object_ref: Some(ObjectReference { namespace: "n".into(), ..ObjectReference::default() }),
            response_status: Some(Status { code: 200, ..Status::default() }),
            ..event()
        };
        let line = Finished::new(event).legacy();
        for part in [
            "ip=\"192.0.2.1\"",
            "user=\"u\" groups=\"\\\"g\\\"\" as=\"v\" asgroups=\"\\\"g\\\"\"",
            "namespace=\"n\"",
            "response=\"200\"",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn objects_are_what_is_left_out() {
        let object = || Some(RawJson::from_text("{\"secret\":1}"));
        let whole = Finished::new(Event { request_object: object(), response_object: object(), ..event() });
        let short = whole.truncated().expect("it has objects");
        assert!(whole.json().contains("secret") && !short.json().contains("secret"), "{}", short.json());
        assert!(short.json().contains("\"annotations\":{\"audit.k8s.io/truncated\":\"true\"}"), "{}", short.json());
        assert!(Finished::new(Event { level: "Metadata".into(), ..event() }).truncated().is_none());
    }

    #[test]
    fn a_line_says_what_it_is() {
        let mut out = String::new();
        Finished::new(event()).write_line(Format::Json, &mut out);
        let (start, end) = ("{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"Request\",", "}\n");
        assert!(out.starts_with(start) && out.ends_with(end), "{out}");
    }
}
