use api_types::core_v1::ServicePort;
use api_types::discovery_v1::{Endpoint as ApiEndpoint, EndpointPort};
use parking_lot::Mutex;
use sys::net::{Address, FakeNetwork, Interface};
use sys::packet_filter::FakePacketFilter;

use super::*;
use crate::nftables::{NftablesBackend, STALE_DELAY};

/// What a source tells.
#[derive(Default)]
pub(super) struct State {
    pub(super) services: BTreeMap<ObjectKey, Service>,
    pub(super) slices: BTreeMap<ObjectKey, EndpointSlice>,
    pub(super) cidrs: Vec<String>,
}

#[derive(Default)]
pub(super) struct Fixed(pub(super) Mutex<State>);

impl Source for Fixed {
    fn service(&self, key: &ObjectKey) -> Option<Arc<Service>> {
        self.0.lock().services.get(key).cloned().map(Arc::new)
    }
    fn slices(&self, key: &ObjectKey) -> Vec<Arc<EndpointSlice>> {
        self.0.lock().slices.get(key).cloned().map(Arc::new).into_iter().collect()
    }
    fn services(&self) -> Vec<ObjectKey> {
        self.0.lock().services.keys().cloned().collect()
    }
    fn service_cidrs(&self, family: Family) -> Vec<String> {
        let all = self.0.lock().cidrs.clone();
        all.into_iter().filter(|text| Family::of_text(text) == Some(family)).collect()
    }
}

pub(super) fn service(name: &str, address: &str) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "n".into();
    service.metadata.name = name.into();
    service.spec.type_ = "ClusterIP".into();
    service.spec.cluster_ip = address.into();
    service.spec.ports = vec![ServicePort { port: 80, protocol: "TCP".into(), ..ServicePort::default() }];
    service
}

pub(super) fn slice(name: &str, addresses: &[&str]) -> EndpointSlice {
    let mut slice = EndpointSlice { address_type: "IPv4".into(), ..EndpointSlice::default() };
    slice.metadata.namespace = "n".into();
    slice.metadata.labels.insert("kubernetes.io/service-name".into(), name.into());
    slice.ports = vec![EndpointPort { name: Some(String::new()), port: Some(8080), ..EndpointPort::default() }];
    slice.endpoints = addresses
        .iter()
        .map(|one| ApiEndpoint { addresses: vec![(*one).to_owned()], ..ApiEndpoint::default() })
        .collect();
    slice
}

pub(super) fn options() -> RuleOptions {
    RuleOptions {
        family: Family::V4,
        mark: 0x4000,
        masquerade_all: false,
        local_detector: None,
        node_ports: NodePorts::All,
        node_ip: None,
        service_cidrs: Vec::new(),
    }
}

struct Bench {
    engine: Engine,
    filter: Arc<FakePacketFilter>,
    network: Arc<FakeNetwork>,
    source: Fixed,
}

impl Bench {
    fn new() -> Self {
        let filter = Arc::new(FakePacketFilter::default());
        let options = options();
        let network = Arc::new(FakeNetwork::default());
        let backend = Box::new(NftablesBackend::new(Arc::clone(&filter) as _));
        let engine = Engine::new(options, NodeTopology::default(), backend, Arc::clone(&network) as _);
        Self { engine, filter, network, source: Fixed::default() }
    }

    fn put(&self, name: &str, address: &str, endpoints: &[&str]) -> ObjectKey {
        let key = ObjectKey::new("n", name);
        let mut state = self.source.0.lock();
        state.services.insert(key.clone(), service(name, address));
        state.slices.insert(key.clone(), slice(name, endpoints));
        key
    }

    async fn sync(&mut self, changed: &[&ObjectKey]) -> Result<String, BackendError> {
        let before = self.filter.scripts().len();
        let changed = changed.iter().map(|key| (*key).clone()).collect();
        self.engine.sync(&self.source, &changed, Instant::now()).await?;
        Ok(self.filter.scripts().get(before..).unwrap_or_default().join("\n"))
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_sync_writes_all_and_later_ones_what_changed() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    let two = bench.put("two", "10.96.0.2", &["10.0.0.2"]);
    let first = bench.sync(&[]).await.unwrap();
    assert!(first.contains("10.96.0.1 . tcp . 80") && first.contains("10.96.0.2 . tcp . 80"), "{first}");
    assert_eq!(bench.sync(&[&one, &two]).await.unwrap(), "");

    bench.put("two", "10.96.0.2", &["10.0.0.2", "10.0.0.3"]);
    let second = bench.sync(&[&two]).await.unwrap();
    assert!(second.contains("10.0.0.3 . 8080") && !second.contains("10.96.0.1"), "{second}");
}

#[tokio::test(start_paused = true)]
async fn ports_without_the_local_endpoints_they_want_are_counted() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    assert_eq!(bench.engine.without_local(), WithoutLocal::default());
    let local = |service: &mut Service| service.spec.internal_traffic_policy = Some("Local".into());
    local(bench.source.0.lock().services.get_mut(&one).unwrap());
    bench.sync(&[&one]).await.unwrap();
    assert_eq!(bench.engine.without_local(), WithoutLocal { internal: 1, external: 0 });
    bench.source.0.lock().slices.clear();
    bench.sync(&[&one]).await.unwrap();
    assert_eq!(bench.engine.without_local(), WithoutLocal::default(), "there are none anywhere");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    bench.source.0.lock().services.clear();
    let text = bench.sync(&[&one]).await.unwrap();
    assert!(text.contains("delete element ip kube-proxy service-ips { 10.96.0.1 . tcp . 80 }"), "{text}");
    assert!(text.contains("flush chain ip kube-proxy service-") && !text.contains("delete chain"), "{text}");
    tokio::time::advance(STALE_DELAY).await;
    assert!(bench.sync(&[]).await.unwrap().contains("delete chain ip kube-proxy service-"));
    assert!(!bench.engine.has_stale());
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_everything_is_written_again() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    bench.put("one", "10.96.0.1", &["10.0.0.9"]);
    bench.filter.refuse(Some("no"));
    assert!(bench.sync(&[&one]).await.is_err());
    bench.filter.refuse(None);
    assert!(bench.engine.needs_full(Instant::now()));
    let text = bench.sync(&[]).await.unwrap();
    assert!(text.contains("add table ip kube-proxy") && text.contains("10.0.0.9 . 8080"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn load_balancers_are_told_of_ready_endpoints_on_this_node() {
    let mut bench = Bench::new();
    let key = bench.put("web", "10.96.0.7", &["10.1.0.1", "10.1.0.2", "10.1.0.3"]);
    {
        let mut source = bench.source.0.lock();
        let service = source.services.get_mut(&key).unwrap();
        service.spec.type_ = "LoadBalancer".into();
        service.spec.external_traffic_policy = "Local".into();
        service.spec.health_check_node_port = 30_999;
        let slice = source.slices.get_mut(&key).unwrap();
        for (index, endpoint) in slice.endpoints.iter_mut().enumerate() {
            // The first is elsewhere, the last is not ready.
            endpoint.node_name = (index > 0).then(String::new);
            endpoint.conditions.ready = Some(index < 2);
        }
    }
    bench.engine.sync(&bench.source, &BTreeSet::new(), Instant::now()).await.unwrap();
    assert_eq!(bench.engine.checks(), [(key.clone(), Check { port: 30_999, local_endpoints: 1 })].into());
    bench.source.0.lock().services.get_mut(&key).unwrap().spec.external_traffic_policy = "Cluster".into();
    bench.engine.sync(&bench.source, &[key].into(), Instant::now()).await.unwrap();
    assert!(bench.engine.checks().is_empty());
}

/// A Service of UDP with these endpoints.
fn datagrams(bench: &Bench, endpoints: &[&str]) -> ObjectKey {
    let key = bench.put("dns", "10.96.0.10", endpoints);
    let mut source = bench.source.0.lock();
    source.services.get_mut(&key).unwrap().spec.ports[0].protocol = "UDP".into();
    source.slices.get_mut(&key).unwrap().ports[0].protocol = Some("UDP".into());
    drop(source);
    key
}

/// The kernel tracks a client of that Service, whom these answer.
fn track(bench: &Bench, answers: &[(&str, u16)]) {
    for (address, reply_port) in answers {
        let original_destination = "10.96.0.10".parse().unwrap();
        let reply_source = address.parse().unwrap();
        let flow = Tracked { original_destination, original_port: 80, reply_source, reply_port: *reply_port };
        bench.network.track(Protocol::Udp, flow);
        bench.network.track(Protocol::Tcp, flow);
    }
}

/// Who still answers clients of UDP.
async fn answering(bench: &Bench) -> Vec<String> {
    let flows = bench.network.connections(Protocol::Udp, false).await.unwrap();
    assert!(bench.network.connections(Protocol::Tcp, false).await.unwrap().len() >= flows.len(), "TCP is left alone");
    flows.iter().map(|flow| flow.reply_source.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn datagrams_to_endpoints_that_went_are_forgotten_however_the_news_came() {
    for whole in [false, true] {
        let mut bench = Bench::new();
        let key = datagrams(&bench, &["10.0.0.1", "10.0.0.2"]);
        track(&bench, &[("10.0.0.1", 8080), ("10.0.0.2", 8080)]);
        bench.sync(&[]).await.unwrap();
        assert_eq!(answering(&bench).await, ["10.0.0.1", "10.0.0.2"]);
        datagrams(&bench, &["10.0.0.2"]);
        if whole {
            bench.filter.refuse(Some("no"));
            assert!(bench.sync(&[&key]).await.is_err());
            bench.filter.refuse(None);
        }
        bench.sync(&[&key]).await.unwrap();
        assert_eq!(answering(&bench).await, ["10.0.0.2"], "whole: {whole}");
        let counts = bench.engine.take_counts();
        assert!(counts.reconciled.is_some() && counts.forgotten == 1, "{counts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn datagrams_to_an_endpoint_that_still_serves_go_on() {
    let mut bench = Bench::new();
    let key = datagrams(&bench, &["10.0.0.1", "10.0.0.2"]);
    track(&bench, &[("10.0.0.1", 8080)]);
    bench.sync(&[]).await.unwrap();
    {
        let mut source = bench.source.0.lock();
        let conditions = &mut source.slices.get_mut(&key).unwrap().endpoints[0].conditions;
        (conditions.ready, conditions.serving, conditions.terminating) = (Some(false), Some(true), Some(true));
    }
    bench.sync(&[&key]).await.unwrap();
    assert_eq!(answering(&bench).await, ["10.0.0.1"]);
    // Nobody serves any more: there is no better place to go.
    bench.source.0.lock().slices.get_mut(&key).unwrap().endpoints.clear();
    bench.sync(&[&key]).await.unwrap();
    assert_eq!(answering(&bench).await, ["10.0.0.1"]);
    datagrams(&bench, &["10.0.0.3"]);
    bench.sync(&[&key]).await.unwrap();
    assert!(answering(&bench).await.is_empty(), "whatever the clients were told before");
}

#[tokio::test(start_paused = true)]
async fn datagrams_that_came_before_the_service_are_forgotten() {
    let mut bench = Bench::new();
    bench.sync(&[]).await.unwrap();
    track(&bench, &[("10.96.0.10", 80)]);
    let key = datagrams(&bench, &["10.0.0.1"]);
    bench.sync(&[&key]).await.unwrap();
    assert!(answering(&bench).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn datagrams_that_went_stale_while_no_proxy_ran_are_forgotten_by_a_start() {
    let mut bench = Bench::new();
    datagrams(&bench, &["10.0.0.1"]);
    track(&bench, &[("10.0.0.1", 8080), ("10.0.0.9", 8080), ("10.0.0.1", 9090)]);
    bench.sync(&[]).await.unwrap();
    assert_eq!(answering(&bench).await, ["10.0.0.1"]);
    assert_eq!(bench.engine.take_counts().forgotten, 2);
    let quiet = bench.put("other", "10.96.0.11", &["10.0.0.2"]);
    bench.sync(&[&quiet]).await.unwrap();
    assert_eq!(bench.engine.take_counts().reconciled, None, "nothing of UDP changed");
}

#[tokio::test(start_paused = true)]
async fn networks_of_cluster_addresses_are_known_with_the_next_sync() {
    let mut bench = Bench::new();
    bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    assert!(!bench.sync(&[]).await.unwrap().contains("Drop traffic to unallocated"));
    bench.source.0.lock().cidrs = vec!["10.96.0.0/16".into(), "fd00::/108".into()];
    let text = bench.sync(&[]).await.unwrap();
    assert!(text.contains("cluster-ips-check ip daddr { 10.96.0.0/16 } drop") && !text.contains("element"), "{text}");
    assert_eq!(bench.sync(&[]).await.unwrap(), "");
}

#[tokio::test(start_paused = true)]
async fn node_ports_answer_at_the_addresses_that_the_machine_has_now() {
    let interface = |ip: &str| Interface {
        addresses: vec![Address { ip: ip.parse().unwrap(), prefix: 24 }],
        ..Interface::default()
    };
    let network = FakeNetwork::with(vec![interface("10.1.0.4"), interface("127.0.0.1")], Vec::new());
    let network = Arc::new(network);
    let filter = Arc::new(FakePacketFilter::default());
    let options = RuleOptions { node_ports: NodePorts::Addresses(BTreeSet::new()), ..options() };
    let networks = vec!["10.0.0.0/8".into(), "127.0.0.0/8".into()];
    let backend = Box::new(NftablesBackend::new(Arc::clone(&filter) as _));
    let mut engine = Engine::new(options, NodeTopology::default(), backend, Arc::clone(&network) as _)
        .with_node_port_networks(networks);
    let (source, now) = (Fixed::default(), Instant::now());
    let addresses = || {
        let contents = filter.contents();
        let set = contents.split("set nodeport-ips").nth(1).unwrap_or_default().to_owned();
        set.lines().skip(1).map_while(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_owned)).collect()
    };
    engine.sync(&source, &BTreeSet::new(), now).await.unwrap();
    let found: Vec<String> = addresses();
    assert_eq!(found, ["10.1.0.4"]);
    network.add_bridge("br0").await.unwrap();
    network.add_address("br0", "10.2.0.4/24".parse().unwrap()).await.unwrap();
    engine.sync(&source, &BTreeSet::new(), now + FULL_INTERVAL).await.unwrap();
    let found: Vec<String> = addresses();
    assert_eq!(found, ["10.1.0.4", "10.2.0.4"]);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_behind_two_services_stays_until_both_are_gone() {
    let mut bench = Bench::new();
    let keys = [bench.put("one", "10.96.0.1", &["10.0.0.1"]), bench.put("two", "10.96.0.2", &["10.0.0.1"])];
    for slice in bench.source.0.lock().slices.values_mut() {
        slice.endpoints[0].node_name = Some(String::new());
    }
    bench.sync(&[]).await.unwrap();
    let hairpin = |bench: &Bench| bench.filter.contents().contains("10.0.0.1 . 10.0.0.1 . tcp . 8080");
    for (key, left) in keys.iter().zip([true, false]) {
        bench.source.0.lock().services.remove(key);
        bench.sync(&[key]).await.unwrap();
        assert_eq!(hairpin(&bench), left);
    }
}

#[tokio::test(start_paused = true)]
async fn many_services_come_in_several_transactions() {
    let mut bench = Bench::new();
    for index in 0..1200 {
        bench.put(&format!("s{index}"), &format!("10.96.{}.{}", index / 250, index % 250), &["10.0.0.1"]);
    }
    let before = bench.filter.scripts().len();
    bench.sync(&[]).await.unwrap();
    let scripts = bench.filter.scripts().split_off(before);
    assert_eq!(scripts.len(), 3);
    assert!(scripts.iter().all(|script| script.matches("add rule").count() < 600));
    assert!(scripts[..2].iter().all(|script| !script.contains("element")), "what leads to chains comes last");
    let keys: Vec<ObjectKey> = bench.source.services();
    bench.source.0.lock().slices.clear();
    let before = bench.filter.scripts().len();
    bench.sync(&keys.iter().collect::<Vec<_>>()).await.unwrap();
    assert_eq!(bench.filter.scripts().len() - before, 6);
    assert!(!bench.filter.contents().contains("dnat ip addr"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_moves_uses_the_endpoints_of_its_new_zone() {
    let mut bench = Bench::new();
    let key = bench.put("one", "10.96.0.1", &["10.0.0.1", "10.0.0.2"]);
    for (endpoint, zone) in bench.source.0.lock().slices.get_mut(&key).unwrap().endpoints.iter_mut().zip(["a", "b"]) {
        let for_zones = vec![api_types::discovery_v1::ForZone { name: zone.into() }];
        endpoint.hints = Some(api_types::discovery_v1::EndpointHints { for_zones, ..Default::default() });
    }
    bench.engine.move_to("a".into());
    let first = bench.sync(&[]).await.unwrap();
    assert!(first.contains("10.0.0.1 . 8080") && !first.contains("10.0.0.2 . 8080"), "{first}");
    bench.engine.move_to("b".into());
    let second = bench.sync(&[]).await.unwrap();
    assert!(second.contains("10.0.0.2 . 8080") && !second.contains("10.0.0.1 . 8080"), "{second}");
    bench.engine.move_to("b".into());
    assert!(!bench.engine.needs_full(Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn chains_that_cannot_be_deleted_do_not_make_a_sync_fail() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    bench.source.0.lock().services.clear();
    bench.sync(&[&one]).await.unwrap();
    tokio::time::advance(STALE_DELAY).await;
    bench.filter.refuse(Some("busy"));
    assert!(bench.sync(&[]).await.is_ok());
    assert_eq!(bench.engine.take_counts().cleanup_failures, 1);
    assert_eq!(bench.engine.take_counts(), Counts::default());
    assert!(bench.engine.needs_full(Instant::now()));
}
