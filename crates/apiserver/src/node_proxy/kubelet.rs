//! Where a node's agent is, and how the server proves who it is to it.

use std::sync::{Arc, OnceLock};

use api_machinery::status::ApiError;
use api_types::core_v1::Node;
use base::host_and_port;
use component_base::reload::{Reload, spawn_reloader};
use component_base::tls::{CaFile, ClientIdentity, ClientTls, ServerTrust, TlsError};

use super::access::read;
use super::connection::Backend;
use super::guard::{self, Reach};
use crate::config::{KubeletConfig, OwnHost};
use crate::cx::ApiCx;
use crate::gates::EXTEND_WEBSOCKETS;

/// Connections to node agents. The certificates are read when the first one is needed, and followed from then on.
#[derive(Default)]
pub(super) struct Kubelets {
    verified: OnceLock<Result<ClientTls, String>>,
}

/// Whether the agent's certificate is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verify {
    /// Against the configured authority, if there is one.
    AsConfigured,
    /// Not at all: the client asked for it (`insecureSkipTLSVerifyBackend`).
    No,
}

/// What a connection to a node agent is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Logs, commands and forwarded ports, for a pod of the node.
    Pods,
    /// Whatever the client asks of the agent itself.
    Proxy,
}

/// Who takes a session over a WebSocket apart, where the protocol is one that runtimes do not speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Translator {
    /// This server, which speaks SPDY with the agent.
    Server,
    /// The agent: its node says so (KEP-4006).
    Agent,
}

impl Kubelets {
    /// The agent of a node.
    ///
    /// # Errors
    /// 404 without such a node, 500 where it has no address, 400 where that may not be dialled.
    pub(super) async fn of_node(
        &self,
        cx: &ApiCx,
        name: &str,
        purpose: Use,
        verify: Verify,
    ) -> Result<Backend, ApiError> {
        let node: Node = read(cx, "nodes", "", name).await?;
        self.of(cx, &node, purpose, verify).await
    }

    /// The agent of a node for sessions with a pod, and who of the two takes those apart that come over a WebSocket.
    ///
    /// # Errors
    /// As [`Kubelets::of_node`].
    pub(super) async fn for_sessions(&self, cx: &ApiCx, name: &str) -> Result<(Backend, Translator), ApiError> {
        let node: Node = read(cx, "nodes", "", name).await?;
        let backend = self.of(cx, &node, Use::Pods, Verify::AsConfigured).await?;
        let declared = node.status.declared_features.iter().any(|own| own == EXTEND_WEBSOCKETS.name());
        let agent_does = declared && cx.lifecycle.gates().enabled(EXTEND_WEBSOCKETS);
        Ok((backend, if agent_does { Translator::Agent } else { Translator::Server }))
    }

    async fn of(&self, cx: &ApiCx, node: &Node, purpose: Use, verify: Verify) -> Result<Backend, ApiError> {
        let (host, port) = locate(node, &cx.config().kubelet)?;
        let tls = self.tls(cx, verify).map_err(ApiError::internal)?;
        let reach = reach(&cx.config().kubelet, purpose, port);
        let way = guard::way(cx.egress().cluster(), &host, port, reach).await.map_err(ApiError::bad_request)?;
        let config = tls.config().map_err(ApiError::internal)?;
        let server_name = tls.name_for(&host).map_err(ApiError::internal)?;
        Ok(Backend { way, authority: host_and_port(&host, port), tls: Some((config, server_name)) })
    }

    fn tls(&self, cx: &ApiCx, verify: Verify) -> Result<ClientTls, String> {
        let load = || load(cx).map_err(|error| error.to_string());
        let mut tls = self.verified.get_or_init(load).clone()?;
        if verify == Verify::No {
            tls.trust = ServerTrust::Anyone;
        }
        Ok(tls)
    }
}

/// How far to go for a node agent at a port.
fn reach(config: &KubeletConfig, purpose: Use, port: u16) -> Reach {
    match (config.own_host, purpose) {
        (OwnHost::AnyPort, _) => Reach::Node,
        (OwnHost::KubeletPort, Use::Pods) if port == config.port => Reach::Node,
        (OwnHost::KubeletPort, _) => Reach::Routable,
    }
}

fn load(cx: &ApiCx) -> Result<ClientTls, TlsError> {
    let config = &cx.config().kubelet;
    let mut followed: Vec<Arc<dyn Reload>> = Vec::new();
    let trust = match &config.certificate_authority {
        Some(path) => {
            let file = CaFile::load(path)?;
            let bundle = file.bundle();
            followed.push(file);
            ServerTrust::Bundle(bundle)
        }
        None => ServerTrust::Anyone,
    };
    let identity = match (&config.client_certificate, &config.client_key) {
        (Some(certificate), Some(key)) => {
            let identity = ClientIdentity::load(certificate, key)?;
            followed.push(Arc::clone(&identity) as _);
            identity
        }
        _ => ClientIdentity::none(),
    };
    spawn_reloader(cx.tasks(), followed);
    // Upgrades need HTTP/1.1.
    Ok(ClientTls { identity, alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(trust) })
}

/// Host and port of a node's agent: the most preferred kind of address that the node has.
///
/// # Errors
/// 500 where it has none of those.
pub(super) fn locate(node: &Node, config: &KubeletConfig) -> Result<(String, u16), ApiError> {
    let addresses = &node.status.addresses;
    let preferred = config.preferred_address_types.iter();
    let address = preferred.filter_map(|wanted| addresses.iter().find(|address| address.type_ == *wanted)).next();
    let Some(address) = address else {
        let (wanted, name) = (config.preferred_address_types.join(" "), &node.metadata.name);
        return Err(ApiError::internal(format_args!(
            "no preferred addresses found for node {name:?}; known addresses: [{wanted}]"
        )));
    };
    Ok((address.address.clone(), port_of(node, config)))
}

/// The port of a node's agent.
pub(super) fn port_of(node: &Node, config: &KubeletConfig) -> u16 {
    let own = u16::try_from(node.status.daemon_endpoints.kubelet_endpoint.port).unwrap_or(0);
    if own > 0 { own } else { config.port }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api_types::core_v1::{NodeAddress, NodeStatus};

    use super::*;

    #[test]
    fn the_most_preferred_address_wins() {
        let config = KubeletConfig {
            certificate_authority: None,
            client_certificate: None,
            client_key: None,
            timeout: Duration::from_secs(5),
            preferred_address_types: ["Hostname", "InternalIP"].map(str::to_owned).to_vec(),
            port: 10250,
            own_host: OwnHost::KubeletPort,
        };
        let address = |kind: &str, address: &str| NodeAddress { type_: kind.into(), address: address.into() };
        let node = |addresses| Node { status: NodeStatus { addresses, ..Default::default() }, ..Node::default() };
        let both = node(vec![address("InternalIP", "10.0.0.1"), address("Hostname", "n")]);
        assert_eq!(locate(&both, &config).unwrap(), ("n".to_owned(), 10250));
        let one = node(vec![address("InternalIP", "10.0.0.1")]);
        assert_eq!(locate(&one, &config).unwrap().0, "10.0.0.1");
        assert_eq!(locate(&node(vec![address("ExternalIP", "1.1.1.1")]), &config).unwrap_err().code, 500);
        assert_eq!(reach(&config, Use::Pods, 10250), Reach::Node);
        assert_eq!(reach(&config, Use::Pods, 2379), Reach::Routable);
        assert_eq!(reach(&config, Use::Proxy, 10250), Reach::Routable);
    }
}
