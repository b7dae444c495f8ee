use super::*;

struct Fixed {
    synced: bool,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn port(number: u16) -> PortRecord {
    PortRecord { name: "http".into(), protocol: "tcp".into(), number }
}

fn all() -> Vec<ServiceRecord> {
    let service = |name: &str, ips: &[&str], external: &str| ServiceRecord {
        namespace: "n".into(),
        name: name.into(),
        cluster_ips: ips.iter().map(|text| ip(text)).collect(),
        external_name: external.into(),
        ports: vec![port(80)],
    };
    vec![
        service("web", &["10.96.0.1", "fd00:96::1"], ""),
        service("headless", &[], ""),
        service("lonely", &[], ""),
        service("outside", &[], "example.com"),
        service("inside", &[], "web.n.svc.cluster.local"),
        service("literal", &[], "192.0.2.1"),
        service("dual", &[], ""),
        service("mixed", &[], ""),
    ]
}

impl ClusterData for Fixed {
    fn is_synced(&self) -> bool {
        self.synced
    }
    fn serial(&self) -> u32 {
        7
    }
    fn has_namespace(&self, name: &str) -> bool {
        name == "n"
    }
    fn service(&self, namespace: &str, name: &str) -> Option<ServiceRecord> {
        all().into_iter().find(|service| service.namespace == namespace && service.name == name)
    }
    fn endpoints(&self, _: &str, name: &str) -> Vec<EndpointRecord> {
        let endpoint = |label: &str, address: &str| EndpointRecord {
            label: label.into(),
            address: ip(address),
            ports: vec![port(8080)],
        };
        match name {
            "headless" => vec![endpoint("db-0", "10.0.0.1"), endpoint("10-0-0-2", "10.0.0.2")],
            // Two slices, one for each family, as a pod with a hostname has them.
            "dual" => vec![endpoint("db-0", "10.0.0.5"), endpoint("db-0", "fd00::5")],
            "mixed" => {
                let other = PortRecord { name: "ftp".into(), ..port(21) };
                vec![endpoint("a", "10.0.0.6"), EndpointRecord { ports: vec![other], ..endpoint("b", "10.0.0.7") }]
            }
            "web" => vec![endpoint("10-0-0-9", "10.0.0.9")],
            _ => Vec::new(),
        }
    }
    fn service_by_ip(&self, address: IpAddr) -> Option<ServiceRecord> {
        all().into_iter().find(|service| service.cluster_ips.contains(&address))
    }
    fn endpoints_by_ip(&self, address: IpAddr) -> Vec<(String, String, EndpointRecord)> {
        let twice = [self.endpoints("n", "headless"), self.endpoints("n", "headless")].concat();
        let own = twice.into_iter().filter(|one| one.address == address);
        own.map(|one| ("n".into(), "headless".into(), one)).collect()
    }
}

fn zone() -> Zone {
    Zone { domain: "cluster.local".into(), ttl: 30, own_service: ("n".into(), "web".into()) }
}

/// The outcome and the data of the answers, as text.
fn ask(name: &str, kind: RecordType) -> (Resolution, Vec<String>) {
    let reply = zone().reply(&Fixed { synced: true }, &Name::from_ascii(format!("{name}.")).unwrap(), kind);
    let answers = reply.answers.iter().map(|record| record.data.to_string()).collect();
    assert!(reply.answers.is_empty() != reply.authorities.is_empty() || reply.outcome == Resolution::Foreign);
    (reply.outcome, answers)
}

#[test]
fn questions() {
    use RecordType::{A, AAAA, CNAME, MX, NS, PTR, SOA, SRV, TXT};
    use Resolution::{Foreign, Found, NoSuchName};
    for (name, kind, outcome, answers) in [
        ("web.n.svc.cluster.local", A, Found, vec!["10.96.0.1"]),
        ("WEB.n.svc.Cluster.Local", AAAA, Found, vec!["fd00:96::1"]),
        ("web.n.svc.cluster.local", TXT, Found, vec![]),
        ("web.n.svc.cluster.local", SRV, Found, vec!["0 100 80 web.n.svc.cluster.local."]),
        ("_http._tcp.web.n.svc.cluster.local", SRV, Found, vec!["0 100 80 web.n.svc.cluster.local."]),
        ("_ftp._tcp.web.n.svc.cluster.local", SRV, NoSuchName, vec![]),
        ("_http._udp.web.n.svc.cluster.local", SRV, NoSuchName, vec![]),
        ("10-0-0-9.web.n.svc.cluster.local", A, Found, vec!["10.0.0.9"]),
        ("headless.n.svc.cluster.local", A, Found, vec!["10.0.0.1", "10.0.0.2"]),
        ("headless.n.svc.cluster.local", AAAA, Found, vec![]),
        ("db-0.headless.n.svc.cluster.local", A, Found, vec!["10.0.0.1"]),
        ("db-9.headless.n.svc.cluster.local", A, NoSuchName, vec![]),
        (
            "_http._tcp.headless.n.svc.cluster.local",
            SRV,
            Found,
            vec!["0 50 8080 db-0.headless.n.svc.cluster.local.", "0 50 8080 10-0-0-2.headless.n.svc.cluster.local."],
        ),
        ("lonely.n.svc.cluster.local", A, NoSuchName, vec![]),
        ("web.m.svc.cluster.local", A, NoSuchName, vec![]),
        ("n.svc.cluster.local", A, Found, vec![]),
        ("m.svc.cluster.local", A, NoSuchName, vec![]),
        ("outside.n.svc.cluster.local", A, Found, vec!["example.com."]),
        ("outside.n.svc.cluster.local", CNAME, Found, vec!["example.com."]),
        ("inside.n.svc.cluster.local", A, Found, vec!["web.n.svc.cluster.local.", "10.96.0.1"]),
        ("literal.n.svc.cluster.local", A, NoSuchName, vec![]),
        ("1-2-3-4.n.pod.cluster.local", A, Found, vec!["1.2.3.4"]),
        ("1-2-3-4.m.pod.cluster.local", A, NoSuchName, vec![]),
        ("cluster.local", A, Found, vec![]),
        ("cluster.local", NS, Found, vec!["web.n.svc.cluster.local."]),
        ("cluster.local", SOA, Found, vec!["ns.dns.cluster.local. hostmaster.cluster.local. 7 7200 1800 86400 30"]),
        ("ns.dns.cluster.local", A, Found, vec!["10.96.0.1"]),
        ("web.n.svc.cluster.local", MX, Found, vec![]),
        ("*.n.svc.cluster.local", A, NoSuchName, vec![]),
        ("_http._tcp.web.n.svc.cluster.local", A, Found, vec!["10.96.0.1"]),
        ("http.tcp.web.n.svc.cluster.local", SRV, Found, vec!["0 100 80 web.n.svc.cluster.local."]),
        ("db-0.dual.n.svc.cluster.local", A, Found, vec!["10.0.0.5"]),
        ("dual.n.svc.cluster.local", SRV, Found, vec!["0 100 8080 db-0.dual.n.svc.cluster.local."]),
        ("db-0.headless.n.svc.cluster.local", SRV, Found, vec!["0 100 8080 db-0.headless.n.svc.cluster.local."]),
        ("_ftp._tcp.mixed.n.svc.cluster.local", A, Found, vec!["10.0.0.7"]),
        ("_http._tcp.outside.n.svc.cluster.local", SRV, NoSuchName, vec![]),
        ("outside.n.svc.cluster.local", SRV, Found, vec![]),
        ("n.pod.cluster.local", A, Found, vec![]),
        ("pod.cluster.local", A, Found, vec![]),
        ("dns-version.cluster.local", TXT, Found, vec!["1.1.0"]),
        ("1.0.96.10.in-addr.arpa", PTR, Found, vec!["web.n.svc.cluster.local."]),
        ("1.0.0.10.in-addr.arpa", PTR, Found, vec!["db-0.headless.n.svc.cluster.local."]),
        ("9.9.9.9.in-addr.arpa", PTR, Foreign, vec![]),
        ("example.com", A, Foreign, vec![]),
    ] {
        let found = ask(name, kind);
        assert_eq!(
            (found.0, found.1.iter().map(String::as_str).collect::<Vec<_>>()),
            (outcome, answers),
            "{name} {kind}"
        );
    }
}

#[test]
fn nothing_is_denied_before_the_contents_have_arrived() {
    let name = Name::from_ascii("web.m.svc.cluster.local.").unwrap();
    assert_eq!(zone().reply(&Fixed { synced: false }, &name, RecordType::A).outcome, Resolution::NotReady);
}

#[test]
fn service_locations_bring_their_addresses() {
    let name = Name::from_ascii("web.n.svc.cluster.local.").unwrap();
    assert_eq!(zone().reply(&Fixed { synced: true }, &name, RecordType::SRV).additionals.len(), 2);
}

#[test]
fn a_target_with_two_addresses_brings_both() {
    let name = Name::from_ascii("dual.n.svc.cluster.local.").unwrap();
    let reply = zone().reply(&Fixed { synced: true }, &name, RecordType::SRV);
    assert_eq!((reply.answers.len(), reply.additionals.len()), (1, 2));
}

#[test]
fn the_zone_has_a_name_server_even_where_its_service_is_not_there() {
    let other = Zone { own_service: ("n".into(), "nobody".into()), ..zone() };
    let name = Name::from_ascii("cluster.local.").unwrap();
    let reply = other.reply(&Fixed { synced: true }, &name, RecordType::NS);
    assert_eq!(reply.answers[0].data.to_string(), "ns.dns.cluster.local.");
}

#[test]
fn locations_of_many_endpoints_have_some_weight() {
    let data = Fixed { synced: true };
    let (zone, name) = (zone(), Name::from_ascii("web.n.svc.cluster.local.").unwrap());
    let question = Question { zone: &zone, data: &data, name: &name, kind: RecordType::SRV };
    let services = (0..200).map(|number| (number, name.clone())).collect();
    let records = question.locations(services);
    assert!(records.iter().all(|record| matches!(&record.data, RData::SRV(srv) if srv.weight == 1)));
}
