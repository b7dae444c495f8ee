//! What a path of the API asks for.

use api_machinery::fields::FieldSelector;
use api_machinery::labels::Selector;
use api_machinery::status::ApiError;
use api_types::authorization_v1::ResourceAttributes;
use api_types::metrics_v1beta1::{GROUP, VERSION};
use component_base::serving::{Query, decode_query};
use http::Method;
use http::request::Parts;

/// A resource of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Nodes,
    Pods,
}

impl Resource {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Pods => "pods",
        }
    }
}

/// A path below the API's version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) resource: Resource,
    /// Empty for all.
    pub(crate) namespace: String,
    /// Empty for a list.
    pub(crate) name: String,
}

impl Asked {
    /// Reads what follows `/apis/metrics.k8s.io/v1beta1/`; nothing where there is no such thing.
    pub(crate) fn read(path: &str) -> Option<Self> {
        let parts = path.trim_end_matches('/').split('/').map(decode_query).collect::<Option<Vec<_>>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (resource, namespace, name) = match parts.as_slice() {
            ["nodes"] => (Resource::Nodes, "", ""),
            ["nodes", name] => (Resource::Nodes, "", *name),
            ["pods"] => (Resource::Pods, "", ""),
            ["namespaces", namespace, "pods"] => (Resource::Pods, *namespace, ""),
            ["namespaces", namespace, "pods", name] => (Resource::Pods, *namespace, *name),
            _ => return None,
        };
        Some(Self { resource, namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// What whoever decides about the request is asked.
    pub(crate) fn attributes(&self, method: &Method, query: &Query) -> ResourceAttributes {
        let verb = match *method {
            Method::GET | Method::HEAD if !self.name.is_empty() => "get",
            Method::GET | Method::HEAD if query.is_on("watch") => "watch",
            Method::GET | Method::HEAD => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE if self.name.is_empty() => "deletecollection",
            _ => "delete",
        };
        ResourceAttributes {
            namespace: self.namespace.clone(),
            verb: verb.to_owned(),
            group: GROUP.to_owned(),
            version: VERSION.to_owned(),
            resource: self.resource.name().to_owned(),
            name: self.name.clone(),
            ..ResourceAttributes::default()
        }
    }
}

/// The parameters of a request.
///
/// # Errors
/// When an escape is broken.
pub(crate) fn parameters(request: &Parts) -> Result<Query, ApiError> {
    let text = request.uri.query().unwrap_or_default();
    Query::parse(text).ok_or_else(|| ApiError::bad_request("the query has a broken escape"))
}

/// Which objects of a list are wanted.
#[derive(Debug)]
pub(crate) struct Select {
    pub(crate) labels: Selector,
    pub(crate) fields: FieldSelector,
}

impl Select {
    /// Reads both selectors.
    ///
    /// # Errors
    /// When one is malformed, or asks for a field that there is not.
    pub(crate) fn read(query: &Query) -> Result<Self, ApiError> {
        let wrong = |error: &dyn std::fmt::Display| ApiError::bad_request(error.to_string());
        let labels = Selector::parse(query.get("labelSelector").unwrap_or_default()).map_err(|error| wrong(&error))?;
        let fields =
            FieldSelector::parse(query.get("fieldSelector").unwrap_or_default()).map_err(|error| wrong(&error))?;
        let known = ["metadata.name", "metadata.namespace"];
        match fields.terms().iter().find(|term| !known.contains(&term.field.as_str())) {
            Some(term) => Err(ApiError::bad_request(format!("field label not supported: {}", term.field))),
            None => Ok(Self { labels, fields }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_ask_for_resources() {
        for (path, expected) in [
            ("nodes", Some((Resource::Nodes, "", ""))),
            ("nodes/", Some((Resource::Nodes, "", ""))),
            ("nodes/n", Some((Resource::Nodes, "", "n"))),
            ("pods", Some((Resource::Pods, "", ""))),
            ("namespaces/ns/pods", Some((Resource::Pods, "ns", ""))),
            ("namespaces/ns/pods/p%2E1", Some((Resource::Pods, "ns", "p.1"))),
            ("namespaces/ns/nodes", None),
            ("pods/p", None),
            ("services", None),
            ("nodes/%zz", None),
        ] {
            let asked = Asked::read(path);
            let asked = asked.as_ref().map(|own| (own.resource, own.namespace.as_str(), own.name.as_str()));
            assert_eq!(asked, expected, "{path}");
        }
    }

    #[test]
    fn verbs_follow_from_methods() {
        let verb = |path: &str, method: Method, query: &str| {
            Asked::read(path).unwrap().attributes(&method, &Query::parse(query).unwrap()).verb
        };
        assert_eq!(verb("pods", Method::GET, ""), "list");
        assert_eq!(verb("pods", Method::GET, "watch=true"), "watch");
        assert_eq!(verb("nodes/n", Method::GET, ""), "get");
        assert_eq!(verb("nodes/n", Method::DELETE, ""), "delete");
        assert_eq!(verb("nodes", Method::DELETE, ""), "deletecollection");
    }

    #[test]
    fn selectors_are_checked() {
        let read = |query: &str| Select::read(&Query::parse(query).unwrap()).map(drop).map_err(|error| error.message);
        assert_eq!(read("labelSelector=a%3Db&fieldSelector=metadata.name%3Dx"), Ok(()));
        assert_eq!(read("fieldSelector=spec.nodeName%3Dx"), Err("field label not supported: spec.nodeName".into()));
        assert!(read("labelSelector=%3D%3D").is_err());
    }
}
