//! Keeps the table of one family up to date: which Services changed, what their rules are now, and the transaction that
//! says so to the kernel. Only what changed is computed again; everything is after a start and after a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use sys::net::{Conntrack, NetError, Network, Protocol, Tracked};
use sys::packet_filter::{FilterError, PacketFilter};
use tokio::time::Instant;

use crate::Family;
use crate::endpoints::{Endpoint, Place, Selection, gather, select};
use crate::family::contains;
use crate::flows::{self, Datagrams};
use crate::health_ports::Check;
use crate::metrics::WithoutLocal;
use crate::nftables::{self, Desired, NodePorts, Present, Shares, TABLE, TableOptions};
use crate::service::{PortKey, ServedPort, served_ports};

/// How long a chain stays empty before it is deleted: kernels drop references to it a moment later.
const STALE_DELAY: Duration = Duration::from_secs(1);
/// How often everything is written again, whatever changed: this is what mends a table that others touched.
const FULL_INTERVAL: Duration = Duration::from_secs(3600);
/// Services whose changes go into one transaction; what a transaction costs the kernel grows faster than its size.
const SERVICES_AT_ONCE: usize = 200;

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
    options: TableOptions,
    node_port_networks: Vec<String>,
    place: Place,
    filter: Arc<dyn PacketFilter>,
    network: Arc<dyn Network>,
    shares: Shares,
    served: BTreeMap<ObjectKey, Served>,
    /// What the table holds that is no Service's; nothing before everything is written for the first time or anew.
    fixed: Option<Desired>,
    last_full: Option<Instant>,
    stale: BTreeMap<String, Instant>,
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
    /// An engine that knows nothing of the table yet.
    pub fn new(options: TableOptions, place: Place, filter: Arc<dyn PacketFilter>, network: Arc<dyn Network>) -> Self {
        Self {
            options,
            node_port_networks: Vec::new(),
            place,
            filter,
            network,
            shares: Shares::default(),
            served: BTreeMap::new(),
            fixed: None,
            last_full: None,
            stale: BTreeMap::new(),
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

    /// The node is in another zone: other endpoints are near, of whatever Service.
    pub fn move_to(&mut self, zone: String) {
        if self.place.zone != zone {
            self.place.zone = zone;
            self.fixed = None;
        }
    }

    /// The family of the table.
    #[must_use]
    pub fn family(&self) -> Family {
        self.options.family
    }

    /// Whether the next sync has to write everything.
    #[must_use]
    pub fn needs_full(&self, now: Instant) -> bool {
        self.fixed.is_none() || self.last_full.is_none_or(|last| now.duration_since(last) >= FULL_INTERVAL)
    }

    /// Brings the table up to date with the Services that changed.
    ///
    /// # Errors
    /// When the kernel refuses the transaction; the next sync then writes everything.
    pub async fn sync(
        &mut self,
        source: &dyn Source,
        changed: &BTreeSet<ObjectKey>,
        now: Instant,
    ) -> Result<(), FilterError> {
        self.options.service_cidrs = source.service_cidrs(self.options.family);
        let outcome = if self.needs_full(now) {
            self.sync_all(source, now).await
        } else {
            self.sync_changed(source, changed, now).await
        };
        if outcome.is_err() {
            self.fixed = None;
        } else if self.flows_due {
            self.forget_stale_flows().await;
        }
        outcome
    }

    async fn sync_all(&mut self, source: &dyn Source, now: Instant) -> Result<(), FilterError> {
        // Only where it is these networks that say it: all addresses, or the node's own, do not change.
        if matches!(self.options.node_ports, NodePorts::Addresses(_)) && !self.node_port_networks.is_empty() {
            let addresses = node_port_addresses(&self.node_port_networks, self.network.as_ref()).await;
            self.options.node_ports = NodePorts::Addresses(addresses);
        }
        // After a start, or a sync that failed, nobody knows what happened to flows.
        self.flows_due = true;
        (self.shares, self.served) = (Shares::default(), BTreeMap::new());
        let all = source.services().into_iter().map(|key| (key.clone(), self.compute(source, &key)));
        let (mut rules, mut served) = (BTreeMap::new(), BTreeMap::new());
        for (key, (wanted, known)) in all.collect::<Vec<_>>() {
            rules.insert(key.clone(), wanted);
            served.insert(key, known);
        }
        self.shares.change(rules);
        self.served = served;
        let present = self.present().await;
        let fixed = nftables::desired(&self.options, []);
        let mut table = self.shares.whole();
        nftables::add_fixed(&mut table, &fixed);
        for script in nftables::full(&self.options, &table, self.shares.parts(), &present) {
            self.filter.apply(&script).await?;
        }
        let unknown = present.chains.iter().filter(|name| name.contains('/') && !table.chains.contains_key(*name));
        self.stale = unknown.map(|name| (name.clone(), now)).collect();
        (self.fixed, self.last_full) = (Some(fixed), Some(now));
        Ok(())
    }

    async fn sync_changed(
        &mut self,
        source: &dyn Source,
        changed: &BTreeSet<ObjectKey>,
        now: Instant,
    ) -> Result<(), FilterError> {
        self.sync_fixed().await?;
        let changed: Vec<&ObjectKey> = changed.iter().collect();
        for some in changed.chunks(SERVICES_AT_ONCE) {
            self.sync_some(source, some, now).await?;
        }
        // The rules are right whether or not what they do not use any more is gone.
        if let Err(error) = self.delete_stale(now).await {
            tracing::warn!(%error, "Deleting unused chains failed");
            self.counts.cleanup_failures += 1;
            self.fixed = None;
        }
        Ok(())
    }

    /// What is no Service's changes with the networks of cluster addresses only.
    async fn sync_fixed(&mut self) -> Result<(), FilterError> {
        let next = nftables::desired(&self.options, []);
        let Some(fixed) = self.fixed.as_ref().filter(|fixed| **fixed != next) else { return Ok(()) };
        let (text, _) = nftables::partial(&self.options, fixed, &next);
        self.filter.apply(&text).await?;
        self.fixed = Some(next);
        Ok(())
    }

    async fn sync_some(&mut self, source: &dyn Source, keys: &[&ObjectKey], now: Instant) -> Result<(), FilterError> {
        let (mut rules, none) = (BTreeMap::new(), Served::default());
        for key in keys {
            let (wanted, served) = self.compute(source, key);
            self.flows_due |= self.served.get(*key).unwrap_or(&none).datagrams != served.datagrams;
            rules.insert((*key).clone(), wanted);
            if source.service(key).is_some() {
                self.served.insert((*key).clone(), served);
            } else {
                self.served.remove(*key);
            }
        }
        let change = self.shares.change(rules);
        let (text, stale) = nftables::partial(&self.options, &change.before, &change.after);
        if !text.is_empty() {
            self.filter.apply(&text).await?;
        }
        self.stale.retain(|name, _| !change.after.chains.contains_key(name));
        self.stale.extend(stale.into_iter().map(|name| (name, now)));
        Ok(())
    }

    /// What happened beside the rules since this was last asked.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    fn compute(&self, source: &dyn Source, key: &ObjectKey) -> (Desired, Served) {
        let Some(service) = source.service(key) else { return Default::default() };
        let slices = source.slices(key);
        let own = slices.iter().filter(|slice| slice.address_type == self.options.family.api_name());
        let endpoints = gather(own.map(AsRef::as_ref), &self.place);
        let ports = served_ports(&service, self.options.family);
        let of = |port: &ServedPort| endpoints.get(&port.key).map_or(&[][..], Vec::as_slice);
        let selections: Vec<_> = ports.iter().map(|port| select(port, of(port), &self.place)).collect();
        let mut rules = Desired::default();
        nftables::add_ports(&mut rules, &self.options, ports.iter().zip(&selections));
        let datagrams = ports.iter().filter_map(|port| Some((port.key.clone(), Datagrams::of(port, of(port))?)));
        let check = check_of(&ports, endpoints.values().flatten());
        let without_local = without_local(ports.iter().zip(&selections));
        (rules, Served { datagrams: datagrams.collect(), check, without_local })
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

    async fn delete_stale(&mut self, now: Instant) -> Result<(), FilterError> {
        let due: BTreeSet<String> = self
            .stale
            .iter()
            .filter(|(_, since)| now.duration_since(**since) >= STALE_DELAY)
            .map(|(name, _)| name.clone())
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        self.stale.retain(|name, _| !due.contains(name));
        self.filter.apply(&nftables::deletion(&self.options, &due)).await
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

    /// Whether emptied chains wait to be deleted.
    #[must_use]
    pub fn has_stale(&self) -> bool {
        !self.stale.is_empty()
    }

    /// What the table holds; nothing where there is no table. Names are enough, and elements would take long to list.
    async fn present(&self) -> Present {
        let mut present = Present::default();
        for (what, entry, names) in [("chains", "chain", &mut present.chains), ("sets", "set", &mut present.sets)] {
            let Ok(listed) = self.filter.list_terse(&[what, self.options.family.nft()]).await else { continue };
            let entries = listed["nftables"].as_array().into_iter().flatten();
            let own = entries.map(|one| &one[entry]).filter(|one| one["table"] == TABLE);
            names.extend(own.filter_map(|one| one["name"].as_str().map(str::to_owned)));
        }
        present
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
fn without_local<'a>(ports: impl Iterator<Item = (&'a ServedPort, &'a Selection)>) -> WithoutLocal {
    let mut count = WithoutLocal::default();
    for (port, _) in ports.filter(|(_, selection)| selection.any && selection.local.is_empty()) {
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
