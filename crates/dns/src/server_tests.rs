use std::net::IpAddr;

use base::{Rng, SystemClock};
use hickory_proto::op::{Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};

use super::*;
use crate::data::{EndpointRecord, ServiceRecord};

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
        (name == "many").then_some(own)
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
    let zone = Zone { domain: "cluster.local".into(), ttl: 30, own_service: ("k".into(), "dns".into()) };
    let cache = Cache::new(SystemClock::shared());
    let responder = Responder::new(zone, Arc::new(Many(60)), upstreams, cache, Rng::seeded(1));
    serve(([127, 0, 0, 1], 0).into(), Arc::new(responder), tasks).await.unwrap()
}

fn query(name: &str) -> Vec<u8> {
    let mut message = Message::query();
    message.metadata.id = 4711;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), RecordType::A));
    message.to_vec().unwrap()
}

async fn ask(server: SocketAddr, name: &str, transport: Transport) -> Message {
    let answer = Upstreams::new(vec![server]).ask(&query(name), transport).await.unwrap();
    Message::from_vec(&answer).unwrap()
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
