//! Keeps the rules of one family up to date: which Services changed, and who is to answer for them now. How that is
//! written is the backend's. Only what changed is computed again; everything is after a start and after a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use sys::net::{Conntrack, NetError, Network, Protocol, Tracked};
use tokio::time::Instant;

use crate::Family;
use crate::backend::{Backend, BackendError, NodePorts, Route, Routes, RuleOptions};
use crate::endpoints::{Endpoint, NodeTopology, gather, select};
use crate::family::contains;
use crate::flows::{self, Datagrams};
use crate::health_ports::Check;
use crate::metrics::WithoutLocal;
use crate::service::{ExternalIps, PortKey, ServedPort, served_ports};

/// How often everything is written again, whatever changed: this is what mends rules that others touched.
const FULL_INTERVAL: Duration = Duration::from_secs(3600);

/// Where Services and their endpoints come from.
pub trait Source: Send + Sync {
    /// The Service, if the proxy is to serve it.
    fn service(&self, key: &ObjectKey) -> Option<Arc<Service>>;
    /// The slices of a Service.
    fn slices(&self, key: &ObjectKey) -> Vec<Arc<EndpointSlice>>;
    /// Every Service.
    fn services(&self) -> Vec<ObjectKey>;
    /// The networks of cluster addresses of a family, as far as they are known; sorted.
    fn service_cidrs(&self, family: Family) -> Vec<String>;
}

/// What is known of a Service beside its rules.
#[derive(Default)]
struct Served {
    datagrams: BTreeMap<PortKey, Datagrams>,
    /// What load balancers may ask about it.
    check: Option<Check>,
    without_local: WithoutLocal,
}

/// The engine of a family.
pub struct Engine {
    options: RuleOptions,
    external_ips: ExternalIps,
    node_port_networks: Vec<String>,
    node: NodeTopology,
    backend: Box<dyn Backend>,
    network: Arc<dyn Network>,
    served: BTreeMap<ObjectKey, Served>,
    /// When everything was written; nothing where it has to be for the first time or anew.
    last_full: Option<Instant>,
    /// Whether flows of UDP may have gone stale since they were last looked at.
    flows_due: bool,
    counts: Counts,
}

/// What happened beside the rules since it was last asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// How often unused chains could not be deleted.
    pub cleanup_failures: u64,
    /// How long looking at tracked flows took; nothing where it was not done.
    pub reconciled: Option<Duration>,
    /// How many flows were forgotten.
    pub forgotten: usize,
}

impl Engine {
    /// An engine that knows nothing of the rules yet.
    pub fn new(options: RuleOptions, node: NodeTopology, backend: Box<dyn Backend>, network: Arc<dyn Network>) -> Self {
        Self {
            options,
            external_ips: ExternalIps::default(),
            node_port_networks: Vec::new(),
            node,
            backend,
            network,
            served: BTreeMap::new(),
            last_full: None,
            flows_due: false,
            counts: Counts::default(),
        }
    }

    /// NodePorts answer at the machine's addresses in these networks, which are looked up with every full sync; without
    /// any they answer where the options say.
    #[must_use]
    pub fn with_node_port_networks(mut self, networks: Vec<String>) -> Self {
        self.node_port_networks = networks;
        self
    }

    /// Whether Services are served at addresses that their users chose.
    #[must_use]
    pub fn with_external_ips(mut self, external_ips: ExternalIps) -> Self {
        self.external_ips = external_ips;
        self
    }

    /// The node is in another zone: other endpoints are near, of whatever Service.
    pub fn move_to(&mut self, zone: String) {
        if self.node.zone != zone {
            self.node.zone = zone;
            self.last_full = None;
        }
    }

    /// The family of the rules.
    #[must_use]
    pub fn family(&self) -> Family {
        self.options.family
    }

    /// Whether the next sync has to write everything.
    #[must_use]
    pub fn needs_full(&self, now: Instant) -> bool {
        self.last_full.is_none_or(|last| now.duration_since(last) >= FULL_INTERVAL)
    }

    /// Brings the rules up to date with the Services that changed.
    ///
    /// # Errors
    /// When the backend cannot write them; the next sync then writes everything.
    pub async fn sync(
        &mut self,
        source: &dyn Source,
        changed: &BTreeSet<ObjectKey>,
        now: Instant,
    ) -> Result<(), BackendError> {
        self.options.service_cidrs = source.service_cidrs(self.options.family);
        let written = if self.needs_full(now) {
            self.sync_all(source, now).await
        } else {
            self.sync_changed(source, changed, now).await
        };
        if written.is_err() {
            self.last_full = None;
        } else if self.flows_due {
            self.forget_stale_flows().await;
        }
        written
    }

    async fn sync_all(&mut self, source: &dyn Source, now: Instant) -> Result<(), BackendError> {
        // Only where it is these networks that say it: all addresses, or the node's own, do not change.
        if matches!(self.options.node_ports, NodePorts::Addresses(_)) && !self.node_port_networks.is_empty() {
            let addresses = node_port_addresses(&self.node_port_networks, self.network.as_ref()).await;
            self.options.node_ports = NodePorts::Addresses(addresses);
        }
        // After a start, or a sync that failed, nobody knows what happened to flows.
        self.flows_due = true;
        let mut all = Routes::new();
        self.served.clear();
        for key in source.services() {
            let (routes, served) = self.compute(source, &key);
            all.insert(key.clone(), routes);
            self.served.insert(key, served);
        }
        self.backend.replace(&self.options, all, now).await?;
        self.last_full = Some(now);
        Ok(())
    }

    async fn sync_changed(
        &mut self,
        source: &dyn Source,
        changed: &BTreeSet<ObjectKey>,
        now: Instant,
    ) -> Result<(), BackendError> {
        let (mut all, none) = (Routes::new(), Served::default());
        for key in changed {
            let (routes, served) = self.compute(source, key);
            self.flows_due |= self.served.get(key).unwrap_or(&none).datagrams != served.datagrams;
            all.insert(key.clone(), routes);
            if source.service(key).is_some() {
                self.served.insert(key.clone(), served);
            } else {
                self.served.remove(key);
            }
        }
        self.backend.change(&self.options, all, now).await?;
        if let Err(error) = self.backend.collect(&self.options, now).await {
            tracing::warn!(%error, "Deleting unused chains failed");
            self.counts.cleanup_failures += 1;
            self.last_full = None;
        }
        Ok(())
    }

    /// What happened beside the rules since this was last asked.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    fn compute(&self, source: &dyn Source, key: &ObjectKey) -> (Vec<Route>, Served) {
        let Some(service) = source.service(key) else { return Default::default() };
        let slices = source.slices(key);
        let own = slices.iter().filter(|slice| slice.address_type == self.options.family.api_name());
        let endpoints = gather(own.map(AsRef::as_ref), &self.node);
        let ports = served_ports(&service, self.options.family, self.external_ips);
        let of = |port: &ServedPort| endpoints.get(&port.key).map_or(&[][..], Vec::as_slice);
        let datagrams = ports.iter().filter_map(|port| Some((port.key.clone(), Datagrams::of(port, of(port))?)));
        let (datagrams, check) = (datagrams.collect(), check_of(&ports, endpoints.values().flatten()));
        let routed = ports.into_iter().map(|port| Route { endpoints: select(&port, of(&port), &self.node), port });
        let routes: Vec<Route> = routed.collect();
        let without_local = without_local(&routes);
        (routes, Served { datagrams, check, without_local })
    }

    /// What could not be done is tried again with the next sync: rules are right without it.
    async fn forget_stale_flows(&mut self) {
        let start = Instant::now();
        match self.reconcile_flows().await {
            Ok(()) => self.flows_due = false,
            Err(error) => tracing::warn!(%error, "Stale connections stay tracked"),
        }
        self.counts.reconciled = Some(start.elapsed());
    }

    async fn reconcile_flows(&mut self) -> Result<(), NetError> {
        let ports = || self.served.values().flat_map(|served| served.datagrams.values());
        if ports().next().is_none() {
            return Ok(());
        }
        let v6 = self.options.family == Family::V6;
        let tracked = self.network.connections(Protocol::Udp, v6).await?;
        for (flow, times) in flows::stale(&tracked, ports()) {
            self.network.forget_connections(&which(flow, v6)).await?;
            self.counts.forgotten += times;
        }
        Ok(())
    }

    /// The ports that load balancers may ask at, as of the last sync.
    #[must_use]
    pub fn checks(&self) -> BTreeMap<ObjectKey, Check> {
        self.served.iter().filter_map(|(key, served)| Some((key.clone(), served.check?))).collect()
    }

    /// How many Service ports want an endpoint here and have none, as of the last sync.
    #[must_use]
    pub fn without_local(&self) -> WithoutLocal {
        let all = self.served.values().map(|served| served.without_local);
        all.fold(WithoutLocal::default(), |sum, one| WithoutLocal {
            internal: sum.internal + one.internal,
            external: sum.external + one.external,
        })
    }

    /// Whether rules out of use wait to be deleted.
    #[must_use]
    pub fn has_stale(&self) -> bool {
        self.backend.has_stale()
    }
}

/// The machine's addresses in these networks, but for those that only the machine itself reaches.
pub async fn node_port_addresses(networks: &[String], network: &dyn Network) -> BTreeSet<IpAddr> {
    let interfaces = network.interfaces().await.unwrap_or_else(|error| {
        tracing::error!(%error, "Listing the machine's addresses failed: there are no NodePorts");
        Vec::new()
    });
    let all = interfaces.iter().flat_map(|interface| interface.addresses.iter().map(|address| address.ip));
    all.filter(|ip| !ip.is_loopback() && networks.iter().any(|network| contains(network, *ip))).collect()
}

/// Flows are told apart by where they go and who answers, not by their clients: all of them go together.
fn which(flow: Tracked, v6: bool) -> Conntrack {
    Conntrack {
        protocol: Protocol::Udp,
        v6,
        original_destination: Some(flow.original_destination),
        original_port: Some(flow.original_port),
        reply_source: Some(flow.reply_source),
        reply_port: Some(flow.reply_port),
    }
}

/// The ports that have endpoints, but none where their policy wants one.
fn without_local(routes: &[Route]) -> WithoutLocal {
    let mut count = WithoutLocal::default();
    for Route { port, .. } in routes.iter().filter(|one| one.endpoints.any && one.endpoints.local.is_empty()) {
        count.internal += usize::from(port.internal_local);
        count.external += usize::from(port.external_local);
    }
    count
}

/// A Service counts the ready endpoints of this node once, whatever their ports.
fn check_of<'a>(ports: &[ServedPort], endpoints: impl Iterator<Item = &'a Endpoint>) -> Option<Check> {
    let port = ports.iter().map(|port| port.health_check_port).find(|port| *port != 0)?;
    let local: BTreeSet<_> = endpoints.filter(|one| one.local && one.ready).map(|one| one.address).collect();
    Some(Check { port, local_endpoints: local.len() })
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "engine_random_tests.rs"]
mod random_tests;

#[cfg(test)]
#[path = "engine_flow_tests.rs"]
mod flow_tests;

#[cfg(test)]
#[path = "engine_size_tests.rs"]
mod size_tests;
