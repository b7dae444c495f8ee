//! The whole way from a request to its answer, without a socket.

use api_types::authentication_v1::UserInfo;
use authn::Anonymous;
use client::ClientError;
use component_base::serving::empty;
use http::StatusCode;
use http_body_util::BodyExt as _;

use super::access::{Access, Authorizer};
use super::*;

/// Lets users use one subresource.
struct Only(&'static str);

#[async_trait]
impl Authorizer for Only {
    async fn allows(&self, _: &UserInfo, verb: &str, subresource: &str, _: &str) -> Result<bool, ClientError> {
        if verb == "delete" { Err(ClientError::Body("down".to_owned())) } else { Ok(subresource == self.0) }
    }
}

async fn checked(access: &Access, method: &str, path: &str) -> (u16, String) {
    let request = http::Request::builder().method(method).uri(path).body(empty()).unwrap();
    match access.check(request).await {
        Ok(_) => (200, String::new()),
        Err(refusal) => {
            let status = refusal.status().as_u16();
            let body = refusal.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        }
    }
}

#[tokio::test]
async fn strangers_are_401_and_others_what_they_may() {
    let chain = |anonymous| authn::Chain::new(Vec::new(), anonymous, Vec::new());
    let closed = Access { authentication: chain(None), authorizer: Arc::new(Everyone) };
    assert_eq!(checked(&closed, "GET", "/pods").await, (StatusCode::UNAUTHORIZED.as_u16(), "Unauthorized".into()));
    let open = Access { authentication: chain(Some(Anonymous::default())), authorizer: Arc::new(Only("proxy")) };
    assert_eq!(checked(&open, "GET", "/pods").await.0, 200, "proxy is enough for pods");
    assert_eq!(checked(&open, "GET", "/exec/ns/p/c").await.0, 200);
    let forbidden = "Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource(s)=[metrics])\n";
    assert_eq!(checked(&open, "GET", "/metrics").await, (403, forbidden.into()));
    let error = "Authorization error (user=system:anonymous, verb=delete, resource=nodes, subresource=stats)";
    assert_eq!(checked(&open, "DELETE", "/stats/x").await, (500, error.into()));
}
