use api_types::core_v1::ServicePort;
use api_types::discovery_v1::{Endpoint as ApiEndpoint, EndpointPort};
use parking_lot::Mutex;
use sys::net::FakeNetwork;
use sys::packet_filter::FakePacketFilter;

use super::*;
use crate::nftables::NodePorts;

#[derive(Default)]
struct Fixed(Mutex<(BTreeMap<ObjectKey, Service>, BTreeMap<ObjectKey, EndpointSlice>)>);

impl Source for Fixed {
    fn service(&self, key: &ObjectKey) -> Option<Arc<Service>> {
        self.0.lock().0.get(key).cloned().map(Arc::new)
    }
    fn slices(&self, key: &ObjectKey) -> Vec<Arc<EndpointSlice>> {
        self.0.lock().1.get(key).cloned().map(Arc::new).into_iter().collect()
    }
    fn services(&self) -> Vec<ObjectKey> {
        self.0.lock().0.keys().cloned().collect()
    }
}

fn service(name: &str, address: &str) -> Service {
    let mut service = Service::default();
    service.metadata.namespace = "n".into();
    service.metadata.name = name.into();
    service.spec.type_ = "ClusterIP".into();
    service.spec.cluster_ip = address.into();
    service.spec.ports = vec![ServicePort { port: 80, protocol: "TCP".into(), ..ServicePort::default() }];
    service
}

fn slice(name: &str, addresses: &[&str]) -> EndpointSlice {
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

struct Bench {
    engine: Engine,
    filter: Arc<FakePacketFilter>,
    network: Arc<FakeNetwork>,
    source: Fixed,
}

impl Bench {
    fn new() -> Self {
        let filter = Arc::new(FakePacketFilter::default());
        let options = TableOptions {
            family: Family::V4,
            mark: 0x4000,
            masquerade_all: false,
            local_source: None,
            node_ports: NodePorts::All,
            node_ip: None,
            service_cidrs: Vec::new(),
        };
        let network = Arc::new(FakeNetwork::default());
        let engine = Engine::new(options, Place::default(), Arc::clone(&filter) as _, Arc::clone(&network) as _);
        Self { engine, filter, network, source: Fixed::default() }
    }

    fn put(&self, name: &str, address: &str, endpoints: &[&str]) -> ObjectKey {
        let key = ObjectKey::new("n", name);
        let mut state = self.source.0.lock();
        state.0.insert(key.clone(), service(name, address));
        state.1.insert(key.clone(), slice(name, endpoints));
        key
    }

    async fn sync(&mut self, changed: &[&ObjectKey]) -> Result<String, FilterError> {
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
    local(bench.source.0.lock().0.get_mut(&one).unwrap());
    bench.sync(&[&one]).await.unwrap();
    assert_eq!(bench.engine.without_local(), WithoutLocal { internal: 1, external: 0 });
    bench.source.0.lock().1.clear();
    bench.sync(&[&one]).await.unwrap();
    assert_eq!(bench.engine.without_local(), WithoutLocal::default(), "there are none anywhere");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_service_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let one = bench.put("one", "10.96.0.1", &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    bench.source.0.lock().0.clear();
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
        let service = source.0.get_mut(&key).unwrap();
        service.spec.type_ = "LoadBalancer".into();
        service.spec.external_traffic_policy = "Local".into();
        service.spec.health_check_node_port = 30_999;
        let slice = source.1.get_mut(&key).unwrap();
        for (index, endpoint) in slice.endpoints.iter_mut().enumerate() {
            // The first is elsewhere, the last is not ready.
            endpoint.node_name = (index > 0).then(String::new);
            endpoint.conditions.ready = Some(index < 2);
        }
    }
    bench.engine.sync(&bench.source, &BTreeSet::new(), Instant::now()).await.unwrap();
    assert_eq!(bench.engine.checks(), [(key.clone(), Check { port: 30_999, local_endpoints: 1 })].into());
    bench.source.0.lock().0.get_mut(&key).unwrap().spec.external_traffic_policy = "Cluster".into();
    bench.engine.sync(&bench.source, &[key].into(), Instant::now()).await.unwrap();
    assert!(bench.engine.checks().is_empty());
}

#[tokio::test(start_paused = true)]
async fn datagrams_to_endpoints_that_went_are_forgotten_however_the_news_came() {
    for whole in [false, true] {
        let mut bench = Bench::new();
        let udp = |bench: &Bench, endpoints: &[&str]| {
            let key = bench.put("dns", "10.96.0.10", endpoints);
            let mut source = bench.source.0.lock();
            source.0.get_mut(&key).unwrap().spec.ports[0].protocol = "UDP".into();
            source.1.get_mut(&key).unwrap().ports[0].protocol = Some("UDP".into());
            key
        };
        let key = udp(&bench, &["10.0.0.1", "10.0.0.2"]);
        bench.sync(&[]).await.unwrap();
        udp(&bench, &["10.0.0.2"]);
        if whole {
            bench.filter.refuse(Some("no"));
            assert!(bench.sync(&[&key]).await.is_err());
            bench.filter.refuse(None);
        }
        bench.sync(&[&key]).await.unwrap();
        let gone: Vec<_> = bench.network.forgotten().into_iter().filter_map(|one| one.reply_source).collect();
        assert_eq!(gone, ["10.0.0.1".parse::<std::net::IpAddr>().unwrap()], "whole: {whole}");
    }
}

/// A Service of UDP with these endpoints.
fn datagrams(bench: &Bench, endpoints: &[&str]) -> ObjectKey {
    let key = bench.put("dns", "10.96.0.10", endpoints);
    let mut source = bench.source.0.lock();
    source.0.get_mut(&key).unwrap().spec.ports[0].protocol = "UDP".into();
    source.1.get_mut(&key).unwrap().ports[0].protocol = Some("UDP".into());
    drop(source);
    key
}

#[tokio::test(start_paused = true)]
async fn datagrams_to_an_endpoint_that_still_serves_go_on() {
    let mut bench = Bench::new();
    let key = datagrams(&bench, &["10.0.0.1", "10.0.0.2"]);
    bench.sync(&[]).await.unwrap();
    {
        let mut source = bench.source.0.lock();
        let conditions = &mut source.1.get_mut(&key).unwrap().endpoints[0].conditions;
        (conditions.ready, conditions.serving, conditions.terminating) = (Some(false), Some(true), Some(true));
    }
    bench.sync(&[&key]).await.unwrap();
    assert!(bench.network.forgotten().is_empty());
    // Nobody serves any more: there is no better place to go.
    bench.source.0.lock().1.get_mut(&key).unwrap().endpoints.clear();
    bench.sync(&[&key]).await.unwrap();
    assert!(bench.network.forgotten().is_empty());
    datagrams(&bench, &["10.0.0.3"]);
    bench.sync(&[&key]).await.unwrap();
    assert_eq!(bench.network.forgotten().len(), 1, "whatever the clients were told before");
}

#[tokio::test(start_paused = true)]
async fn datagrams_that_came_before_the_service_are_forgotten() {
    let mut bench = Bench::new();
    bench.sync(&[]).await.unwrap();
    let key = datagrams(&bench, &["10.0.0.1"]);
    bench.sync(&[&key]).await.unwrap();
    let forgotten = bench.network.forgotten();
    assert_eq!(forgotten.len(), 1);
    assert_eq!((forgotten[0].original_port, forgotten[0].reply_source), (Some(80), None));
}

#[tokio::test(start_paused = true)]
async fn datagrams_are_left_alone_by_a_start() {
    let mut bench = Bench::new();
    datagrams(&bench, &["10.0.0.1"]);
    bench.sync(&[]).await.unwrap();
    assert!(bench.network.forgotten().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_moves_uses_the_endpoints_of_its_new_zone() {
    let mut bench = Bench::new();
    let key = bench.put("one", "10.96.0.1", &["10.0.0.1", "10.0.0.2"]);
    for (endpoint, zone) in bench.source.0.lock().1.get_mut(&key).unwrap().endpoints.iter_mut().zip(["a", "b"]) {
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
    bench.source.0.lock().0.clear();
    bench.sync(&[&one]).await.unwrap();
    tokio::time::advance(STALE_DELAY).await;
    bench.filter.refuse(Some("busy"));
    assert!(bench.sync(&[]).await.is_ok());
    assert_eq!((bench.engine.take_cleanup_failures(), bench.engine.take_cleanup_failures()), (1, 0));
    assert!(bench.engine.needs_full(Instant::now()));
}
