//! Who asks, and whether they may: authentication, then authorization of what the path means on the node.

use std::sync::Arc;

use api_types::authentication_v1::UserInfo;
use async_trait::async_trait;
use authn::{Authenticator, Chain};
use client::ClientError;
use component_base::serving::{PeerCertificates, Request, Response, text};
use http::{Method, StatusCode};

/// What is asked of the authorizer: one of these subresources of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attributes {
    pub(crate) verb: &'static str,
    pub(crate) subresources: Vec<&'static str>,
}

/// Decides.
#[async_trait]
pub(crate) trait Authorizer: Send + Sync + 'static {
    /// Whether the user may use a subresource of the node with this verb.
    ///
    /// # Errors
    /// The API server does not say, however often it was asked.
    async fn allows(&self, user: &UserInfo, verb: &str, subresource: &str, path: &str) -> Result<bool, ClientError>;
}

/// Lets everyone do everything (`AlwaysAllow`).
pub(crate) struct Everyone;

#[async_trait]
impl Authorizer for Everyone {
    async fn allows(&self, _: &UserInfo, _: &str, _: &str, _: &str) -> Result<bool, ClientError> {
        Ok(true)
    }
}

/// The way into the main server.
pub(crate) struct Access {
    pub(crate) authentication: Chain,
    pub(crate) authorizer: Arc<dyn Authorizer>,
}

impl Access {
    /// The request, if it may pass.
    pub(super) async fn check(&self, request: Request) -> Result<Request, Box<Response>> {
        let (parts, body) = request.into_parts();
        let peer = parts.extensions.get::<PeerCertificates>().map(|peer| peer.0.to_vec()).unwrap_or_default();
        let unauthorized = || Box::new(text(StatusCode::UNAUTHORIZED, "Unauthorized"));
        let identity = match self.authentication.authenticate(&parts, &peer).await {
            Ok(Some(identity)) => identity,
            Ok(None) => return Err(unauthorized()),
            Err(error) => {
                tracing::error!(%error, "Unable to authenticate the request due to an error");
                return Err(unauthorized());
            }
        };
        let asked = attributes(&parts.method, parts.uri.path());
        self.authorize(&identity.user, &asked, parts.uri.path()).await?;
        Ok(Request::from_parts(parts, body))
    }

    async fn authorize(&self, user: &UserInfo, asked: &Attributes, path: &str) -> Result<(), Box<Response>> {
        let name = &user.username;
        for subresource in &asked.subresources {
            match self.authorizer.allows(user, asked.verb, subresource, path).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(%error, user = name, "Authorization error");
                    let message = format!(
                        "Authorization error (user={name}, verb={}, resource=nodes, subresource={subresource})",
                        asked.verb
                    );
                    return Err(Box::new(text(StatusCode::INTERNAL_SERVER_ERROR, message)));
                }
            }
        }
        let subresources = asked.subresources.join(" ");
        let message =
            format!("Forbidden (user={name}, verb={}, resource=nodes, subresource(s)=[{subresources}])\n", asked.verb);
        Err(Box::new(text(StatusCode::FORBIDDEN, message)))
    }
}

/// What a request means on the node; any of the subresources is enough.
fn attributes(method: &Method, path: &str) -> Attributes {
    let verb = match *method {
        Method::POST => "create",
        Method::GET => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    };
    let below = |root: &str| path == root || path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    let subresources = match () {
        () if below("/stats") => vec!["stats"],
        () if below("/metrics") => vec!["metrics"],
        () if below("/logs") => vec!["log"],
        () if below("/checkpoint") => vec!["checkpoint"],
        () if below("/statusz") => vec!["statusz"],
        () if below("/flagz") => vec!["configz"],
        () if below("/pods") || below("/runningpods") => vec!["pods", "proxy"],
        () if below("/healthz") => vec!["healthz", "proxy"],
        () if below("/configz") => vec!["configz", "proxy"],
        () => vec!["proxy"],
    };
    Attributes { verb, subresources }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_subresources_of_the_node() {
        let cases = [
            (Method::GET, "/pods", "get", "pods proxy"),
            (Method::GET, "/pods/", "get", "pods proxy"),
            (Method::GET, "/podsx", "get", "proxy"),
            (Method::GET, "/runningpods/", "get", "pods proxy"),
            (Method::GET, "/healthz/syncloop", "get", "healthz proxy"),
            (Method::GET, "/stats/summary", "get", "stats"),
            (Method::GET, "/metrics/cadvisor", "get", "metrics"),
            (Method::POST, "/exec/ns/pod/c", "create", "proxy"),
            (Method::GET, "/containerLogs/ns/pod/c", "get", "proxy"),
            (Method::GET, "/logs/syslog", "get", "log"),
            (Method::OPTIONS, "/configz", "", "configz proxy"),
        ];
        for (method, path, verb, subresources) in cases {
            let found = attributes(&method, path);
            assert_eq!((found.verb, found.subresources.join(" ").as_str()), (verb, subresources), "{path}");
        }
    }
}
