//! What is served beside the resources of the registry: paths, resources without storage, and subresources that need
//! code of their own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::Response;

use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::request::RequestInfo;

/// Answers requests of one place.
#[async_trait]
pub(crate) trait Endpoint: Send + Sync + 'static {
    /// Answers a request; an error is sent as a `Status` in the form that the client wants.
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError>;
}

/// Finds endpoints that come and go while the server runs.
pub(crate) trait Finder: Send + Sync + 'static {
    /// Who answers for a path now.
    fn find(&self, path: &str) -> Option<Arc<dyn Endpoint>>;
}

/// Group, version, resource, subresource.
type RouteKey = (&'static str, &'static str, &'static str, &'static str);

/// The table of places. Each is taken once; it is an error of the program to take one twice.
#[derive(Default)]
pub(crate) struct Routes {
    exact: BTreeMap<&'static str, Arc<dyn Endpoint>>,
    prefixes: BTreeMap<&'static str, Arc<dyn Endpoint>>,
    resources: HashMap<RouteKey, Arc<dyn Endpoint>>,
    first: Option<Arc<dyn Finder>>,
}

impl Routes {
    /// Serves a path, all methods.
    pub(crate) fn exact(&mut self, path: &'static str, endpoint: Arc<dyn Endpoint>) {
        let former = self.exact.insert(path, endpoint);
        assert!(former.is_none(), "invariant: the path {path} is taken once");
    }

    /// Serves all paths that start with a prefix, which ends in a slash. The longest prefix wins.
    pub(crate) fn prefix(&mut self, prefix: &'static str, endpoint: Arc<dyn Endpoint>) {
        assert!(prefix.ends_with('/'), "invariant: the prefix {prefix} ends in a slash");
        let former = self.prefixes.insert(prefix, endpoint);
        assert!(former.is_none(), "invariant: the prefix {prefix} is taken once");
    }

    /// Serves a resource that has no storage: its collection and its objects, all methods.
    pub(crate) fn resource(
        &mut self,
        group: &'static str,
        version: &'static str,
        resource: &'static str,
        endpoint: Arc<dyn Endpoint>,
    ) {
        self.subresource(group, version, resource, "", endpoint);
    }

    /// Serves a subresource, all methods.
    pub(crate) fn subresource(
        &mut self,
        group: &'static str,
        version: &'static str,
        resource: &'static str,
        subresource: &'static str,
        endpoint: Arc<dyn Endpoint>,
    ) {
        let former = self.resources.insert((group, version, resource, subresource), endpoint);
        assert!(former.is_none(), "invariant: {resource}/{subresource} of {group}/{version} is taken once");
    }

    /// Asks a finder before anything else is looked for.
    pub(crate) fn first(&mut self, finder: Arc<dyn Finder>) {
        let former = self.first.replace(finder);
        assert!(former.is_none(), "invariant: one finder comes first");
    }

    /// The endpoint of a request that is none of this server's own.
    pub(crate) fn elsewhere(&self, info: &RequestInfo) -> Option<Arc<dyn Endpoint>> {
        self.first.as_ref()?.find(&info.path)
    }

    /// The endpoint of a request, if the registry is not to answer it.
    pub(crate) fn find(&self, info: &RequestInfo) -> Option<Arc<dyn Endpoint>> {
        if info.is_resource {
            let place = (&*info.group, &*info.version, &*info.resource, &*info.subresource);
            let resources: &HashMap<(&str, &str, &str, &str), _> = &self.resources;
            return resources.get(&place).cloned();
        }
        let path = info.path.as_str();
        let longest = || {
            let fitting = self.prefixes.iter().filter(|(prefix, _)| path.starts_with(**prefix));
            fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, endpoint)| endpoint)
        };
        self.exact.get(path).or_else(longest).cloned()
    }

    /// The paths, for the index.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.exact.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::Query;

    /// Says its name in the error that it answers with.
    struct Named(&'static str);

    #[async_trait]
    impl Endpoint for Named {
        async fn serve(&self, _: &Arc<ApiCx>, _: Request<Authorized>) -> Result<Response, ApiError> {
            Err(ApiError::bad_request(self.0))
        }
    }

    #[test]
    fn the_closest_place_wins() {
        let mut routes = Routes::default();
        let endpoints =
            ["api", "apis", "group", "log", "review"].map(|name| Arc::new(Named(name)) as Arc<dyn Endpoint>);
        let [api, apis, group, log, review] = &endpoints;
        routes.exact("/api", Arc::clone(api));
        routes.prefix("/apis/", Arc::clone(apis));
        routes.prefix("/apis/apps/", Arc::clone(group));
        routes.subresource("", "v1", "pods", "log", Arc::clone(log));
        routes.resource("authentication.k8s.io", "v1", "tokenreviews", Arc::clone(review));
        let cases = [
            ("/api", Some(api)),
            ("/api/", None),
            ("/apis", None),
            ("/apis/x", Some(apis)),
            ("/apis/apps/x", Some(group)),
            ("/api/v1/namespaces/n/pods/p/log", Some(log)),
            ("/api/v1/namespaces/n/pods/p", None),
            ("/apis/authentication.k8s.io/v1/tokenreviews", Some(review)),
        ];
        for (path, expected) in cases {
            let info = RequestInfo::new(&Method::GET, path, &Query::default()).unwrap();
            let found = routes.find(&info);
            assert_eq!(found.is_some(), expected.is_some(), "{path}");
            assert!(found.zip(expected).is_none_or(|(found, expected)| Arc::ptr_eq(&found, expected)), "{path}");
        }
    }
}
