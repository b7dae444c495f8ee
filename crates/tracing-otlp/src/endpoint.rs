//! The collector's address, as gRPC names targets: <https://github.com/grpc/grpc/blob/master/doc/naming.md>.

use std::time::Duration;

use grpc::UnixSocket;
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

/// A way to the collector, in the clear. Nothing is connected yet.
pub(crate) fn connect(endpoint: &str) -> Result<Channel, EndpointError> {
    let failed = |reason: String| EndpointError { endpoint: endpoint.to_owned(), reason };
    match parse(endpoint) {
        Target::Tcp(authority) => {
            let endpoint = Endpoint::from_shared(format!("http://{authority}"));
            let endpoint = endpoint.map_err(|error| failed(error.to_string()))?;
            Ok(endpoint.connect_timeout(CONNECT_TIMEOUT).connect_lazy())
        }
        Target::Unix(socket) => Ok(socket.channel()),
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
            ("unix:///run/o.sock", Target::Unix(UnixSocket::at("/run/o.sock"))),
            ("unix:/run/o.sock", Target::Unix(UnixSocket::at("/run/o.sock"))),
            ("unix-abstract:otlp", Target::Unix(UnixSocket::Abstract("otlp".to_owned()))),
        ] {
            assert_eq!(parse(endpoint), expected, "{endpoint}");
        }
        assert!(connect("not a host").is_err());
    }
}
