//! Keeps the table of one family up to date: which Services changed, what their rules are now, and the transaction that
//! says so to the kernel. Only what changed is computed again; everything is after a start and after a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use sys::net::{Conntrack, Network, Protocol};
use sys::packet_filter::{FilterError, PacketFilter};
use tokio::time::Instant;

use crate::Family;
use crate::endpoints::{Endpoint, Place, Selection, gather, select};
use crate::health_ports::Check;
use crate::metrics::WithoutLocal;
use crate::nftables::{self, Desired, Present, TABLE, TableOptions};
use crate::service::{PortKey, ServedPort, served_ports};

/// How long a chain stays empty before it is deleted: kernels drop references to it a moment later.
const STALE_DELAY: Duration = Duration::from_secs(1);
/// How often everything is written again, whatever changed: this is what mends a table that others touched.
const FULL_INTERVAL: Duration = Duration::from_secs(3600);

/// Where Services and their endpoints come from.
pub trait Source: Send + Sync {
    /// The Service, if the proxy is to serve it.
    fn service(&self, key: &ObjectKey) -> Option<Arc<Service>>;
    /// The slices of a Service.
    fn slices(&self, key: &ObjectKey) -> Vec<Arc<EndpointSlice>>;
    /// Every Service.
    fn services(&self) -> Vec<ObjectKey>;
}

/// What a Service adds to the table, and where its UDP traffic goes.
#[derive(Default)]
struct Applied {
    rules: Desired,
    datagrams: BTreeMap<PortKey, Datagrams>,
    /// What load balancers may ask about it.
    check: Option<Check>,
    without_local: WithoutLocal,
}

/// A UDP port whose clients the kernel remembers.
#[derive(Clone, PartialEq, Eq)]
struct Datagrams {
    /// Where clients go; at its node port they may go to any address.
    addresses: Vec<(Option<IpAddr>, u16)>,
    /// Those that serve, on whatever node and whether or not new clients go there: who talks to them may go on.
    endpoints: BTreeSet<(IpAddr, u16)>,
}

/// The engine of a family.
pub struct Engine {
    options: TableOptions,
    place: Place,
    filter: Arc<dyn PacketFilter>,
    network: Arc<dyn Network>,
    applied: BTreeMap<ObjectKey, Applied>,
    fixed: Option<Desired>,
    last_full: Option<Instant>,
    stale: BTreeMap<String, Instant>,
    cleanup_failures: u64,
}

impl Engine {
    /// An engine that knows nothing of the table yet.
    pub fn new(options: TableOptions, place: Place, filter: Arc<dyn PacketFilter>, network: Arc<dyn Network>) -> Self {
        let (applied, fixed, last_full, stale) = (BTreeMap::new(), None, None, BTreeMap::new());
        Self { options, place, filter, network, applied, fixed, last_full, stale, cleanup_failures: 0 }
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
        let outcome = if self.needs_full(now) {
            self.sync_all(source, now).await
        } else {
            self.sync_changed(source, changed, now).await
        };
        if outcome.is_err() {
            self.fixed = None;
        }
        outcome
    }

    async fn sync_all(&mut self, source: &dyn Source, now: Instant) -> Result<(), FilterError> {
        let present = self.present().await;
        let all: BTreeMap<ObjectKey, Applied> =
            source.services().into_iter().map(|key| (key.clone(), self.compute(source, &key))).collect();
        let mut table = nftables::desired(&self.options, []);
        for applied in all.values() {
            merge(&mut table, &applied.rules);
        }
        self.filter.apply(&nftables::full(&self.options, &table, &present)).await?;
        let unknown = present.chains.iter().filter(|name| name.contains('/') && !table.chains.contains_key(*name));
        self.stale = unknown.map(|name| (name.clone(), now)).collect();
        self.fixed = Some(nftables::desired(&self.options, []));
        let before = std::mem::take(&mut self.applied);
        let known = self.last_full.is_some();
        (self.applied, self.last_full) = (all, Some(now));
        // What changed may have come with this, or with a sync that failed. After a start nothing is known of before.
        let none = Applied::default();
        for (key, new) in self.applied.iter().filter(|_| known) {
            self.forget_datagrams(before.get(key).unwrap_or(&none), new).await;
        }
        Ok(())
    }

    async fn sync_changed(
        &mut self,
        source: &dyn Source,
        changed: &BTreeSet<ObjectKey>,
        now: Instant,
    ) -> Result<(), FilterError> {
        let (mut before, mut after) = (Desired::default(), Desired::default());
        let mut computed = Vec::new();
        for key in changed {
            let next = self.compute(source, key);
            if let Some(old) = self.applied.get(key) {
                merge(&mut before, &old.rules);
            }
            merge(&mut after, &next.rules);
            computed.push((key.clone(), next));
        }
        // A set that lost its last element must still be compared.
        for set in before.elements.keys() {
            after.elements.entry(set).or_default();
        }
        let (text, stale) = nftables::partial(&self.options, &before, &after);
        if !text.is_empty() {
            self.filter.apply(&text).await?;
        }
        self.stale.retain(|name, _| !after.chains.contains_key(name));
        self.stale.extend(stale.into_iter().map(|name| (name, now)));
        for (key, next) in computed {
            let old = self.applied.remove(&key).unwrap_or_default();
            self.forget_datagrams(&old, &next).await;
            if next.rules != Desired::default() {
                self.applied.insert(key, next);
            }
        }
        // The rules are right whether or not what they do not use any more is gone.
        if let Err(error) = self.delete_stale(now).await {
            tracing::warn!(%error, "Deleting unused chains failed");
            self.cleanup_failures += 1;
            self.fixed = None;
        }
        Ok(())
    }

    /// How often unused chains could not be deleted since this was last asked.
    pub fn take_cleanup_failures(&mut self) -> u64 {
        std::mem::take(&mut self.cleanup_failures)
    }

    fn compute(&self, source: &dyn Source, key: &ObjectKey) -> Applied {
        let Some(service) = source.service(key) else { return Applied::default() };
        let slices = source.slices(key);
        let own = slices.iter().filter(|slice| slice.address_type == self.options.family.api_name());
        let endpoints = gather(own.map(AsRef::as_ref), &self.place);
        let ports = served_ports(&service, self.options.family);
        let none = Vec::new();
        let selections: Vec<_> =
            ports.iter().map(|port| select(port, endpoints.get(&port.key).unwrap_or(&none), &self.place)).collect();
        let mut rules = Desired::default();
        nftables::add_ports(&mut rules, &self.options, ports.iter().zip(&selections));
        let datagrams = ports.iter().filter(|port| port.key.protocol == "UDP").map(|port| {
            let serving = endpoints.get(&port.key).unwrap_or(&none).iter().filter(|one| one.ready || one.serving);
            let endpoints = serving.map(|one| (one.address, one.port)).collect();
            (port.key.clone(), Datagrams { addresses: addresses_of(port), endpoints })
        });
        let check = check_of(&ports, endpoints.values().flatten());
        let without_local = without_local(ports.iter().zip(&selections));
        Applied { rules, datagrams: datagrams.collect(), check, without_local }
    }

    /// The kernel goes on sending a UDP client to an endpoint that is gone, or nowhere when there was none before,
    /// until it is told to forget. Where nobody serves now there is no better place to go.
    async fn forget_datagrams(&self, old: &Applied, new: &Applied) {
        for (key, now) in new.datagrams.iter().filter(|(_, now)| !now.endpoints.is_empty()) {
            let nobody = BTreeSet::new();
            let before = old.datagrams.get(key).map_or(&nobody, |before| &before.endpoints);
            let gone: BTreeSet<IpAddr> = before.difference(&now.endpoints).map(|(address, _)| *address).collect();
            let sources = gone.into_iter().map(Some).chain(before.is_empty().then_some(None));
            for reply_source in sources {
                for (address, port) in &now.addresses {
                    self.forget(key, (*address, *port), reply_source).await;
                }
            }
        }
    }

    async fn forget(&self, key: &PortKey, (address, port): (Option<IpAddr>, u16), reply_source: Option<IpAddr>) {
        let which = Conntrack {
            protocol: Protocol::Udp,
            v6: self.options.family == Family::V6,
            original_destination: address,
            original_port: Some(port),
            reply_source,
        };
        if let Err(error) = self.network.forget_connections(&which).await {
            tracing::warn!(error = %error, service = key.display(), "stale connections stay tracked");
        }
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
        self.applied.iter().filter_map(|(key, applied)| Some((key.clone(), applied.check?))).collect()
    }

    /// How many Service ports want an endpoint here and have none, as of the last sync.
    #[must_use]
    pub fn without_local(&self) -> WithoutLocal {
        let all = self.applied.values().map(|applied| applied.without_local);
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

    /// What the table holds; nothing where there is no table.
    async fn present(&self) -> Present {
        let mut present = Present::default();
        let Ok(listed) = self.filter.list(&["table", self.options.family.nft(), TABLE]).await else { return present };
        for entry in listed["nftables"].as_array().into_iter().flatten() {
            let name = |what: &str| entry[what]["name"].as_str().map(str::to_owned);
            present.chains.extend(name("chain"));
            present.sets.extend(name("set").or_else(|| name("map")));
        }
        present
    }
}

/// Where the clients of a port go.
fn addresses_of(port: &ServedPort) -> Vec<(Option<IpAddr>, u16)> {
    let others = port.external_ips.iter().chain(&port.load_balancer_ips).copied();
    let own = std::iter::once(port.cluster_ip).chain(others).map(|ip| (Some(ip), port.port));
    own.chain((port.node_port != 0).then_some((None, port.node_port))).collect()
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

/// Adds one part of a table to another.
fn merge(table: &mut Desired, part: &Desired) {
    table.chains.extend(part.chains.clone());
    table.affinity.extend(part.affinity.clone());
    for (set, elements) in &part.elements {
        table.elements.entry(set).or_default().extend(elements.clone());
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
