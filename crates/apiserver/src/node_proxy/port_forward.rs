//! `portforward`.

use std::sync::Arc;

use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use async_trait::async_trait;
use component_base::serving::Response;
use http::StatusCode;
use streaming::{Proxied, ProxyError, is_tunnel, is_websocket, proxy_tunnel, proxy_upgrade};

use super::access::{admit_connect, read, require_create};
use super::kubelet::{Kubelets, Translator};
use super::throttle::limited;
use super::{container, target, upgrade};
use crate::chain::{Authorized, Request};
use crate::cx::ApiCx;
use crate::gates::TUNNELLED_PORTS;
use crate::routes::Endpoint;

/// The subresource.
pub(super) struct PortForwards {
    pub(super) kubelets: Arc<Kubelets>,
}

#[async_trait]
impl Endpoint for PortForwards {
    async fn serve(&self, cx: &Arc<ApiCx>, request: Request<Authorized>) -> Result<Response, ApiError> {
        if !matches!(request.info().verb.as_str(), "get" | "create") {
            return Err(ApiError::method_not_allowed());
        }
        admit_connect(cx, &request).await?;
        require_create(cx, &request).await?;
        let info = Arc::clone(request.info());
        let ports = ports(&request)?;
        let pod: Pod = read(cx, "pods", &info.namespace, &info.name).await?;
        let (backend, translator) = self.kubelets.for_sessions(cx, container::host(&pod)?).await?;
        upgrade::require_upgrade(&request)?;
        let parameters = if ports.is_empty() { Vec::new() } else { vec![("port", ports)] };
        let target = target::target(&format!("/portForward/{}/{}", info.namespace, info.name), &parameters);
        let io = backend.dial().await.map_err(|error| upgrade::unreachable(&error))?;
        let io = limited(io, cx.config().requests.session_bytes_per_second);
        let tunnel = translator == Translator::Server
            && cx.lifecycle.gates().enabled(TUNNELLED_PORTS)
            && is_websocket(request.headers())
            && is_tunnel(request.headers());
        let proxy_type = if tunnel { "translated_at_apiserver" } else { upgrade::PASSED_ON };
        cx.metrics.streaming.with(&["portforward", proxy_type]).inc();
        let audited = request.audited().clone();
        let mut request = upgrade::prepared(request);
        let proxied = if tunnel {
            let proxied = proxy_tunnel(&mut request, io, &target, &backend.authority).await;
            cx.metrics.tunnelled.with(&[code_of(&proxied).as_str()]).inc();
            proxied
        } else {
            proxy_upgrade(&mut request, io, &target, &backend.authority).await
        };
        upgrade::answer(cx, audited, proxied)
    }
}

/// What the client of a tunnel is answered.
fn code_of(proxied: &Result<Proxied, ProxyError>) -> StatusCode {
    match proxied {
        Ok(Proxied::Switched { response, .. }) => response.status(),
        Ok(Proxied::Refused(response)) => response.status(),
        Err(ProxyError::Client(refusal)) => refusal.status,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The ports of the older WebSocket form, with commas.
fn ports(request: &Request<Authorized>) -> Result<String, ApiError> {
    let mut ports = Vec::new();
    for port in request.query().all("ports") {
        let number: i32 = port
            .parse()
            .map_err(|_| ApiError::bad_request(format!("strconv.ParseInt: parsing {port:?}: invalid syntax")))?;
        ports.push(number.to_string());
    }
    Ok(ports.join(","))
}
