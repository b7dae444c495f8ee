//! What a path and a method ask for: the attributes that authorization decides by and that handlers are chosen by.
//! Concept: <https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris>

use api_machinery::fields::FieldSelector;
use http::Method;

use super::percent;
use super::query::Query;

/// What a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestInfo {
    /// Whether it is about a resource, as against a mere path.
    pub is_resource: bool,
    /// The path, percent-decoded.
    pub path: String,
    /// `get`, `list`, `create` and so on; the method in lower case for paths.
    pub verb: String,
    /// `api` or `apis`.
    pub api_prefix: String,
    /// The API group; empty for core.
    pub group: String,
    /// The API version.
    pub version: String,
    /// The namespace; empty for cluster scope and for all namespaces.
    pub namespace: String,
    /// The plural resource name.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The object's name: of the path, or the one that a field selector pins.
    pub name: String,
    /// Resource, name, subresource and what follows, as far as the path has them.
    pub parts: Vec<String>,
    /// Whether the path has the old prefix `watch`.
    pub watch_prefix: bool,
    /// The field selector of a list, for authorization.
    pub field_selector: String,
    /// The label selector of a list, for authorization.
    pub label_selector: String,
}

/// A path that starts as a resource's and then makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to determine kind and namespace from url, {0}")]
pub(crate) struct BadPath(String);

/// Subresources of a namespace; every other segment behind its name is a resource within it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];
/// Subresources whose requests last as long as their users like.
const LONG_RUNNING_SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

impl RequestInfo {
    /// Reads a request's line.
    ///
    /// # Errors
    /// When the path ends behind `watch` or `proxy`.
    pub(crate) fn new(method: &Method, raw_path: &str, query: &Query) -> Result<Self, BadPath> {
        let path = percent::decode(raw_path);
        let mut info = Self { verb: method.as_str().to_ascii_lowercase(), path: path.clone(), ..Self::default() };
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let rest = match segments.as_slice() {
            ["api", version, rest @ ..] if !rest.is_empty() => {
                info.version = (*version).to_owned();
                rest
            }
            ["apis", group, version, rest @ ..] if !rest.is_empty() => {
                info.group = (*group).to_owned();
                info.version = (*version).to_owned();
                rest
            }
            _ => return Ok(info),
        };
        info.is_resource = true;
        info.api_prefix = segments.first().copied().unwrap_or_default().to_owned();
        let rest = info.read_verb(method, rest).ok_or_else(|| BadPath(raw_path.to_owned()))?;
        info.read_resource(rest);
        info.read_collection_verb(query);
        Ok(info)
    }

    /// Takes the verb from the method, or from the old prefixes, which are taken off.
    fn read_verb<'a>(&mut self, method: &Method, rest: &'a [&'a str]) -> Option<&'a [&'a str]> {
        if let [verb @ ("watch" | "proxy"), behind @ ..] = rest {
            self.verb = (*verb).to_owned();
            self.watch_prefix = *verb == "watch";
            return (!behind.is_empty()).then_some(behind);
        }
        let verb = match method.as_str() {
            "POST" => "create",
            "GET" | "HEAD" => "get",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => "",
        };
        self.verb = verb.to_owned();
        Some(rest)
    }

    fn read_resource(&mut self, mut rest: &[&str]) {
        if let ["namespaces", namespace, behind @ ..] = rest {
            self.namespace = (*namespace).to_owned();
            if behind.first().is_some_and(|segment| !NAMESPACE_SUBRESOURCES.contains(segment)) {
                rest = behind;
            }
        }
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        self.resource = part(0);
        self.name = part(1);
        if self.verb != "proxy" {
            self.subresource = part(2);
        }
        self.parts = rest.iter().map(|&segment| segment.to_owned()).collect();
    }

    fn read_collection_verb(&mut self, query: &Query) {
        if self.name.is_empty() && self.verb == "get" {
            let numbers_read = query.integer("limit").is_ok() && query.integer("timeoutSeconds").is_ok();
            let watch = if numbers_read { query.flag("watch") } else { query.switch("watch").unwrap_or(false) };
            self.verb = if watch { "watch" } else { "list" }.to_owned();
            let selector = FieldSelector::parse(&query.text("fieldSelector")).ok();
            let pinned = selector.as_ref().and_then(|selector| selector.required_value("metadata.name"));
            if let Some(name) = pinned.filter(|name| api_machinery::names::path_segment_name(name).is_empty()) {
                self.name = name.to_owned();
            }
        }
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = "deletecollection".to_owned();
        }
        if matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") && !self.watch_prefix {
            self.field_selector = query.text("fieldSelector");
            self.label_selector = query.text("labelSelector");
        }
    }

    /// The name in the path, if it has one.
    #[must_use]
    pub(crate) fn path_name(&self) -> Option<&str> {
        self.parts.get(1).map(String::as_str)
    }

    /// Whether the request may last: it then has no deadline and shutdown does not wait for it.
    #[must_use]
    pub(crate) fn is_long_running(&self) -> bool {
        if !self.is_resource {
            return self.path.starts_with("/debug/pprof/");
        }
        matches!(self.verb.as_str(), "watch" | "proxy")
            || LONG_RUNNING_SUBRESOURCES.contains(&self.subresource.as_str())
    }

    /// Whether it changes nothing, as max-in-flight counts.
    #[must_use]
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
