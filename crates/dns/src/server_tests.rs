use std::net::IpAddr;

use base::{Rng, SystemClock};
use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::{DNSClass, Name, RecordType};

use super::*;
use crate::cache::Cache;
use crate::data::{ClusterData, EndpointRecord, ServiceRecord};
use crate::forward::Upstreams;
use crate::responder::MAX_FORWARDS;
use crate::zone::Zone;

/// A cluster with one headless Service of many endpoints.
struct Many(u8);

impl ClusterData for Many {
    fn is_synced(&self) -> bool {
        true
    }
    fn serial(&self) -> u32 {
        1
    }
    fn has_namespace(&self, _: &str) -> bool {
        true
    }
    fn service(&self, namespace: &str, name: &str) -> Option<ServiceRecord> {
        let own = ServiceRecord { namespace: namespace.into(), name: name.into(), ..ServiceRecord::default() };
        let alias = ServiceRecord { external_name: "www.example.com".into(), ..own.clone() };
        (name == "many").then_some(own).or((name == "alias").then_some(alias))
    }
    fn endpoints(&self, _: &str, _: &str) -> Vec<EndpointRecord> {
        let endpoint = |last| EndpointRecord {
            label: format!("e{last}"),
            address: IpAddr::from([10, 0, 0, last]),
            ports: Vec::new(),
        };
        (0..self.0).map(endpoint).collect()
    }
    fn service_by_ip(&self, _: IpAddr) -> Option<ServiceRecord> {
        None
    }
    fn endpoints_by_ip(&self, _: IpAddr) -> Vec<(String, String, EndpointRecord)> {
        Vec::new()
    }
}

async fn start(upstreams: Upstreams, tasks: &TaskGroup) -> SocketAddr {
    start_at(([127, 0, 0, 1], 0).into(), upstreams, tasks).await
}

async fn start_at(address: SocketAddr, upstreams: Upstreams, tasks: &TaskGroup) -> SocketAddr {
    let zone = Zone { domain: "cluster.local".into(), ttl: 30, own_service: ("k".into(), "dns".into()) };
    let cache = Cache::new(SystemClock::shared());
    let responder = Responder::new(zone, Arc::new(Many(60)), upstreams, cache, Rng::seeded(1));
    serve(address, Arc::new(responder), tasks).await.unwrap()
}

fn query(name: &str) -> Vec<u8> {
    let mut message = Message::query();
    message.metadata.id = 4711;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message.to_vec().unwrap()
}

async fn ask(server: SocketAddr, name: &str, transport: Transport) -> Message {
    let answer = Upstreams::new(vec![server]).ask(&query(name), transport, &Rng::seeded(1)).await.unwrap();
    Message::from_vec(&answer).unwrap()
}

#[tokio::test]
async fn both_families_are_answered() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        println!("skipped: no IPv6 here");
        return;
    }
    let tasks = TaskGroup::new("test");
    for any in ["0.0.0.0:0", "[::]:0"] {
        let port = start_at(any.parse().unwrap(), Upstreams::default(), &tasks).await.port();
        for address in ["127.0.0.1", "::1"] {
            let server = SocketAddr::new(address.parse().unwrap(), port);
            for transport in [Transport::Udp, Transport::Tcp] {
                let answer = ask(server, "nobody.n.svc.cluster.local.", transport).await;
                assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain, "{any} {server}");
            }
        }
    }
    let one_family = start_at("[::1]:0".parse().unwrap(), Upstreams::default(), &tasks).await;
    assert!(one_family.is_ipv6());
    let mapped = source(Transport::Udp, "[::ffff:10.0.0.9]:53".parse().unwrap());
    assert_eq!(mapped.client, "10.0.0.9:53".parse().unwrap());
}

#[tokio::test]
async fn what_does_not_fit_a_packet_comes_over_a_connection() {
    let tasks = TaskGroup::new("test");
    let server = start(Upstreams::default(), &tasks).await;
    let cut = ask(server, "many.n.svc.cluster.local.", Transport::Udp).await;
    assert!(cut.metadata.truncation && cut.answers.len() < 60);
    assert_eq!(cut.metadata.id, 4711);
    let whole = ask(server, "many.n.svc.cluster.local.", Transport::Tcp).await;
    assert!(!whole.metadata.truncation && whole.metadata.authoritative);
    assert_eq!(whole.answers.len(), 60);
}

#[tokio::test]
async fn foreign_names_are_handed_on() {
    let tasks = TaskGroup::new("test");
    let other = start(Upstreams::default(), &tasks).await;
    let server = start(Upstreams::new(vec![other]), &tasks).await;
    // The other server has nobody to ask, so its failure is what comes back.
    let answer = ask(server, "example.com.", Transport::Udp).await;
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    let missing = ask(server, "nobody.n.svc.cluster.local.", Transport::Udp).await;
    assert_eq!(missing.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(missing.authorities.len(), 1);
}

#[tokio::test]
async fn nonsense_is_answered_or_dropped_but_never_fatal() {
    let tasks = TaskGroup::new("test");
    let server = start(Upstreams::default(), &tasks).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for nonsense in [&b""[..], b"x", b"\x12\x67\x01\x00\x00\x01", &[0xff; 600]] {
        socket.send_to(nonsense, server).await.unwrap();
    }
    assert!(!ask(server, "many.n.svc.cluster.local.", Transport::Udp).await.answers.is_empty());
}

#[tokio::test]
async fn what_is_not_spoken_here_is_said() {
    let tasks = TaskGroup::new("test");
    let server = start(Upstreams::default(), &tasks).await;
    let mut newer = Edns::new();
    newer.set_version(1);
    let plain = || Message::from_vec(&query("many.n.svc.cluster.local.")).unwrap();
    let (mut version, mut code, mut class) = (plain(), plain(), plain());
    version.edns = Some(newer);
    code.metadata.op_code = OpCode::Notify;
    class.queries[0].set_query_class(DNSClass::CH);
    for (name, message, expected) in [
        ("a newer version of extensions", version, ResponseCode::BADVERS),
        ("another operation", code, ResponseCode::NotImp),
        ("another class", class, ResponseCode::Refused),
    ] {
        let bytes = message.to_vec().unwrap();
        let answer = Upstreams::new(vec![server]).ask(&bytes, Transport::Udp, &Rng::seeded(1)).await.unwrap();
        let answer = Message::from_vec(&answer).unwrap();
        // One number has two names.
        let code = u16::from(answer.metadata.response_code);
        assert_eq!((code, answer.metadata.id), (u16::from(expected), 4711), "{name}");
        assert!(answer.metadata.recursion_available, "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_not_missed_at_once() {
    let tasks = TaskGroup::new("test");
    let other = TaskGroup::new("other");
    // A zone of its own, so that it knows the name.
    let upstream = {
        let zone = Zone { domain: "elsewhere".into(), ttl: 30, own_service: ("k".into(), "dns".into()) };
        let cache = Cache::new(SystemClock::shared());
        let responder = Responder::new(zone, Arc::new(Many(3)), Upstreams::default(), cache, Rng::seeded(1));
        serve(([127, 0, 0, 1], 0).into(), Arc::new(responder), &other).await.unwrap()
    };
    let server = start(Upstreams::new(vec![upstream]), &tasks).await;
    assert_eq!(ask(server, "many.n.svc.elsewhere.", Transport::Udp).await.answers.len(), 3);
    other.shutdown(Duration::from_secs(5)).await;
    assert_eq!(ask(server, "many.n.svc.elsewhere.", Transport::Udp).await.answers.len(), 3, "from the cache");
    let unknown = ask(server, "other.n.svc.elsewhere.", Transport::Udp).await;
    assert_eq!(unknown.metadata.response_code, ResponseCode::ServFail);
}

#[tokio::test]
async fn a_silent_upstream_does_not_hold_up_what_is_known_here() {
    let tasks = TaskGroup::new("test");
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = start(Upstreams::new(vec![silent.local_addr().unwrap()]), &tasks).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for number in 0..MAX_QUERIES + MAX_FORWARDS {
        client.send_to(&query(&format!("n{number}.example.")), server).await.unwrap();
        // The queue of the server's socket is short.
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let own = timeout(Duration::from_millis(1000), ask(server, "many.n.svc.cluster.local.", Transport::Udp)).await;
    assert!(own.is_ok_and(|answer| !answer.answers.is_empty()));
}

#[tokio::test]
async fn queries_are_handed_on_with_an_id_of_our_own() {
    let tasks = TaskGroup::new("test");
    let upstream = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = start(Upstreams::new(vec![upstream.local_addr().unwrap()]), &tasks).await;
    let answering = async {
        let mut buffer = [0; 512];
        let (length, from) = upstream.recv_from(&mut buffer).await.unwrap();
        let asked = Message::from_vec(&buffer[..length]).unwrap();
        let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
        answer.queries.clone_from(&asked.queries);
        upstream.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
        asked.metadata.id
    };
    let (seen, answer) = tokio::join!(answering, ask(server, "example.com.", Transport::Udp));
    assert_ne!(seen, 4711);
    assert_eq!((answer.metadata.id, answer.metadata.response_code), (4711, ResponseCode::NoError));
}

#[tokio::test]
async fn the_order_of_addresses_changes() {
    let tasks = TaskGroup::new("test");
    let server = start(Upstreams::default(), &tasks).await;
    let (mut firsts, mut cut_firsts) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    for _ in 0..20 {
        for (transport, seen) in [(Transport::Tcp, &mut firsts), (Transport::Udp, &mut cut_firsts)] {
            let answer = ask(server, "many.n.svc.cluster.local.", transport).await;
            seen.insert(answer.answers[0].data.to_string());
        }
    }
    assert!(firsts.len() > 3 && cut_firsts.len() > 3);
}

#[tokio::test]
async fn a_client_that_takes_large_packets_gets_them() {
    let tasks = TaskGroup::new("test");
    let server = start(Upstreams::default(), &tasks).await;
    let mut message = Message::from_vec(&query("many.n.svc.cluster.local.")).unwrap();
    let mut edns = Edns::new();
    edns.set_max_payload(4096).set_dnssec_ok(true);
    message.edns = Some(edns);
    let bytes = message.to_vec().unwrap();
    let answer = Upstreams::new(vec![server]).ask(&bytes, Transport::Udp, &Rng::seeded(1)).await.unwrap();
    assert!(answer.len() > 900);
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!((answer.metadata.truncation, answer.answers.len()), (false, 60));
    assert!(answer.edns.is_some_and(|edns| edns.flags().dnssec_ok));
}

/// Answers queries over UDP only, and counts them.
async fn packets_only(socket: UdpSocket, count: Arc<std::sync::atomic::AtomicUsize>) {
    let mut buffer = [0; 512];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        let asked = Message::from_vec(&buffer[..length]).unwrap();
        let mut answer = Message::response(asked.metadata.id, asked.metadata.op_code);
        answer.queries.clone_from(&asked.queries);
        let data = hickory_proto::rr::RData::A(hickory_proto::rr::rdata::A::new(192, 0, 2, 1));
        answer.answers.push(hickory_proto::rr::Record::from_rdata(asked.queries[0].name().clone(), 60, data));
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
    }
}

#[tokio::test]
async fn the_target_of_an_alias_is_asked_for_once_and_in_packets() {
    let (tasks, count) = (TaskGroup::new("test"), Arc::default());
    let upstream = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = upstream.local_addr().unwrap();
    tasks.spawn_cancellable("upstream", packets_only(upstream, Arc::clone(&count)));
    let server = start(Upstreams::new(vec![address]), &tasks).await;
    for _ in 0..3 {
        let answer = ask(server, "alias.n.svc.cluster.local.", Transport::Udp).await;
        let texts: Vec<String> = answer.answers.iter().map(|record| record.data.to_string()).collect();
        assert_eq!(texts, ["www.example.com.", "192.0.2.1"]);
    }
    assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn too_many_that_wait_for_others_are_refused() {
    let tasks = TaskGroup::new("test");
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = start(Upstreams::new(vec![silent.local_addr().unwrap()]), &tasks).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for number in 0..2 * MAX_FORWARDS {
        client.send_to(&query(&format!("n{number}.example.")), server).await.unwrap();
        if number % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let refused = ask(server, "last.example.", Transport::Udp).await;
    assert_eq!(refused.metadata.response_code, ResponseCode::Refused);
}

#[tokio::test]
async fn a_server_that_is_its_own_upstream_notices() {
    let tasks = TaskGroup::new("test");
    // The port is known before the server is: what it hands on comes back. Meanwhile somebody else may take it.
    let (port, responder) = loop {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let zone = Zone { domain: "cluster.local".into(), ttl: 30, own_service: ("k".into(), "dns".into()) };
        let cache = Cache::new(SystemClock::shared());
        let responder = Responder::new(zone, Arc::new(Many(3)), Upstreams::new(vec![port]), cache, Rng::seeded(1));
        let responder = Arc::new(responder);
        if serve(port, Arc::clone(&responder), &tasks).await.is_ok() {
            break (port, responder);
        }
    };
    timeout(Duration::from_secs(20), responder.look_for_loops()).await.unwrap();
    let failed = timeout(Duration::from_secs(1), ask(port, "example.com.", Transport::Udp)).await.unwrap();
    assert_eq!(failed.metadata.response_code, ResponseCode::ServFail);
    assert!(!ask(port, "many.n.svc.cluster.local.", Transport::Udp).await.answers.is_empty());
}
