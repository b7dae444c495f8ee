//! The collector's address, as gRPC names targets: <https://github.com/grpc/grpc/blob/master/doc/naming.md>.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base::{Connection, SharedConnector};
use grpc::UnixSocket;
use http::Uri;
use hyper_util::rt::TokioIo;
use tonic::transport::{Channel, Endpoint};

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The port where a target names none.
const PORT: u16 = 443;

/// A target that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to build the connection to the collector of traces {endpoint:?}: {reason}")]
pub struct EndpointError {
    endpoint: String,
    reason: String,
}

/// Where a target leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Tcp(String),
    Unix(UnixSocket),
}

fn parse(endpoint: &str) -> Target {
    if let Some(name) = endpoint.strip_prefix("unix-abstract:") {
        return Target::Unix(UnixSocket::Abstract(name.trim_start_matches("//").to_owned()));
    }
    if let Some(path) = endpoint.strip_prefix("unix:") {
        return Target::Unix(UnixSocket::at(path.strip_prefix("//").unwrap_or(path)));
    }
    // The part between the slashes names a resolver; the system's is asked.
    let name = endpoint.strip_prefix("dns:").map_or(endpoint, |rest| match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, name)| name),
        None => rest,
    });
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Target::Tcp(if has_port { name.to_owned() } else { format!("{name}:{PORT}") })
}

/// A way to the collector, in the clear, by whoever connects to hosts. Nothing is connected yet.
pub(crate) fn connect(endpoint: &str, connector: &SharedConnector) -> Result<Channel, EndpointError> {
    let failed = |reason: String| EndpointError { endpoint: endpoint.to_owned(), reason };
    match parse(endpoint) {
        Target::Tcp(authority) => {
            let endpoint = Endpoint::from_shared(format!("http://{authority}"));
            let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
            let connector = Arc::clone(connector);
            let way = tower::service_fn(move |uri| to(Arc::clone(&connector), uri));
            Ok(endpoint.connect_timeout(CONNECT_TIMEOUT).connect_with_connector_lazy(way))
        }
        Target::Unix(socket) => Ok(socket.channel()),
    }
}

async fn to(connector: SharedConnector, uri: Uri) -> io::Result<TokioIo<Connection>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    connector.connect(host, uri.port_u16().unwrap_or(PORT)).await.map(TokioIo::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_as_grpc_names_them() {
        let tcp = |text: &str| Target::Tcp(text.to_owned());
        for (endpoint, expected) in [
            ("localhost:4317", tcp("localhost:4317")),
            ("collector", tcp("collector:443")),
            ("dns:collector:1", tcp("collector:1")),
            ("dns://collector:1", tcp("collector:1")),
            ("dns:///collector:1", tcp("collector:1")),
            ("dns://8.8.8.8/collector:1", tcp("collector:1")),
            ("unix:///run/o.sock", Target::Unix(UnixSocket::at("/run/o.sock"))),
            ("unix:/run/o.sock", Target::Unix(UnixSocket::at("/run/o.sock"))),
            ("unix-abstract:otlp", Target::Unix(UnixSocket::Abstract("otlp".to_owned()))),
        ] {
            assert_eq!(parse(endpoint), expected, "{endpoint}");
        }
        assert!(connect("not a host", &base::Direct::shared()).is_err());
    }
}
