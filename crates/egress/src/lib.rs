//! Egress selection, as upstream's `--egress-selector-config-file` has it: the server may be kept from the cluster's
//! network, and reach it, other control planes and etcd through proxies, each through its own.
//!
//! A file is read and checked ([`config`]) and becomes one [`Connector`](base::Connector) for each kind of destination; whoever
//! opens connections is given that, and does not know what is behind it. See KEP-1281 and `docs/adr/0023-egress.md`.

mod config;
mod http_connect;
mod konnectivity;
mod metrics;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::HashMap;
use std::sync::Arc;

use api_types::apiserver_config_v1::{EgressConnection, EgressSelectorConfiguration, EgressTcp, EgressTransport};
use base::{Direct, SharedConnector, SharedRng, TaskGroup};
use component_base::metrics::Metrics;
use component_base::tls::TlsError;
use grpc::UnixSocket;

pub use config::{ConfigError, read};
use http_connect::{HttpConnect, Proxy};
use konnectivity::Konnectivity;
use metrics::{EgressMetrics, Labels, Measured};

/// Kinds of destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EgressType {
    /// Nodes, pods, Services, and what stands behind Services.
    Cluster,
    /// What is addressed by a URL: webhooks of the server itself, and of objects that state one.
    ControlPlane,
    /// The store.
    Etcd,
}

impl EgressType {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::ControlPlane, Self::Etcd];

    /// As the file has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::ControlPlane => "controlplane",
            Self::Etcd => "etcd",
        }
    }
}

/// Who connects to what.
#[derive(Debug, Clone)]
pub struct EgressSelector {
    cluster: SharedConnector,
    control_plane: SharedConnector,
    etcd: SharedConnector,
}

/// Why connections cannot be made as the file says.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// Certificates, or a key.
    #[error("failed to setup egress selector for {name}: {source}")]
    Tls {
        /// The destination.
        name: String,
        /// What is wrong.
        source: TlsError,
    },
    /// Where the proxy is.
    #[error("invalid proxy server url {0:?}")]
    Url(String),
}

/// What connectors are given by the server.
#[derive(Clone)]
pub struct Surroundings<'a> {
    /// Where tunnels, and what follows certificates, run.
    pub tasks: &'a TaskGroup,
    /// Chance.
    pub rng: &'a SharedRng,
    /// Where connections are counted.
    pub metrics: &'a Metrics,
}

impl Default for EgressSelector {
    fn default() -> Self {
        let [cluster, control_plane, etcd] = [(); 3].map(|()| Direct::shared());
        Self { cluster, control_plane, etcd }
    }
}

impl EgressSelector {
    /// As a configuration says that was found valid.
    ///
    /// # Errors
    /// When certificates cannot be used.
    pub fn new(configuration: &EgressSelectorConfiguration, around: &Surroundings<'_>) -> Result<Self, EgressError> {
        let metrics = EgressMetrics::new(around.metrics);
        let mut named = HashMap::new();
        for selection in &configuration.egress_selections {
            let name = selection.name.to_lowercase();
            let connector = connector(&name, &selection.connection, &metrics, around)?;
            named.insert(name, connector);
        }
        let mut of = |kind: EgressType| named.remove(kind.name()).unwrap_or_else(Direct::shared);
        Ok(Self {
            cluster: of(EgressType::Cluster),
            control_plane: of(EgressType::ControlPlane),
            etcd: of(EgressType::Etcd),
        })
    }

    /// Who connects to a kind of destination.
    #[must_use]
    pub fn of(&self, kind: EgressType) -> &SharedConnector {
        match kind {
            EgressType::Cluster => &self.cluster,
            EgressType::ControlPlane => &self.control_plane,
            EgressType::Etcd => &self.etcd,
        }
    }

    /// Who connects to nodes, pods, Services, and what stands behind Services.
    #[must_use]
    pub fn cluster(&self) -> &SharedConnector {
        self.of(EgressType::Cluster)
    }

    /// Who connects to what is addressed by a URL.
    #[must_use]
    pub fn control_plane(&self) -> &SharedConnector {
        self.of(EgressType::ControlPlane)
    }

    /// Who connects to the store.
    #[must_use]
    pub fn etcd(&self) -> &SharedConnector {
        self.of(EgressType::Etcd)
    }
}

fn connector(
    name: &str,
    connection: &EgressConnection,
    metrics: &EgressMetrics,
    around: &Surroundings<'_>,
) -> Result<SharedConnector, EgressError> {
    match (&*connection.proxy_protocol, &connection.transport) {
        ("GRPC", Some(EgressTransport { uds: Some(uds), .. })) => {
            let own = Konnectivity::new(UnixSocket::at(&uds.uds_name), around.tasks, around.rng);
            Ok(Arc::new(Measured::new(own, metrics.of(Labels::GRPC_UDS))))
        }
        ("HTTPConnect", Some(EgressTransport { tcp: Some(tcp), .. })) => {
            let own = HttpConnect(over_tls(name, tcp, around)?);
            Ok(Arc::new(Measured::new(own, metrics.of(Labels::CONNECT_TCP))))
        }
        ("HTTPConnect", Some(EgressTransport { uds: Some(uds), .. })) => {
            let own = HttpConnect(Proxy::Socket(UnixSocket::at(&uds.uds_name)));
            Ok(Arc::new(Measured::new(own, metrics.of(Labels::CONNECT_UDS))))
        }
        _ => Ok(Direct::shared()),
    }
}

fn over_tls(name: &str, tcp: &EgressTcp, around: &Surroundings<'_>) -> Result<Proxy, EgressError> {
    let url = || EgressError::Url(tcp.url.clone());
    let authority = tcp.url.parse::<http::Uri>().ok().and_then(|uri| uri.authority().cloned()).ok_or_else(url)?;
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let tls = tcp.tls_config.clone().unwrap_or_default();
    Proxy::over_tls(host, authority.port_u16().unwrap_or(443), &tls, around.tasks)
        .map_err(|source| EgressError::Tls { name: name.to_owned(), source })
}
