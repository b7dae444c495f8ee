//! A client of UDP that sends on from one port, in the kernel's own eyes: it is steered to an endpoint that went while no
//! proxy ran, until a proxy starts; and to the one that is there from then on.

use sys::exec::{Command, Exec as _, LinuxExec};
use sys::net::{Address, IpRoute, Route};
use sys::netns::path_of;

use super::random_tests::with_kernels;
use super::tests::{Fixed, options, service, slice};
use super::*;
use crate::nftables::NftablesBackend;

const NAMESPACE: &str = "coxswain-test-proxy-udp";
const CLIENT: &str = "10.9.9.9";
const CLUSTER_IP: &str = "10.96.0.10";

/// A Service of UDP with one endpoint.
fn source(endpoint: &str) -> Fixed {
    let (source, key) = (Fixed::default(), ObjectKey::new("n", "dns"));
    let (mut service, mut slice) = (service("dns", CLUSTER_IP), slice("dns", &[endpoint]));
    service.spec.ports[0].protocol = "UDP".into();
    slice.ports[0].protocol = Some("UDP".into());
    let mut state = source.0.lock();
    state.services.insert(key.clone(), service);
    state.slices.insert(key, slice);
    drop(state);
    source
}

/// Everything leads back to the namespace's own link: packets need not arrive to be tracked.
async fn lay_out(network: &IpRoute) {
    let own: Address = format!("{CLIENT}/32").parse().unwrap();
    network.add_address("lo", own).await.unwrap();
    let destination = "10.0.0.0/8".parse().unwrap();
    let route = Route { destination, gateway: None, device: Some("lo".into()), source: Some(own.ip) };
    network.set_route(&route).await.unwrap();
}

/// Who answers the client, after it has sent a packet.
async fn sent_to(network: &IpRoute) -> Vec<String> {
    let to = format!("UDP4-SENDTO:{CLUSTER_IP}:80,bind={CLIENT}:4000");
    let send = Command::with("socat", &["-u", "-", &to]).stdin("x").netns(Some(path_of(NAMESPACE)));
    LinuxExec.run_ok(&send).await.unwrap();
    let tracked = network.connections(Protocol::Udp, false).await.unwrap();
    tracked.iter().map(|flow| format!("{}:{}", flow.reply_source, flow.reply_port)).collect()
}

#[tokio::test]
async fn a_client_of_an_endpoint_that_went_while_no_proxy_ran_is_steered_anew() {
    if !["/usr/bin/socat", "/usr/sbin/conntrack"].iter().all(|path| std::path::Path::new(path).exists()) {
        println!("skipped: socat or conntrack is not installed");
        return;
    }
    with_kernels([NAMESPACE], async |[filter]| {
        let network = Arc::new(IpRoute::new(Arc::new(LinuxExec), Some(&path_of(NAMESPACE))));
        lay_out(&network).await;
        let backend = || Box::new(NftablesBackend::new(Arc::clone(&filter)));
        let start = || Engine::new(options(), NodeTopology::default(), backend(), Arc::clone(&network) as _);
        let now = Instant::now();
        start().sync(&source("10.0.0.1"), &BTreeSet::new(), now).await.unwrap();
        assert_eq!(sent_to(&network).await, ["10.0.0.1:8080"]);
        assert_eq!(sent_to(&network).await, ["10.0.0.1:8080"]);

        let mut next = start();
        next.sync(&source("10.0.0.2"), &BTreeSet::new(), now).await.unwrap();
        assert_eq!(next.take_counts().forgotten, 1);
        assert_eq!(sent_to(&network).await, ["10.0.0.2:8080"]);
    })
    .await;
}
