//! What is known of the other servers.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use api_types::apidiscovery_v2::APIGroupDiscovery;
use arc_swap::ArcSwap;
use base::SharedRng;
use component_base::lifecycle::Lifecycle;
use component_base::metrics::Metrics;
use component_base::reload::spawn_reloader;
use component_base::tls::{CaFile, ClientIdentity, ClientTls, ServerTrust, TlsError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::cluster_wide::Version;
use super::metrics::PeerMetrics;
use super::union;
use crate::aggregation::connections::Connections;
use crate::config::{AggregationConfig, PeerConfig};
use crate::gates;
use crate::request::RequestInfo;

/// The name that every API server's certificate has.
const NAME: &str = "kubernetes.default.svc";

/// Why peers cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// A flag of a feature that is off.
    #[error("--{0} requires UnknownVersionInteroperabilityProxy feature to be turned on")]
    Off(&'static str),
    /// There is nothing to show them.
    #[error("error building peer proxy handler, proxy-cert-file not specified")]
    NoCertificate,
    /// Certificates are bad.
    #[error("error building peer proxy handler: {0}")]
    Tls(#[from] TlsError),
}

/// The other servers, where requests may be passed on to them.
pub(crate) struct Peers {
    pub(super) metrics: PeerMetrics,
    pub(super) tls: (Arc<ClientConfig>, ServerName<'static>),
    known: ArcSwap<Known>,
    rng: SharedRng,
}

/// The servers by their ids. It is never changed: another takes its place.
#[derive(Default)]
pub(crate) struct Known {
    pub(super) servers: BTreeMap<String, Arc<Peer>>,
    /// Grows with every change.
    pub(crate) generation: u64,
}

/// Another server.
pub(crate) struct Peer {
    /// Of which run this is known, by what its lease says.
    pub(super) holder: String,
    /// The groups that it serves, but for that of the core.
    pub(super) groups: Vec<APIGroupDiscovery>,
    /// Group, version and resource of all that it serves.
    served: HashSet<(String, String, String)>,
    pub(super) connections: Arc<Connections>,
}

impl Peer {
    /// A server that says this of itself, in its documents of the core and of the other groups.
    pub(super) fn new(holder: String, core: &[APIGroupDiscovery], groups: Vec<APIGroupDiscovery>) -> Self {
        let mut served = HashSet::new();
        for group in core.iter().chain(&groups) {
            for version in &group.versions {
                let places = version.resources.iter().map(|own| own.resource.clone());
                served.extend(places.map(|name| (group.metadata.name.clone(), version.version.clone(), name)));
            }
        }
        Self { holder, groups, served, connections: Arc::default() }
    }

    /// The same server without some versions.
    pub(super) fn without(self: &Arc<Self>, versions: &BTreeSet<Version>) -> Arc<Self> {
        let is_kept = |group: &str, version: &str| !versions.contains(&(group.to_owned(), version.to_owned()));
        if self.served.iter().all(|(group, version, _)| is_kept(group, version)) {
            return Arc::clone(self);
        }
        let mut groups = self.groups.clone();
        for group in &mut groups {
            let name = &group.metadata.name;
            group.versions.retain(|own| is_kept(name, &own.version));
        }
        groups.retain(|group| !group.versions.is_empty());
        let served = self.served.iter().filter(|(group, version, _)| is_kept(group, version));
        let (holder, connections) = (self.holder.clone(), Arc::clone(&self.connections));
        Arc::new(Self { holder, groups, served: served.cloned().collect(), connections })
    }

    fn serves(&self, info: &RequestInfo) -> bool {
        let place = (info.group.clone(), info.version.clone(), info.resource.clone());
        self.served.contains(&place)
    }
}

impl Peers {
    /// Knows of none yet; nothing where requests are not to be passed on.
    ///
    /// # Errors
    /// When the flags make no sense together, or certificates are bad.
    pub(crate) fn new(
        config: &PeerConfig,
        others: &AggregationConfig,
        lifecycle: &Lifecycle,
        metrics: &Metrics,
    ) -> Result<Option<Arc<Self>>, PeersError> {
        if !lifecycle.gates().enabled(gates::PEERS) {
            return match config.first_flag() {
                Some(flag) => Err(PeersError::Off(flag)),
                None => Ok(None),
            };
        }
        let Some(ca_file) = &config.ca_file else { return Ok(None) };
        let Some((certificate, key)) = &others.client_pair else { return Err(PeersError::NoCertificate) };
        let (ca, identity) = (CaFile::load(ca_file)?, ClientIdentity::load(certificate, key)?);
        let trust = ServerTrust::Bundle(ca.bundle());
        spawn_reloader(lifecycle.tasks(), vec![Arc::clone(&ca) as _, Arc::clone(&identity) as _]);
        // Upgrades need HTTP/1.1.
        let tls = ClientTls { identity, alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(trust) };
        Ok(Some(Arc::new(Self {
            metrics: PeerMetrics::new(metrics),
            tls: (tls.config()?, tls.name_for(NAME)?),
            known: ArcSwap::default(),
            rng: SharedRng::clone(lifecycle.rng()),
        })))
    }

    /// What is known now.
    pub(crate) fn known(&self) -> Arc<Known> {
        self.known.load_full()
    }

    /// Replaces what is known.
    pub(super) fn put(&self, servers: BTreeMap<String, Arc<Peer>>) {
        let generation = self.known.load().generation + 1;
        self.known.store(Arc::new(Known { servers, generation }));
    }

    /// Those that serve what a request asks for, with their ids, from one on that chance names.
    pub(crate) fn that_serve(&self, info: &RequestInfo) -> Vec<(String, Arc<Peer>)> {
        let known = self.known.load();
        let fitting = known.servers.iter().filter(|(_, peer)| peer.serves(info));
        let mut fitting: Vec<_> = fitting.map(|(id, peer)| (id.clone(), Arc::clone(peer))).collect();
        let first = self.rng.below(u64::try_from(fitting.len()).unwrap_or(0));
        fitting.rotate_left(usize::try_from(first).unwrap_or(0));
        fitting
    }

    /// The groups of all servers, of which these are this one's; its place among the others is that of its id.
    pub(crate) fn united(&self, id: &str, own: &[APIGroupDiscovery]) -> Vec<APIGroupDiscovery> {
        let known = self.known.load();
        let others = known.servers.iter().map(|(id, peer)| (id.as_str(), peer.groups.as_slice()));
        let all: BTreeMap<&str, &[APIGroupDiscovery]> = others.chain([(id, own)]).collect();
        union::groups(&all.into_values().collect::<Vec<_>>())
    }

    /// Counts a request for discovery: of this server alone, or of all of them out of what is known already or not.
    pub(crate) fn count_discovery(&self, asked: Asked) {
        match asked {
            Asked::Alone => self.metrics.no_peer.with(&[]).inc(),
            Asked::Again => self.metrics.hits.with(&[]).inc(),
            Asked::Anew => self.metrics.misses.with(&[]).inc(),
        }
    }
}

/// How discovery was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// What this server serves.
    Alone,
    /// What all serve, as it was known already.
    Again,
    /// What all serve, for which the document had to be made.
    Anew,
}
