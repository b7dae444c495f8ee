//! The address under which clients outside know the server.

use std::net::{IpAddr, SocketAddr};

use crate::config::ServerConfig;

/// The port of a server that does not listen itself: that of the cluster's own Service.
const DEFAULT_PORT: u16 = 443;

/// `host:port`, the host being `--external-hostname`, or the advertised address.
pub(crate) fn external_address(config: &ServerConfig) -> String {
    let port = secure_port(config);
    if !config.external_hostname.is_empty() && config.external_hostname.parse::<IpAddr>().is_err() {
        return format!("{}:{port}", config.external_hostname);
    }
    let address = config.external_hostname.parse().unwrap_or(config.advertise_address);
    SocketAddr::new(address, port).to_string()
}

/// Where other servers of the cluster reach this one: as both of `--peer-advertise-ip` and `--peer-advertise-port` say, else at
/// the advertised address.
pub(crate) fn peer_address(config: &ServerConfig) -> (String, u16) {
    config.peers.advertised().unwrap_or_else(|| (config.advertise_address.to_string(), secure_port(config)))
}

/// The port that the server listens on.
pub(crate) fn secure_port(config: &ServerConfig) -> u16 {
    config.serving.as_ref().map_or(DEFAULT_PORT, |serving| serving.address.port())
}
