//! The collector's address, as gRPC names targets: <https://github.com/grpc/grpc/blob/master/doc/naming.md>.

use std::os::linux::net::SocketAddrExt as _;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

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
    Unix(String),
    Abstract(String),
}

fn parse(endpoint: &str) -> Target {
    if let Some(name) = endpoint.strip_prefix("unix-abstract:") {
        return Target::Abstract(name.trim_start_matches("//").to_owned());
    }
    if let Some(path) = endpoint.strip_prefix("unix:") {
        return Target::Unix(path.strip_prefix("//").unwrap_or(path).to_owned());
    }
    // The part between the slashes names a resolver; the system's is asked.
    let name = endpoint.strip_prefix("dns:").map_or(endpoint, |rest| match rest.strip_prefix("//") {
        Some(rest) => rest.split_once('/').map_or(rest, |(_, name)| name),
        None => rest,
    });
    let has_port = name.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Target::Tcp(if has_port { name.to_owned() } else { format!("{name}:{PORT}") })
}

/// A way to the collector, in the clear. Nothing is connected yet.
pub(crate) fn connect(endpoint: &str) -> Result<Channel, EndpointError> {
    let failed = |reason: String| EndpointError { endpoint: endpoint.to_owned(), reason };
    let local = || Ok(Endpoint::from_static("http://localhost").connect_timeout(CONNECT_TIMEOUT));
    match parse(endpoint) {
        Target::Tcp(authority) => {
            let endpoint = Endpoint::from_shared(format!("http://{authority}"));
            let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
            Ok(endpoint.connect_timeout(CONNECT_TIMEOUT).connect_lazy())
        }
        Target::Unix(path) => Ok(local()?.connect_with_connector_lazy(service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        }))),
        Target::Abstract(name) => Ok(local()?.connect_with_connector_lazy(service_fn(move |_| {
            let name = name.clone();
            async move {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name.as_bytes())?;
                let stream = std::os::unix::net::UnixStream::connect_addr(&address)?;
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(TokioIo::new)
            }
        }))),
    }
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
            ("unix:///run/o.sock", Target::Unix("/run/o.sock".to_owned())),
            ("unix:/run/o.sock", Target::Unix("/run/o.sock".to_owned())),
            ("unix-abstract:otlp", Target::Abstract("otlp".to_owned())),
        ] {
            assert_eq!(parse(endpoint), expected, "{endpoint}");
        }
        assert!(connect("not a host").is_err());
    }
}
