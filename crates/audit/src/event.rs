//! What is told of a request at once: where it came from and what it is about.

use std::net::IpAddr;

use api_types::audit_v1::{Event, ObjectReference};

/// User agents are told no further than this, in bytes.
const MAX_USER_AGENT: usize = 1024;
const CUT: &str = "...TRUNCATED";

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is known who sent it.
    RequestReceived,
    /// The head of an answer that lasts was sent.
    ResponseStarted,
    /// The answer was sent.
    ResponseComplete,
    /// The server gave up on it.
    Panic,
}

impl Stage {
    /// As policies and events name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RequestReceived => "RequestReceived",
            Self::ResponseStarted => "ResponseStarted",
            Self::ResponseComplete => "ResponseComplete",
            Self::Panic => "Panic",
        }
    }

    /// The stage of this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        [Self::RequestReceived, Self::ResponseStarted, Self::ResponseComplete, Self::Panic]
            .into_iter()
            .find(|stage| stage.name() == name)
    }
}

/// Where a request came from, in the words of its sender.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Its identifier.
    pub audit_id: String,
    /// Path and query as sent.
    pub uri: String,
    /// `X-Forwarded-For`, all of it.
    pub forwarded_for: String,
    /// `X-Real-Ip`.
    pub real_ip: String,
    /// The address that the connection is from, where it is known.
    pub remote: Option<IpAddr>,
    /// What the client calls itself.
    pub user_agent: String,
}

/// What a request is about.
#[derive(Debug, Clone, Default)]
pub struct Target {
    /// Verb of the API, or the method in lower case for mere paths.
    pub verb: String,
    /// Whether it is about a resource.
    pub is_resource: bool,
    /// The path, where it is not about a resource.
    pub path: String,
    /// Group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural name.
    pub resource: String,
    /// Part of the object; empty for the object.
    pub subresource: String,
    /// Namespace; empty for the cluster's.
    pub namespace: String,
    /// Name; empty where the path has none.
    pub name: String,
}

/// The event of a request that is to be told of, and of which nothing else is known yet.
pub(crate) fn begin(origin: Origin, target: Target) -> Event {
    let source_ips = source_ips(&origin);
    let object_ref = target.is_resource.then(|| ObjectReference {
        resource: target.resource,
        namespace: target.namespace,
        name: target.name,
        api_group: target.group,
        api_version: target.version,
        subresource: target.subresource,
        ..ObjectReference::default()
    });
    Event {
        audit_id: origin.audit_id,
        request_uri: origin.uri,
        verb: target.verb,
        source_ips,
        user_agent: cut(origin.user_agent),
        object_ref,
        ..Event::default()
    }
}

/// Everybody whom the request has passed, the first sender first.
fn source_ips(origin: &Origin) -> Vec<String> {
    let told = |own: IpAddr| own.to_canonical().to_string();
    let address = |text: &str| text.trim().parse().ok().map(told);
    let mut all: Vec<String> = origin.forwarded_for.split(',').filter_map(address).collect();
    if let Some(real) = address(&origin.real_ip).filter(|real| !all.contains(real)) {
        all.push(real);
    }
    if let Some(remote) = origin.remote.map(told).filter(|remote| all.last() != Some(remote)) {
        all.push(remote);
    }
    all
}

fn cut(mut agent: String) -> String {
    if agent.len() > MAX_USER_AGENT {
        agent.truncate(agent.floor_char_boundary(MAX_USER_AGENT));
        agent.push_str(CUT);
    }
    agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_once_each() {
        for (forwarded, real, remote, expected) in [
            ("", "", "192.0.2.1", &["192.0.2.1"][..]),
            ("192.0.2.9, x, 192.0.2.8", "", "192.0.2.1", &["192.0.2.9", "192.0.2.8", "192.0.2.1"]),
            ("192.0.2.9", "192.0.2.7", "192.0.2.7", &["192.0.2.9", "192.0.2.7"]),
            ("192.0.2.9", "192.0.2.9", "192.0.2.9", &["192.0.2.9"]),
            ("::ffff:192.0.2.9", "", "", &["192.0.2.9"]),
        ] {
            let origin = Origin {
                forwarded_for: forwarded.into(),
                real_ip: real.into(),
                remote: remote.parse().ok(),
                ..Origin::default()
            };
            assert_eq!(source_ips(&origin), expected, "{forwarded} {real} {remote}");
        }
    }

    #[test]
    fn long_names_of_clients_are_cut() {
        assert_eq!(cut("kubectl".to_owned()), "kubectl");
        assert_eq!(cut("ä".repeat(600)), format!("{}{CUT}", "ä".repeat(512)));
    }
}
