//! Addresses and ports of Services.

use api_machinery::object::Object;
use api_types::core_v1::{RangeAllocation, Service, ServicePort};
use api_types::networking_v1::{ServiceCIDR, ServiceCIDRSpec};
use kinds::rules::Endpoint;
use storage::Backend as _;

use super::*;
use crate::{Hooks, Patch, Replace};

/// A server of these ranges that has made its first `ServiceCIDR`.
async fn cluster(ranges: &[&str], adjust: impl FnOnce(&mut RegistryOptions)) -> Fixture {
    let fixture = Fixture::with(|options| {
        options.services.cluster_ip_ranges = ranges.iter().map(|range| range.parse().unwrap()).collect();
        adjust(options);
    })
    .await;
    create_cidr(&fixture, "kubernetes", ranges).await;
    fixture.registry.repair_ports(&fixture.cx("")).await.unwrap();
    fixture
}

/// One look at all that Services have; what it tells, as reasons.
async fn repair(fixture: &Fixture) -> Vec<&'static str> {
    let cx = fixture.cx("");
    let addresses = fixture.registry.repair_addresses(cx.rules.now).await.unwrap();
    let ports = fixture.registry.repair_ports(&cx).await.unwrap();
    assert_eq!((addresses.failure, ports.failure), (None, None));
    let findings = addresses.findings.iter().chain(&ports.findings);
    findings.map(|finding| finding.reason.as_str()).collect()
}

async fn create_cidr(fixture: &Fixture, name: &str, cidrs: &[&str]) {
    let cidrs = cidrs.iter().map(|cidr| (*cidr).to_owned()).collect();
    let mut object = ServiceCIDR { spec: ServiceCIDRSpec { cidrs }, ..ServiceCIDR::default() };
    object.metadata.name = name.into();
    let kind = fixture.registry.resource("networking.k8s.io", "v1", "servicecidrs").unwrap();
    kind.create(&fixture.cx(""), Box::new(object), &Hooks::none()).await.unwrap();
}

fn service(name: &str, type_: &str, ports: &[(i32, &str)]) -> Service {
    let mut service = Service::default();
    service.metadata.name = name.into();
    service.metadata.namespace = "default".into();
    service.spec.type_ = type_.into();
    service.spec.session_affinity = "None".into();
    service.spec.selector.insert("app".into(), name.into());
    service.spec.ports = ports
        .iter()
        .enumerate()
        .map(|(index, (port, protocol))| ServicePort {
            name: format!("p{index}"),
            port: *port,
            protocol: (*protocol).into(),
            ..ServicePort::default()
        })
        .collect();
    service
}

fn boxed(fixture: &Fixture, service: Service) -> Box<dyn Object> {
    defaulted(fixture, "services", Box::new(service))
}

fn spec(item: &Stored) -> api_types::core_v1::ServiceSpec {
    item.object().downcast_ref::<Service>().unwrap().spec.clone()
}

/// How many node ports the stored bitmap says are taken.
async fn ports_taken(fixture: &Fixture) -> u32 {
    let key = storage::Key::from("/registry/ranges/servicenodeports");
    let Some(kv) = fixture.store.get(&key).await.unwrap().kv else { return 0 };
    let (stored, _): (api_types::core_v1::RangeAllocation, _) =
        api_machinery::object::from_protobuf(&kv.value).unwrap();
    stored.data.0.iter().map(|byte| byte.count_ones()).sum()
}

/// The addresses that are objects.
async fn addresses(fixture: &Fixture) -> Vec<String> {
    let kind = fixture.registry.resource("networking.k8s.io", "v1", "ipaddresses").unwrap();
    let list = kind.list(&fixture.cx(""), &ListOptions::default()).await.unwrap();
    list.items.iter().map(|item| item.object().meta().name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn addresses_come_and_go_with_their_service() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let web = boxed(&fixture, service("web", "ClusterIP", &[(80, "TCP")]));
    let created = services.create(&cx, web, &Hooks::none()).await.unwrap().item;
    let first = spec(&created);
    assert!(first.cluster_ip.starts_with("10.0.0.") && first.cluster_ips == std::slice::from_ref(&first.cluster_ip));
    assert_eq!(first.ip_families, ["IPv4"]);
    assert_eq!(addresses(&fixture).await, std::slice::from_ref(&first.cluster_ip));

    let mut clash = service("clash", "ClusterIP", &[(80, "TCP")]);
    clash.spec.cluster_ip = first.cluster_ip.clone();
    let error = services.create(&cx, boxed(&fixture, clash), &Hooks::none()).await.unwrap_err();
    assert_eq!(error.code, 422);
    let ip = &first.cluster_ip;
    assert!(
        error.message.contains(&format!("failed to allocate IP {ip}: provided IP is already allocated")),
        "{error}"
    );

    // A creation that fails gives back what it took.
    let again = boxed(&fixture, service("web", "ClusterIP", &[(80, "TCP")]));
    assert_eq!(services.create(&cx, again, &Hooks::none()).await.unwrap_err().code, 409);
    assert_eq!(addresses(&fixture).await, std::slice::from_ref(&first.cluster_ip));

    // A client that sends no address keeps the one there is.
    let put = Replace(boxed(&fixture, service("web", "ClusterIP", &[(81, "TCP")])));
    let updated = services.update(&cx, "web", Endpoint::Main, &put, &Hooks::none()).await.unwrap().item;
    assert_eq!(spec(&updated).cluster_ip, first.cluster_ip);

    services.delete(&cx, "web", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(addresses(&fixture).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn given_addresses_must_be_in_the_range() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    for (ip, text) in [
        ("10.0.0.1", ""),
        ("10.0.0.255", "the provided IP (10.0.0.255) is not in the valid range. The range of valid IPs is 10.0.0.0/24"),
        ("192.168.0.1", "the provided network does not match the current range"),
    ] {
        let mut wanted = service("web", "ClusterIP", &[(80, "TCP")]);
        wanted.spec.cluster_ip = ip.into();
        match services.create(&cx, boxed(&fixture, wanted), &Hooks::none()).await {
            Ok(written) => assert!(text.is_empty() && spec(&written.item).cluster_ips == [ip]),
            Err(error) => assert!(!text.is_empty() && error.message.contains(text), "{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ports_of_one_number_share_and_are_released() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let dns = boxed(&fixture, service("dns", "NodePort", &[(53, "TCP"), (53, "UDP"), (80, "TCP")]));
    let created = spec(&services.create(&cx, dns, &Hooks::none()).await.unwrap().item);
    let ports: Vec<i32> = created.ports.iter().map(|port| port.node_port).collect();
    assert_eq!(ports[0], ports[1]);
    assert_ne!(ports[0], ports[2]);
    assert!(ports.iter().all(|port| (30_000..=32_767).contains(port)));
    assert_eq!(ports_taken(&fixture).await, 2);

    let mut far = service("far", "NodePort", &[(80, "TCP")]);
    far.spec.ports[0].node_port = 80;
    let error = services.create(&cx, boxed(&fixture, far), &Hooks::none()).await.unwrap_err();
    assert!(error.message.contains("spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"), "{error}");
    assert_eq!(addresses(&fixture).await.len(), 1, "the address was given back");

    let drop_last = Patch(|live: &dyn Object| {
        let mut service = live.downcast_ref::<Service>().unwrap().clone();
        service.spec.ports.pop();
        Ok(Box::new(service) as Box<dyn Object>)
    });
    services.update(&cx, "dns", Endpoint::Main, &drop_last, &Hooks::none()).await.unwrap();
    assert_eq!(ports_taken(&fixture).await, 1);
    services.delete(&cx, "dns", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(ports_taken(&fixture).await, 0);
}

#[tokio::test(start_paused = true)]
async fn dry_runs_take_nothing_and_dual_stack_takes_two() {
    let fixture = cluster(&["10.96.0.0/12", "fd00::/112"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let mut dual = service("dual", "NodePort", &[(80, "TCP")]);
    dual.spec.ip_family_policy = Some("RequireDualStack".into());
    let shown = services.create(&fixture.dry("default"), boxed(&fixture, dual.clone()), &Hooks::none()).await.unwrap();
    assert_eq!(spec(&shown.item).cluster_ips, ["10.96.0.0", "fd00::"]);
    assert_eq!((addresses(&fixture).await.len(), ports_taken(&fixture).await), (0, 0));
    let written = services.create(&cx, boxed(&fixture, dual), &Hooks::none()).await.unwrap();
    assert_eq!(spec(&written.item).ip_families, ["IPv4", "IPv6"]);
    assert_eq!(addresses(&fixture).await.len(), 2);
    let single = Patch(|live: &dyn Object| {
        let mut service = live.downcast_ref::<Service>().unwrap().clone();
        service.spec.ip_family_policy = Some("SingleStack".into());
        Ok(Box::new(service) as Box<dyn Object>)
    });
    services.update(&fixture.dry("default"), "dual", Endpoint::Main, &single, &Hooks::none()).await.unwrap();
    assert_eq!(addresses(&fixture).await.len(), 2, "a dry run gives nothing back");
    let updated = services.update(&cx, "dual", Endpoint::Main, &single, &Hooks::none()).await.unwrap();
    assert_eq!(spec(&updated.item).cluster_ips.len(), 1);
    assert_eq!(addresses(&fixture).await, spec(&updated.item).cluster_ips);
}

#[tokio::test(start_paused = true)]
async fn a_full_range_says_so() {
    let fixture = cluster(&["10.0.0.0/29"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    for number in 0..6 {
        let one = boxed(&fixture, service(&format!("s{number}"), "ClusterIP", &[(80, "TCP")]));
        services.create(&cx, one, &Hooks::none()).await.unwrap();
    }
    let one_more = boxed(&fixture, service("more", "ClusterIP", &[(80, "TCP")]));
    let error = services.create(&cx, one_more, &Hooks::none()).await.unwrap_err();
    assert_eq!(error.code, 500);
    let text = "Internal error occurred: failed to allocate a serviceIP for Service \"more\": range is full";
    assert_eq!(error.message, text);
}

#[tokio::test(start_paused = true)]
async fn repair_restores_what_is_used_and_frees_what_is_not_in_time() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let web = boxed(&fixture, service("web", "NodePort", &[(80, "TCP")]));
    services.create(&cx, web, &Hooks::none()).await.unwrap();
    assert_eq!(repair(&fixture).await, [""; 0]);
    let address = addresses(&fixture).await.remove(0);
    let lost = [format!("/registry/ipaddresses/{address}"), "/registry/ranges/servicenodeports".to_owned()];
    for key in lost {
        fixture.store.txn(&storage::Key::from(key), storage::Expect::Any, storage::Write::Delete).await.unwrap();
    }
    assert_eq!(repair(&fixture).await, ["ClusterIPNotAllocated", "PortNotAllocated"]);
    assert_eq!((addresses(&fixture).await, ports_taken(&fixture).await), (vec![address], 1));

    // The Service goes without its companion noticing: a crash.
    let key = storage::Key::from("/registry/services/specs/default/web");
    fixture.store.txn(&key, storage::Expect::Any, storage::Write::Delete).await.unwrap();
    for (ports, addresses_left) in [(1, 1), (1, 1), (0, 0)] {
        repair(&fixture).await;
        assert_eq!((ports_taken(&fixture).await, addresses(&fixture).await.len()), (ports, addresses_left));
        tokio::time::advance(std::time::Duration::from_secs(31)).await;
    }
}

/// A store in which a Service goes, and gives its address back, whenever its range is about to be read.
struct Racing {
    inner: Arc<storage::Memory>,
    armed: std::sync::atomic::AtomicBool,
}

#[async_trait::async_trait]
impl storage::Backend for Racing {
    async fn get(&self, key: &storage::Key) -> Result<storage::Get, storage::StorageError> {
        let range = storage::Key::from("/registry/ranges/servicenodeports");
        if *key == range && self.armed.swap(false, std::sync::atomic::Ordering::SeqCst) {
            for gone in [storage::Key::from("/registry/services/specs/default/web"), range] {
                self.inner.txn(&gone, storage::Expect::Any, storage::Write::Delete).await?;
            }
        }
        self.inner.get(key).await
    }

    async fn range(
        &self,
        range: &storage::KeyRange,
        limit: usize,
        at: Option<storage::Revision>,
    ) -> Result<storage::Slice, storage::StorageError> {
        self.inner.range(range, limit, at).await
    }

    async fn count(&self, range: &storage::KeyRange) -> Result<u64, storage::StorageError> {
        self.inner.count(range).await
    }

    async fn txn(
        &self,
        key: &storage::Key,
        expect: storage::Expect,
        write: storage::Write,
    ) -> Result<storage::Txn, storage::StorageError> {
        self.inner.txn(key, expect, write).await
    }

    fn watch(&self, range: storage::KeyRange, after: storage::Revision) -> storage::EventStream {
        self.inner.watch(range, after)
    }

    async fn current_revision(&self) -> Result<storage::Revision, storage::StorageError> {
        self.inner.current_revision().await
    }

    fn supports_progress(&self) -> bool {
        self.inner.supports_progress()
    }

    async fn lease_grant(&self, ttl: std::time::Duration) -> Result<storage::LeaseId, storage::StorageError> {
        self.inner.lease_grant(ttl).await
    }

    async fn lease_revoke(&self, lease: storage::LeaseId) -> Result<(), storage::StorageError> {
        self.inner.lease_revoke(lease).await
    }

    async fn compact(&self, at: storage::Revision) -> Result<(), storage::StorageError> {
        self.inner.compact(at).await
    }

    async fn health(&self) -> Result<(), storage::StorageError> {
        self.inner.health().await
    }

    async fn size_bytes(&self) -> Result<u64, storage::StorageError> {
        self.inner.size_bytes().await
    }
}

#[tokio::test(start_paused = true)]
async fn repair_takes_nothing_for_a_service_that_goes_meanwhile() {
    let racing = std::cell::OnceCell::new();
    let fixture = cluster(&["10.0.0.0/24"], |options| {
        let inner = storage::Memory::new(storage::MemoryOptions::default(), Arc::clone(&options.clock), &options.group);
        let backend = Arc::new(Racing { inner, armed: false.into() });
        options.backend = Arc::clone(&backend) as Arc<dyn storage::Backend>;
        racing.set(backend).ok();
    })
    .await;
    let (services, cx, racing) = (fixture.resource("services"), fixture.cx("default"), racing.get().unwrap());
    let web = boxed(&fixture, service("web", "ClusterIP", &[(80, "TCP")]));
    services.create(&cx, web, &Hooks::none()).await.unwrap();
    assert_eq!(repair(&fixture).await, [""; 0]);
    racing.armed.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(repair(&fixture).await, [""; 0], "nobody holds it");
    assert!(!racing.armed.load(std::sync::atomic::Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn addresses_are_unique_however_many_ask() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let creations = (0..50).map(|number| {
        let one = boxed(&fixture, service(&format!("s{number}"), "NodePort", &[(80, "TCP")]));
        let (services, cx) = (Arc::clone(&services), cx.clone());
        async move { services.create(&cx, one, &Hooks::none()).await.unwrap().item }
    });
    let items = futures_util::future::join_all(creations).await;
    let mut addresses: Vec<String> = items.iter().map(|item| spec(item).cluster_ip).collect();
    addresses.sort();
    addresses.dedup();
    let mut ports: Vec<i32> = items.iter().map(|item| spec(item).ports[0].node_port).collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!((addresses.len(), ports.len()), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn networks_come_and_go_with_their_objects() {
    let fixture =
        Fixture::with(|options| options.services.cluster_ip_ranges = vec!["10.0.0.0/29".parse().unwrap()]).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let create = async |name: &str| {
        let one = boxed(&fixture, service(name, "ClusterIP", &[(80, "TCP")]));
        services.create(&cx, one, &Hooks::none()).await
    };
    let error = create("early").await.unwrap_err();
    assert!(error.message.ends_with("failed to allocate IP: allocator not ready"), "{error}");
    assert!(fixture.registry.repair_addresses(cx.rules.now).await.is_err(), "there is nothing to compare with");
    create_cidr(&fixture, "kubernetes", &["10.0.0.0/29"]).await;
    for number in 0..6 {
        create(&format!("s{number}")).await.unwrap();
    }
    assert_eq!(create("full").await.unwrap_err().code, 500);

    create_cidr(&fixture, "more", &["10.9.0.0/28"]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(spec(&create("seventh").await.unwrap().item).cluster_ip.starts_with("10.9.0."));
    // One that is going gives out nothing more.
    let cidrs = fixture.registry.resource("networking.k8s.io", "v1", "servicecidrs").unwrap();
    let hold = Patch(|live: &dyn Object| {
        let mut object = live.downcast_ref::<ServiceCIDR>().unwrap().clone();
        object.metadata.finalizers.push("example.com/hold".into());
        Ok(Box::new(object) as Box<dyn Object>)
    });
    cidrs.update(&fixture.cx(""), "more", Endpoint::Main, &hold, &Hooks::none()).await.unwrap();
    cidrs.delete(&fixture.cx(""), "more", &Default::default(), &Hooks::none()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(create("eighth").await.unwrap_err().code, 500);
}

#[tokio::test(start_paused = true)]
async fn a_service_gives_back_only_what_is_its_own() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let web = boxed(&fixture, service("web", "ClusterIP", &[(80, "TCP")]));
    let ip = spec(&services.create(&cx, web, &Hooks::none()).await.unwrap().item).cluster_ip;
    let kind = fixture.registry.resource("networking.k8s.io", "v1", "ipaddresses").unwrap();
    let now = |name: &str| {
        let mut object = api_types::networking_v1::IPAddress::default();
        object.metadata.name = ip.clone();
        object.spec.parent_ref = Some(api_types::networking_v1::ParentReference {
            resource: "services".into(),
            namespace: "default".into(),
            name: name.into(),
            ..Default::default()
        });
        Box::new(object)
    };
    kind.delete(&fixture.cx(""), &ip, &Default::default(), &Hooks::none()).await.unwrap();
    kind.create(&fixture.cx(""), now("other"), &Hooks::none()).await.unwrap();
    services.delete(&cx, "web", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(addresses(&fixture).await, [ip], "it is another's by now");
}

#[tokio::test(start_paused = true)]
async fn a_service_without_an_object_keeps_its_address_from_the_start() {
    let fixture = cluster(&["10.0.0.0/29"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let create = async |name: &str, address: &str| {
        let mut one = service(name, "ClusterIP", &[(80, "TCP")]);
        one.spec.cluster_ip = address.into();
        services.create(&cx, boxed(&fixture, one), &Hooks::none()).await
    };
    // As a release left it that knew no objects: the range it kept is not looked at.
    create("old", "10.0.0.3").await.unwrap();
    let object = storage::Key::from("/registry/ipaddresses/10.0.0.3");
    fixture.store.txn(&object, storage::Expect::Any, storage::Write::Delete).await.unwrap();
    let error = create("greedy", "10.0.0.3").await.unwrap_err();
    assert!(error.message.contains("provided IP is already allocated"), "{error}");
    for number in 0..5 {
        let given = spec(&create(&format!("s{number}"), "").await.unwrap().item).cluster_ip;
        assert_ne!(given, "10.0.0.3");
    }
    assert_eq!(create("full", "").await.unwrap_err().code, 500);
    assert_eq!(repair(&fixture).await, ["ClusterIPNotAllocated"]);
    assert_eq!(addresses(&fixture).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn no_port_is_given_out_before_what_services_have_is_known() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let range = storage::Key::from("/registry/ranges/servicenodeports");
    fixture.store.txn(&range, storage::Expect::Any, storage::Write::Delete).await.unwrap();
    let web = || boxed(&fixture, service("web", "NodePort", &[(80, "TCP")]));
    let error = services.create(&cx, web(), &Hooks::none()).await.unwrap_err();
    let told =
        "failed to allocate a nodePort: cannot allocate resources of type servicenodeportallocations at this time";
    assert_eq!((error.code, error.message), (500, format!("Internal error occurred: {told}")));
    assert_eq!(addresses(&fixture).await, [""; 0], "the address was given back");
    repair(&fixture).await;
    services.create(&cx, web(), &Hooks::none()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_edge_of_a_network_can_be_in_the_midst_of_another() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let mut wanted = service("web", "ClusterIP", &[(80, "TCP")]);
    wanted.spec.cluster_ip = "10.0.0.255".into();
    services.create(&cx, boxed(&fixture, wanted.clone()), &Hooks::none()).await.unwrap_err();
    create_cidr(&fixture, "wide", &["10.0.0.0/16"]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    services.create(&cx, boxed(&fixture, wanted), &Hooks::none()).await.unwrap();
    // Each network counts what is in it.
    addresses(&fixture).await;
    let used: Vec<(String, u64, u64)> =
        fixture.registry.networks_used().iter().map(|own| (own.network.to_string(), own.taken, own.free)).collect();
    assert_eq!(used, [("10.0.0.0/24".to_owned(), 0, 254), ("10.0.0.0/16".to_owned(), 1, 65_533)]);
}

#[tokio::test(start_paused = true)]
async fn what_changed_is_looked_at_by_itself() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let mut web = service("web", "ClusterIP", &[(80, "TCP")]);
    web.spec.cluster_ip = "10.0.0.9".into();
    services.create(&cx, boxed(&fixture, web), &Hooks::none()).await.unwrap();
    let kind = fixture.registry.resource("networking.k8s.io", "v1", "ipaddresses").unwrap();
    let look = async |name: &str| {
        let now = fixture.cx("").rules.now;
        let service = fixture.registry.repair_service("default", name, now).await.unwrap();
        let address = fixture.registry.repair_address("10.0.0.9", now).await.unwrap();
        let told = service.findings.iter().chain(&address.findings).map(|finding| finding.reason.as_str());
        (told.collect::<Vec<_>>(), address.again.map(|again| again.as_secs()))
    };
    assert_eq!(look("web").await, (vec![], None));
    kind.delete(&fixture.cx(""), "10.0.0.9", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(addresses(&fixture).await, [""; 0]);
    assert_eq!(look("web").await, (vec!["ClusterIPNotAllocated"], None));
    assert_eq!(addresses(&fixture).await, ["10.0.0.9"]);

    // The Service goes without its companion noticing, and a young address waits for one that may come.
    let key = storage::Key::from("/registry/services/specs/default/web");
    fixture.store.txn(&key, storage::Expect::Any, storage::Write::Delete).await.unwrap();
    services.list(&cx, &ListOptions::default()).await.unwrap();
    assert_eq!(look("web").await, (vec![], Some(61)));
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(look("web").await, (vec!["IPAddressNotAllocated"], None));
    assert_eq!(addresses(&fixture).await, [""; 0]);
    assert_eq!(look("never").await, (vec![], None));
}

/// Which numbers an older server finds taken; nothing where there is no range.
async fn stored_range(fixture: &Fixture) -> Option<Vec<u8>> {
    let kv = fixture.store.get(&storage::Key::from("/registry/ranges/serviceips".to_owned())).await.unwrap().kv?;
    let (range, _) = api_machinery::object::from_protobuf::<RangeAllocation>(&kv.value).unwrap();
    assert_eq!(range.range, "10.0.0.0/24");
    Some(range.data.0)
}

async fn create_at(fixture: &Fixture, address: &str) -> Result<(), String> {
    let mut wanted = service("given", "ClusterIP", &[(80, "TCP")]);
    wanted.spec.cluster_ip = address.to_owned();
    let (services, cx) = (fixture.resource("services"), fixture.cx("default"));
    let created = services.create(&cx, boxed(fixture, wanted), &Hooks::none()).await;
    created.map(drop).map_err(|error| error.message)
}

#[tokio::test(start_paused = true)]
async fn ranges_that_older_servers_look_at_are_kept_while_their_release_is_emulated() {
    let fixture = cluster(&["10.0.0.0/24"], |_| {}).await;
    repair(&fixture).await;
    create_at(&fixture, "10.0.0.9").await.unwrap();
    assert_eq!(stored_range(&fixture).await, None, "nobody of this release looks there");

    let dual = |options: &mut RegistryOptions| options.gates = options.gates.with(crate::DISABLE_DUAL_WRITE, false);
    let fixture = cluster(&["10.0.0.0/24"], dual).await;
    let early = create_at(&fixture, "10.0.0.9").await.unwrap_err();
    assert!(early.contains("cannot allocate resources of type serviceipallocations at this time"), "{early}");
    repair(&fixture).await;
    create_at(&fixture, "10.0.0.9").await.unwrap();
    assert_eq!(stored_range(&fixture).await.unwrap(), [0b1, 0], "the ninth after the network's own");
    let services = fixture.resource("services");
    services.delete(&fixture.cx("default"), "given", &Default::default(), &Hooks::none()).await.unwrap();
    assert_eq!(stored_range(&fixture).await.unwrap(), [] as [u8; 0]);

    // What an older server has given out is nobody else's, for as long as its Service may be about to be written.
    let taken = RangeAllocation {
        range: "10.0.0.0/24".to_owned(),
        data: api_machinery::reflect::ByteString(vec![0b10]),
        ..RangeAllocation::default()
    };
    let key = storage::Key::from("/registry/ranges/serviceips".to_owned());
    let value = (&taken as &dyn Object).to_protobuf();
    fixture.store.txn(&key, storage::Expect::Any, storage::Write::put(value)).await.unwrap();
    let refused = create_at(&fixture, "10.0.0.2").await.unwrap_err();
    assert!(refused.contains("provided IP is already allocated"), "{refused}");
    for passes in 1..=3 {
        assert_eq!(stored_range(&fixture).await.unwrap(), [0b10], "{passes}");
        repair(&fixture).await;
    }
    create_at(&fixture, "10.0.0.2").await.unwrap();
    assert_eq!(stored_range(&fixture).await.unwrap(), [0b10]);
}
