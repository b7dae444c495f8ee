//! Random changes of Services and their endpoints: after each sync of what changed, the table is what a sync of
//! everything makes of an empty one. Services take their addresses, ports and endpoints from small pools, so that they
//! share and hand them over. Once with the packet filter's fake, once with the kernel's own, in a network namespace.

use std::path::Path;

use api_types::core_v1::{ClientIPConfig, LoadBalancerIngress, SessionAffinityConfig};
use api_types::discovery_v1::Endpoint as ApiEndpoint;
use base::{Rng, SharedRng};
use sys::exec::LinuxExec;
use sys::net::FakeNetwork;
use sys::netns::{IpNetns, NetNamespaces as _, path_of};
use sys::packet_filter::{FakePacketFilter, Nft, PacketFilter};

use super::tests::{Fixed, options, service, slice};
use super::*;
use crate::backend::LocalDetector;
use crate::backend::contract::{Fate, Kernel as _, Origin, Packet};
use crate::backend::model::Model;
use crate::nftables::packet_tests::NftKernel;
use crate::nftables::{NftablesBackend, STALE_DELAY, TABLE};

const NODE: &str = "here";
const NODE_IP: &str = "203.0.113.9";
const PODS: &str = "10.0.0.0/16";
const NAMES: u64 = 6;

/// Whether something happens that happens once in so many times.
fn once_in(rng: &SharedRng, times: u64) -> bool {
    rng.below(times) == 0
}

/// An address of IPv4, or the one of IPv6 that stands for it; networks likewise.
fn of_family(family: Family, text: &str) -> String {
    match (family, text.split_once('/')) {
        (Family::V4, _) => text.to_owned(),
        (Family::V6, Some((address, length))) => {
            format!("fd00::{}/{}", address.replace('.', ":"), 96 + length.parse::<u8>().unwrap())
        }
        (Family::V6, None) => format!("fd00::{}", text.replace('.', ":")),
    }
}

/// One of the pool below a network.
fn address(rng: &SharedRng, family: Family, network: &str, pool: u64) -> String {
    of_family(family, &format!("{network}.{}", 1 + rng.below(pool)))
}

fn random_service(rng: &SharedRng, family: Family, name: &str) -> Service {
    let mut service = service(name, &address(rng, family, "10.96.0", 7));
    let spec = &mut service.spec;
    spec.ports[0].protocol = if once_in(rng, 3) { "UDP" } else { "TCP" }.into();
    if once_in(rng, 4) {
        spec.ports[0].name = "x".repeat(63);
    }
    if once_in(rng, 3) {
        spec.external_ips = vec![address(rng, family, "192.0.2", 2)];
    }
    if once_in(rng, 2) {
        spec.type_ = "LoadBalancer".into();
        spec.ports[0].node_port = 30_000 + i32::try_from(rng.below(3)).unwrap();
        let ingress =
            LoadBalancerIngress { ip: address(rng, family, "198.51.100", 2), ..LoadBalancerIngress::default() };
        service.status.load_balancer.ingress.push(ingress);
        if once_in(rng, 2) {
            spec.load_balancer_source_ranges =
                ["203.0.113.0/24", "203.0.113.7/32"].map(|range| of_family(family, range)).to_vec();
        }
    }
    if once_in(rng, 3) {
        spec.external_traffic_policy = "Local".into();
    }
    if once_in(rng, 4) {
        spec.internal_traffic_policy = Some("Local".into());
    }
    if once_in(rng, 3) {
        spec.session_affinity = "ClientIP".into();
        let timeout_seconds = Some(60 + i32::try_from(rng.below(2)).unwrap());
        spec.session_affinity_config =
            Some(SessionAffinityConfig { client_ip: Some(ClientIPConfig { timeout_seconds }) });
    }
    service
}

fn random_slice(rng: &SharedRng, family: Family, of: &Service) -> EndpointSlice {
    let mut slice = slice(&of.metadata.name, &[]);
    slice.address_type = family.api_name().into();
    slice.ports[0].name = Some(of.spec.ports[0].name.clone());
    slice.ports[0].protocol = Some(of.spec.ports[0].protocol.clone());
    for _ in 0..rng.below(4) {
        let mut endpoint = ApiEndpoint { addresses: vec![address(rng, family, "10.0.0", 4)], ..ApiEndpoint::default() };
        endpoint.node_name = once_in(rng, 2).then(|| NODE.to_owned());
        endpoint.conditions.ready = Some(!once_in(rng, 4));
        slice.endpoints.push(endpoint);
    }
    slice
}

/// Something happens to one of the Services; says to which.
fn happen(rng: &SharedRng, family: Family, source: &Fixed) -> ObjectKey {
    let index = rng.below(NAMES);
    let name = if index == 0 { "long-".to_owned() + &"n".repeat(58) } else { format!("s{index}") };
    let key = ObjectKey::new("n", &name);
    let mut state = source.0.lock();
    let known = state.services.get(&key).cloned();
    match (known, rng.below(4)) {
        (Some(_), 0) => drop(state.services.remove(&key)),
        (Some(_), 1) => drop(state.slices.remove(&key)),
        (Some(known), 2) => drop(state.slices.insert(key.clone(), random_slice(rng, family, &known))),
        _ => {
            let service = random_service(rng, family, &name);
            state.slices.insert(key.clone(), random_slice(rng, family, &service));
            state.services.insert(key.clone(), service);
        }
    }
    if once_in(rng, 10) {
        let network = format!("10.96.{}.0/24", rng.below(2));
        state.cidrs = vec![of_family(family, &network).parse::<sys::net::Destination>().unwrap().to_string()];
    }
    key
}

pub(super) fn engine(family: Family, filter: Arc<dyn PacketFilter>) -> Engine {
    engine_of(family, Box::new(NftablesBackend::new(filter)))
}

fn engine_of(family: Family, backend: Box<dyn Backend>) -> Engine {
    let options = RuleOptions {
        family,
        local_detector: Some(LocalDetector::Network(of_family(family, PODS))),
        node_ip: of_family(family, NODE_IP).parse().ok(),
        ..options()
    };
    let node = NodeTopology { name: NODE.into(), zone: String::new() };
    Engine::new(options, node, backend, Arc::new(FakeNetwork::default()))
}

/// Plays a seed over two packet filters: one that is kept up to date, one that is made anew each time.
struct Play {
    family: Family,
    seed: u64,
    steps: usize,
    kept: Arc<dyn PacketFilter>,
    fresh: Arc<dyn PacketFilter>,
}

impl Play {
    async fn run<C: AsyncFn(&dyn PacketFilter) -> String>(&self, contents_of: C) {
        let (rng, source) = (Rng::seeded(self.seed), Fixed::default());
        let mut kept = engine(self.family, Arc::clone(&self.kept));
        let mut now = Instant::now();
        kept.sync(&source, &BTreeSet::new(), now).await.unwrap();
        for step in 0..self.steps {
            let changed: BTreeSet<ObjectKey> = (0..=rng.below(2)).map(|_| happen(&rng, self.family, &source)).collect();
            let at = format!("seed {} step {step} {changed:?}", self.seed);
            // What is emptied now is deleted by a later sync.
            for changed in [&changed, &BTreeSet::new()] {
                kept.sync(&source, changed, now).await.unwrap_or_else(|error| panic!("{at}: {error}"));
                now += STALE_DELAY;
            }
            assert!(!kept.needs_full(now) && kept.take_counts().cleanup_failures == 0, "{at}");
            let _ = self.fresh.apply(&format!("delete table {} {TABLE}\n", self.family.nft())).await;
            engine(self.family, Arc::clone(&self.fresh)).sync(&source, &BTreeSet::new(), now).await.unwrap();
            let (kept, fresh) = (contents_of(self.kept.as_ref()).await, contents_of(self.fresh.as_ref()).await);
            assert_eq!(kept, fresh, "{at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_up_to_date_is_as_if_made_anew() {
    for (seed, family) in (0..12).zip([Family::V4, Family::V6].into_iter().cycle()) {
        let [kept, fresh] = [(); 2].map(|()| Arc::new(FakePacketFilter::default()));
        let contents = [Arc::clone(&kept), Arc::clone(&fresh)];
        let play = Play { family, seed, steps: 40, kept, fresh };
        let kept_filter: *const dyn PacketFilter = play.kept.as_ref();
        play.run(async |filter: &dyn PacketFilter| {
            let is_kept = std::ptr::addr_eq(filter, kept_filter);
            contents[usize::from(!is_kept)].contents()
        })
        .await;
    }
}

/// Packets from pods, from outside and from the node to all addresses and ports that Services may have.
fn packets(family: Family) -> Vec<Packet> {
    let ip = |text: &str| of_family(family, text).parse().unwrap();
    let mut all = Vec::new();
    for (origin, source) in [
        (Origin::Interface("veth1"), "10.0.0.1"),
        (Origin::Interface("eth0"), "198.18.0.1"),
        (Origin::Interface("eth0"), "203.0.113.7"),
        (Origin::Node, NODE_IP),
    ] {
        let pools = [("10.96.0", 8), ("10.96.1", 1), ("192.0.2", 2), ("198.51.100", 2)];
        let addresses =
            pools.iter().flat_map(|(network, count)| (1..=*count).map(move |last| format!("{network}.{last}")));
        for destination in addresses.chain([NODE_IP.to_owned()]) {
            for port in [80, 81, 30_000, 30_001, 30_002] {
                for protocol in ["tcp", "udp"] {
                    all.push(Packet { origin, source: ip(source), destination: ip(&destination), port, protocol });
                }
            }
        }
    }
    all
}

#[tokio::test(start_paused = true)]
async fn packets_go_where_the_model_says() {
    for (seed, family) in (200..206).zip([Family::V4, Family::V6].into_iter().cycle()) {
        let (rng, source, packets) = (Rng::seeded(seed), Fixed::default(), packets(family));
        let (text, model) = (NftKernel::default(), Model::default());
        let mut engines = [engine_of(family, text.backend()), engine_of(family, model.backend())];
        let mut now = Instant::now();
        let mut steered = 0;
        for step in 0..25 {
            let changed: BTreeSet<ObjectKey> = (0..=rng.below(2)).map(|_| happen(&rng, family, &source)).collect();
            for engine in &mut engines {
                engine.sync(&source, &changed, now).await.unwrap();
            }
            now += STALE_DELAY;
            let table = text.table();
            for packet in &packets {
                let fate = model.fate(packet);
                assert_eq!(table.fate(packet), fate, "seed {seed} step {step}: {packet:?}");
                steered += usize::from(matches!(fate, Fate::To(_)));
            }
        }
        assert!(steered > 100, "seed {seed}: {steered} packets reached anybody");
    }
}

/// The table as the kernel has it, but for what differs from one making to the next.
async fn kernel_contents(filter: &dyn PacketFilter, family: Family) -> String {
    let listed = filter.list(&["table", family.nft(), TABLE]).await.unwrap();
    let mut by_place: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in listed["nftables"].as_array().into_iter().flatten() {
        let Some((kind, one)) = entry.as_object().and_then(|entry| entry.iter().next()) else { continue };
        let mut one = one.clone();
        if let Some(fields) = one.as_object_mut() {
            fields.remove("handle");
            if let Some(elements) = fields.get_mut("elem").and_then(|elements| elements.as_array_mut()) {
                elements.sort_by_key(ToString::to_string);
            }
        }
        // Rules keep their order within a chain.
        let place = one.get("chain").or_else(|| one.get("name")).map(ToString::to_string).unwrap_or_default();
        by_place.entry(format!("{kind} {place}")).or_default().push(one.to_string());
    }
    by_place.into_iter().map(|(place, lines)| format!("{place}\n{}\n", lines.join("\n"))).collect()
}

#[tokio::test]
async fn the_kernel_agrees() {
    const NAMESPACES: [&str; 2] = ["coxswain-test-proxy-a", "coxswain-test-proxy-b"];
    with_kernels(NAMESPACES, async |[kept, fresh]| {
        for (seed, family) in [(100, Family::V4), (101, Family::V6)] {
            let play = Play { family, seed, steps: 30, kept: Arc::clone(&kept), fresh: Arc::clone(&fresh) };
            play.run(async |filter: &dyn PacketFilter| kernel_contents(filter, family).await).await;
        }
    })
    .await;
}

/// Packet filters of namespaces of the test's own, where that is possible.
pub(super) async fn with_kernels<const N: usize>(names: [&str; N], test: impl AsyncFnOnce([Arc<dyn PacketFilter>; N])) {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if !is_root || !Path::new("/usr/sbin/nft").exists() {
        test_facts::skipped("no nft here, or no right to use it");
        return;
    }
    let namespaces = IpNetns::new(Arc::new(LinuxExec));
    for name in names {
        namespaces.delete(name).await.unwrap();
        namespaces.create(name).await.unwrap();
    }
    let filters =
        names.map(|name| -> Arc<dyn PacketFilter> { Arc::new(Nft::new(Arc::new(LinuxExec), Some(&path_of(name)))) });
    if filters[0].is_supported().await {
        test(filters).await;
    } else {
        test_facts::skipped("this kernel has no nftables");
    }
    for name in names {
        namespaces.delete(name).await.unwrap();
    }
}
