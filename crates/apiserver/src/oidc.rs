//! What others need to check service account tokens by themselves: the issuer's document and its keys.
//! Concept: <https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery>

use std::sync::Arc;

use api_machinery::status::ApiError;
use async_trait::async_trait;
use component_base::serving::{Response, full, text};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode, Uri};
use pki::jwks;

use crate::address::external_address;
use crate::authentication::ServiceAccounts;
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::negotiate::routing;
use crate::routes::{Endpoint, Routes};

const DOCUMENT: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

/// Adds the two paths.
pub(crate) fn install(routes: &mut Routes) {
    routes.exact(DOCUMENT, Arc::new(Issuer));
    routes.exact(KEYS, Arc::new(Issuer));
}

struct Issuer;

#[async_trait]
impl Endpoint for Issuer {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        let published =
            cx.authentication().service_accounts.as_ref().and_then(|accounts| Some((accounts, issuer(accounts)?)));
        let Some((accounts, issuer)) = published else {
            return Ok(text(StatusCode::NOT_FOUND, "404 page not found\n"));
        };
        if request.method() != Method::GET {
            return Err(ApiError::method_not_allowed());
        }
        let (keys, max_age) = accounts.keys.published();
        let (media, document) = if request.info().path == KEYS {
            ("application/jwk-set+json", jwks::key_set(&keys))
        } else {
            ("application/json", jwks::discovery_document(issuer, &keys_uri(cx), &keys))
        };
        routing::require_accepted(request.headers(), request.preferences().forms(), routing::Produced::Only(media))?;
        let mut response = Response::new(full(document.to_string()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if let Ok(cache) = HeaderValue::from_str(&format!("public, max-age={}", max_age.as_secs())) {
            response.headers_mut().insert(CACHE_CONTROL, cache);
        }
        Ok(response)
    }
}

fn keys_uri(cx: &ApiCx) -> String {
    let configured = &cx.config().service_accounts.jwks_uri;
    if configured.is_empty() { format!("https://{}{KEYS}", external_address(cx.config())) } else { configured.clone() }
}

/// The issuer, if it is one that others can find: an HTTPS address without query or fragment.
fn issuer(accounts: &ServiceAccounts) -> Option<&str> {
    let issuer = accounts.issuers.first()?;
    let uri: Uri = issuer.parse().ok()?;
    let fit = uri.scheme_str() == Some("https") && uri.query().is_none() && !issuer.contains('#');
    fit.then_some(issuer.as_str())
}
