//! Where servers are, as each tells its peers: a key in the store that ends soon after its server.

use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{EndpointPort, Endpoints};
use async_trait::async_trait;
use base::{Direct, host_and_port};
use storage::StorageError;

use super::state::Peers;
use crate::address::peer_address;
use crate::bootstrap::{MasterLeases, at, is_ready};
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::node_proxy::connection::Backend;
use crate::node_proxy::guard::{self, Reach};
use crate::server_id::server_id;

/// The keys of all servers.
const KIND: &str = "peerserverleases";
const IDENTITY_LABEL: &str = "apiserverIdentity";
const PORT_NAME: &str = "https";
const PERIOD: Duration = Duration::from_secs(10);
const READY_PERIOD: Duration = Duration::from_millis(100);
/// The longest that removing the key may hold up the shutdown.
const REMOVE_LIMIT: Duration = Duration::from_secs(20);

/// The hook `peer-endpoint-reconciler-controller`.
pub(super) struct Reconciler;

#[async_trait]
impl PostStartHook for Reconciler {
    fn name(&self) -> &'static str {
        "peer-endpoint-reconciler-controller"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        // A server that does not listen, as in tests, is nobody's to ask.
        if cx.config().serving.is_none() {
            return Ok(());
        }
        let own = Arc::new(Own {
            id: server_id(&cx.config().host_name()),
            keys: keys(cx),
            ended: tokio::sync::Mutex::new(false),
        });
        let (context, keeper) = (Arc::clone(cx), Arc::clone(&own));
        cx.tasks().spawn_cancellable("peer-endpoint", async move { keeper.keep(&context).await });
        cx.before_shutdown(move |_| {
            let own = Arc::clone(&own);
            async move {
                if tokio::time::timeout(REMOVE_LIMIT, own.remove()).await.is_err() {
                    tracing::warn!("Removing the address for the peers of this server took too long");
                }
            }
        });
        Ok(())
    }
}

/// The keys of the servers of this cluster.
fn keys(cx: &ApiCx) -> MasterLeases {
    MasterLeases::new(Arc::clone(cx.backend()), &cx.config().storage.prefix, KIND)
}

struct Own {
    id: String,
    keys: MasterLeases,
    /// Set when the server ends: from then on the key is not made again.
    ended: tokio::sync::Mutex<bool>,
}

impl Own {
    async fn keep(&self, cx: &Arc<ApiCx>) {
        while !is_ready(cx).await {
            tokio::time::sleep(READY_PERIOD).await;
        }
        loop {
            if let Err(error) = self.renew(cx).await {
                tracing::warn!(%error, "Telling the peers where this server is failed");
            }
            tokio::time::sleep(PERIOD).await;
        }
    }

    async fn renew(&self, cx: &ApiCx) -> Result<(), StorageError> {
        let ended = self.ended.lock().await;
        if *ended {
            return Ok(());
        }
        self.keys.renew(&self.id, described(cx, &self.id)).await
    }

    async fn remove(&self) {
        *self.ended.lock().await = true;
        if let Err(error) = self.keys.remove(&self.id).await {
            tracing::warn!(%error, "Removing the address for the peers of this server failed");
        }
    }
}

fn described(cx: &ApiCx, id: &str) -> Endpoints {
    let (ip, port) = peer_address(cx.config());
    let mut endpoints = at(ip);
    endpoints.metadata.name = id.to_owned();
    endpoints.metadata.labels.insert(IDENTITY_LABEL.to_owned(), id.to_owned());
    for subset in &mut endpoints.subsets {
        let port = EndpointPort { name: PORT_NAME.to_owned(), port: i32::from(port), ..EndpointPort::default() };
        subset.ports = vec![port];
    }
    endpoints
}

/// It is not known where a server is.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAddress {
    /// The store does not answer.
    #[error("{0}")]
    Store(#[from] StorageError),
    /// It does not say, or has ended.
    #[error("it tells no address")]
    Untold,
    /// It is where no server can be.
    #[error("{0}")]
    Bad(String),
}

/// The way to a server: never by a proxy, as upstream.
///
/// # Errors
/// When it does not say where it is.
pub(super) async fn backend(cx: &ApiCx, peers: &Peers, id: &str) -> Result<Backend, NoAddress> {
    let stored = keys(cx).get(id).await?;
    let (host, port) = stored.as_ref().and_then(told).ok_or(NoAddress::Untold)?;
    let way = guard::way(&Direct::shared(), &host, port, Reach::Node).await.map_err(NoAddress::Bad)?;
    Ok(Backend { way, authority: host_and_port(&host, port), tls: Some(peers.tls.clone()) })
}

/// The address and the port that a key tells.
fn told(endpoints: &Endpoints) -> Option<(String, u16)> {
    let subset = endpoints.subsets.first()?;
    let port = subset.ports.iter().find(|port| port.name == PORT_NAME)?.port;
    Some((subset.addresses.first()?.ip.clone(), u16::try_from(port).ok()?))
}
