//! The way through a proxy: a tunnel (HTTP's CONNECT, or SOCKS) for what is encrypted, and requests that name their server in
//! full where that is in the clear and the proxy speaks HTTP.

mod socks5;
#[cfg(test)]
mod tests;
mod url;

use std::time::Duration;

use base::{Connection, host_and_port};
use component_base::http_proxy::ProxyEnvironment;
use component_base::http_tunnel::{TunnelError, tunnel};
use http::HeaderValue;
use tokio::time::timeout;

use super::TransportError;
use super::dial::Tls;
use crate::config::{ClientConfig, ConfigError, Endpoint};
pub(super) use url::{ProxyScheme, ProxyUrl};

/// How long a proxy may take to connect, as upstream.
const LIMIT: Duration = Duration::from_mins(1);

/// A proxy, and how its certificate is verified where it has one.
pub(super) struct Proxy {
    pub(super) url: ProxyUrl,
    pub(super) tls: Option<Tls>,
}

/// What requests carry that a proxy passes on one by one.
pub(super) struct Forwarded {
    pub(super) authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Leads an open connection to the proxy on to the server; nowhere where the proxy passes requests on.
    pub(super) async fn lead(
        &self,
        stream: Connection,
        host: &str,
        port: u16,
        passes_on: bool,
    ) -> Result<Connection, TransportError> {
        let proxy = host_and_port(&self.url.host, self.url.port);
        let stream = match &self.tls {
            Some(tls) => Box::new(tls.handshake(stream, &proxy).await?) as Connection,
            None => stream,
        };
        if passes_on {
            return Ok(stream);
        }
        let led = async {
            if self.url.scheme == ProxyScheme::Socks5 {
                let led = socks5::connect(stream, host, port, self.url.user()).await;
                return led.map_err(|error| error.to_string());
            }
            let (target, authorization) = (host_and_port(host, port), self.url.authorization());
            tunnel(stream, &target, &target, authorization.as_deref()).await.map_err(|error| match error {
                TunnelError::Refused { status, .. } => status,
                other => other.to_string(),
            })
        };
        match timeout(LIMIT, led).await {
            Err(_) => Err(TransportError::Timeout(format!("proxy {proxy}"))),
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(reason)) => Err(TransportError::Proxy { proxy, reason }),
        }
    }
}

/// The proxy to a configuration's server: its own, or else what the environment says.
pub(super) fn choose(
    config: &ClientConfig,
    endpoint: &Endpoint,
    environment: &ProxyEnvironment,
) -> Result<Option<ProxyUrl>, ConfigError> {
    let own = config.proxy_url.expose();
    if !own.is_empty() {
        return ProxyUrl::parse(own).map(Some).map_err(ConfigError::Proxy);
    }
    let named = environment.proxy_for(endpoint.secure, &endpoint.host, endpoint.port).map(ProxyUrl::of_environment);
    named.transpose().map_err(ConfigError::EnvironmentProxy)
}

/// How requests go to the proxy where it is to pass them on: those to a server in the clear, through HTTP.
pub(super) fn forwarded(endpoint: &Endpoint, proxy: Option<&ProxyUrl>) -> Option<Forwarded> {
    let proxy = proxy.filter(|proxy| !endpoint.secure && proxy.scheme != ProxyScheme::Socks5)?;
    let authorization = proxy.authorization().and_then(|text| HeaderValue::from_str(&text).ok()).map(|mut value| {
        value.set_sensitive(true);
        value
    });
    Some(Forwarded { authorization })
}
