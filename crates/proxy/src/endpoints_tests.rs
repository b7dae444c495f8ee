use super::*;

fn port(external_local: bool, internal_local: bool) -> ServedPort {
    let key = PortKey { namespace: "n".into(), name: "s".into(), port: String::new(), protocol: "TCP".into() };
    ServedPort {
        key,
        cluster_ip: IpAddr::from([10, 96, 0, 9]),
        port: 80,
        node_port: 30080,
        external_ips: Vec::new(),
        load_balancer_ips: Vec::new(),
        source_ranges: Vec::new(),
        external_local,
        internal_local,
        affinity_seconds: None,
        health_check_port: 0,
    }
}

/// An endpoint from a short text: `L` local, `R` ready, `T` terminating and serving, `a`/`b` hinted zone.
fn endpoint(last: u8, marks: &str) -> Endpoint {
    let zone = marks.chars().find(char::is_ascii_lowercase);
    Endpoint {
        address: IpAddr::from([10, 0, 0, last]),
        port: 8080,
        local: marks.contains('L'),
        ready: marks.contains('R'),
        serving: marks.contains('R') || marks.contains('T'),
        terminating: marks.contains('T'),
        zones: zone.map(String::from).into_iter().collect(),
        nodes: Vec::new(),
    }
}

fn lasts(endpoints: &[Endpoint]) -> Vec<u8> {
    endpoints
        .iter()
        .map(|one| match one.address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(_) => 0,
        })
        .collect()
}

#[test]
fn choices() {
    let topology = NodeTopology { name: "n1".into(), zone: "a".into() };
    for (name, port, marks, cluster, local, any) in [
        ("ready ones", port(false, false), vec!["R", "LR", ""], vec![0, 1], vec![], true),
        ("nobody", port(false, false), vec!["", ""], vec![], vec![], false),
        ("terminating ones as a last resort", port(false, false), vec!["T", ""], vec![0], vec![], true),
        ("local policy", port(true, false), vec!["R", "LR"], vec![0, 1], vec![1], true),
        ("local policy, only terminating here", port(true, false), vec!["R", "LT"], vec![0], vec![1], true),
        ("local policy, none here", port(true, false), vec!["R"], vec![0], vec![], true),
        ("hints for all", port(false, false), vec!["Ra", "Rb"], vec![0], vec![], true),
        ("one without a hint", port(false, false), vec!["Ra", "R"], vec![0, 1], vec![], true),
        ("no hint for this zone", port(false, false), vec!["Rb", "Rb"], vec![0, 1], vec![], true),
    ] {
        let endpoints: Vec<Endpoint> = (0_u8..).zip(marks).map(|(index, marks)| endpoint(index, marks)).collect();
        let found = select(&port, &endpoints, &topology);
        assert_eq!((lasts(&found.cluster), lasts(&found.local), found.any), (cluster, local, any), "{name}");
    }
}

#[test]
fn slices_are_merged_and_running_beats_terminating() {
    let slice = |terminating: bool| {
        let mut slice = EndpointSlice::default();
        slice.metadata.namespace = "n".into();
        slice.metadata.labels.insert(SERVICE_NAME.into(), "s".into());
        slice.ports = vec![api_types::discovery_v1::EndpointPort {
            name: Some(String::new()),
            port: Some(8080),
            ..Default::default()
        }];
        let mut one = api_types::discovery_v1::Endpoint { addresses: vec!["10.0.0.1".into()], ..Default::default() };
        one.conditions.terminating = Some(terminating);
        slice.endpoints.push(one);
        slice
    };
    let (running, ending) = (slice(false), slice(true));
    for order in [[&running, &ending], [&ending, &running]] {
        let gathered = gather(order, &NodeTopology::default());
        let endpoints: Vec<&Endpoint> = gathered.values().flatten().collect();
        assert_eq!((endpoints.len(), endpoints[0].terminating), (1, false));
    }
}
