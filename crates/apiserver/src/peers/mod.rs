//! The other API servers of the cluster, which may be of another release: what only they serve is asked of them (KEP-4020,
//! gate `UnknownVersionInteroperabilityProxy`). Decisions: `docs/adr/0025-peers.md`.

mod cluster_wide;
mod discovery;
mod endpoint;
mod metrics;
mod order;
mod proxied;
mod state;
mod union;

use std::sync::Arc;

use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;

use crate::config::ServerConfig;
use crate::gates;
use crate::hooks::{PostStartHook, Ready};

pub(crate) use proxied::{is_proxied, serve};
pub use state::PeersError;
pub(crate) use state::{Asked, Peers};

/// Adds the hooks: where this server is, for the others, and what they serve, where it may be asked of them.
///
/// # Errors
/// When the flags make no sense together, or certificates are bad.
pub(crate) fn install(
    hooks: &mut Vec<Arc<dyn PostStartHook>>,
    config: &ServerConfig,
    lifecycle: &Lifecycle,
    metrics: &Metrics,
) -> Result<Option<Arc<Peers>>, PeersError> {
    let peers = Peers::new(&config.peers, &config.aggregation, lifecycle, metrics)?;
    if lifecycle.gates().enabled(gates::PEERS) {
        hooks.push(Arc::new(endpoint::Reconciler));
    }
    if let Some(peers) = &peers {
        hooks.push(Arc::new(Ready("mixed-version-proxy-handler")));
        hooks.push(Arc::new(Ready("local-discovery-cache-sync")));
        hooks.push(Arc::new(discovery::Workers(Arc::clone(peers))));
    }
    Ok(peers)
}
