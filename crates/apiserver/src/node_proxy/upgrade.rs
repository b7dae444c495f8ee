//! Passing upgrades on: what the client gets, and the copying that goes on behind the answer.

use std::net::IpAddr;
use std::sync::Arc;

use api_machinery::status::ApiError;
use component_base::serving::{Body, Response, empty, full};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, Request as HttpRequest};
use streaming::{Proxied, ProxyError, Refusal};

use crate::chain::{Audited, Authorized, Request};
use crate::cx::ApiCx;

/// What metrics call a connection that is passed on as it is.
pub(super) const PASSED_ON: &str = "proxied_to_kubelet";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The request without its body, as the streaming functions take it, with the client's address noted.
pub(crate) fn prepared(request: Request<Authorized>) -> HttpRequest<Body> {
    let client = request.remote_address();
    let (mut parts, body) = request.into_parts();
    if let Some(client) = client {
        append_forwarded_for(&mut parts.headers, client.ip());
    }
    HttpRequest::from_parts(parts, body)
}

/// Notes whom the request came from, behind whoever passed it on before.
fn append_forwarded_for(headers: &mut HeaderMap, client: IpAddr) {
    let former = headers.get_all(&FORWARDED_FOR).into_iter().filter_map(|value| value.to_str().ok());
    let chain: Vec<String> = former.map(str::to_owned).chain([client.to_canonical().to_string()]).collect();
    if let Ok(chain) = HeaderValue::from_str(&chain.join(", ")) {
        headers.insert(FORWARDED_FOR, chain);
    }
}

/// Answers the client and copies until one side ends, which is when the request does.
pub(crate) fn answer(
    cx: &Arc<ApiCx>,
    audited: Audited,
    proxied: Result<Proxied, ProxyError>,
) -> Result<Response, ApiError> {
    match proxied {
        Ok(Proxied::Switched { response, copy }) => {
            cx.tasks().spawn_cancellable("upgraded-connection", async move {
                if let Err(error) = copy.await {
                    tracing::debug!(%error, "An upgraded connection ended");
                }
                drop(audited);
            });
            Ok(response.map(|()| empty()))
        }
        Ok(Proxied::Refused(response)) => Ok(response.map(full)),
        Err(ProxyError::Client(refusal)) => Ok(refused(refusal)),
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// A refusal of the client's own request.
pub(super) fn refused(refusal: Refusal) -> Response {
    refusal.into_response::<String>().map(full)
}

/// The error when a backend cannot be reached.
pub(super) fn unreachable(error: &std::io::Error) -> ApiError {
    ApiError::internal(format_args!("error dialing backend: {error}"))
}

/// # Errors
/// 400 when the request asks for no upgrade.
pub(super) fn require_upgrade(request: &Request<Authorized>) -> Result<(), ApiError> {
    if streaming::is_upgrade(request.headers()) {
        Ok(())
    } else {
        Err(ApiError::bad_request("Upgrade request required"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_comes_last() {
        let cases: [(&[&str], &str); 3] = [
            (&[], "192.0.2.1"),
            (&["10.0.0.1"], "10.0.0.1, 192.0.2.1"),
            (&["10.0.0.1, 10.0.0.2", "10.0.0.3"], "10.0.0.1, 10.0.0.2, 10.0.0.3, 192.0.2.1"),
        ];
        for (former, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in former {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
            }
            append_forwarded_for(&mut headers, "::ffff:192.0.2.1".parse().unwrap());
            let values: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
            assert_eq!(values, [expected]);
        }
    }
}
