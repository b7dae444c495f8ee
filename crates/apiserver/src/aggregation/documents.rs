//! What other servers serve, as they said last.

use std::sync::Arc;

use api_types::apidiscovery_v2::constants::discovery_freshness;
use api_types::apidiscovery_v2::{APIResourceDiscovery, APIVersionDiscovery};

use super::known::Known;
use super::table::Remote;

/// What other servers serve.
#[derive(Default)]
pub(super) struct Documents(pub(super) Known<Arc<APIVersionDiscovery>>);

impl Documents {
    /// What a server said last; nothing, and that this is not all, of one that has said nothing.
    pub(super) fn of(&self, remote: &Remote) -> APIVersionDiscovery {
        self.0.of(&remote.name).map_or_else(|| stale(remote), |known| APIVersionDiscovery::clone(&known))
    }

    pub(super) fn generation(&self) -> u64 {
        self.0.generation()
    }
}

/// A server that has not answered, or no more.
pub(super) fn stale(remote: &Remote) -> APIVersionDiscovery {
    APIVersionDiscovery {
        version: remote.version.clone(),
        resources: Vec::new(),
        freshness: discovery_freshness::STALE.to_owned(),
    }
}

/// A server that has.
pub(super) fn current(remote: &Remote, resources: Vec<APIResourceDiscovery>) -> APIVersionDiscovery {
    let freshness = discovery_freshness::CURRENT.to_owned();
    APIVersionDiscovery { version: remote.version.clone(), resources, freshness }
}
