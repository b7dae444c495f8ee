//! Addresses and ports of Services that two servers give out.

use std::collections::BTreeSet;
use std::time::Duration;

use api_machinery::meta::DeleteOptions;
use api_types::core_v1::{Service, ServicePort};
use api_types::networking_v1::ServiceCIDR;
use client::Client;

use crate::{at_once, both, doubled, until};

const SERVICES: usize = 40;
/// Longer than the repair of addresses and ports takes to come round.
const REPAIR: Duration = Duration::from_secs(400);

fn service(name: &str) -> Service {
    let mut service = Service::default();
    service.metadata.name = name.to_owned();
    service.spec.type_ = "NodePort".into();
    service.spec.ports.push(ServicePort { port: 80, ..ServicePort::default() });
    service
}

async fn make(client: &Client, name: &str) -> Service {
    client.namespaced::<Service>("default").create(&service(name)).await.expect("a service")
}

/// Addresses and node ports, each once.
async fn given(client: &Client) -> (usize, BTreeSet<String>, BTreeSet<i32>) {
    let all = client.namespaced::<Service>("default").list(&Default::default()).await.expect("a list").items;
    let own: Vec<&Service> = all.iter().filter(|service| service.metadata.name != "kubernetes").collect();
    let addresses = own.iter().map(|service| service.spec.cluster_ip.clone()).collect();
    (own.len(), addresses, own.iter().flat_map(|service| &service.spec.ports).map(|port| port.node_port).collect())
}

#[test]
fn nothing_is_given_twice() {
    doubled(async |cluster| {
        let servers = both(cluster);
        let names: Vec<String> = (0..SERVICES).map(|number| format!("s{number}")).collect();
        at_once(names.iter().enumerate().map(|(index, name)| make(&servers[index % 2], name))).await;
        let first = given(&servers[0]).await;
        assert_eq!((first.0, first.1.len(), first.2.len()), (SERVICES, SERVICES, SERVICES));

        // Every second one goes, through the other server than it came by, while new ones come.
        let gone = names.iter().enumerate().filter(|(index, _)| index % 2 == 0).map(async |(_, name)| {
            let services = servers[1].namespaced::<Service>("default");
            services.delete(name, &DeleteOptions::default()).await.map(drop).expect("it was there");
        });
        let new: Vec<String> = (0..SERVICES / 2).map(|number| format!("t{number}")).collect();
        let come = at_once(new.iter().enumerate().map(|(index, name)| make(&servers[index % 2], name)));
        tokio::join!(at_once(gone), come);
        let second = given(&servers[1]).await;
        assert_eq!((second.0, second.1.len(), second.2.len()), (SERVICES, SERVICES, SERVICES));
        tokio::time::sleep(REPAIR).await;
        assert_eq!(given(&servers[0]).await, second, "repair takes nothing that is in use");
    });
}

#[test]
fn an_address_that_is_asked_for_is_given_to_one() {
    doubled(async |cluster| {
        let servers = both(cluster);
        let model = make(&servers[0], "model").await;
        let (address, port) = (model.spec.cluster_ip.clone(), model.spec.ports[0].node_port);
        for round in 0..5 {
            let services = servers[0].namespaced::<Service>("default");
            let holder = if round == 0 { "model".to_owned() } else { given_to(&servers[1], &address).await };
            services.delete(&holder, &DeleteOptions::default()).await.map(drop).expect("it was there");
            let attempts = (0..6).map(async |number: usize| {
                let mut wanted = service(&format!("r{round}-{number}"));
                wanted.spec.cluster_ip.clone_from(&address);
                wanted.spec.ports[0].node_port = port;
                servers[number % 2].namespaced::<Service>("default").create(&wanted).await.is_ok()
            });
            let won = at_once(attempts).await.into_iter().filter(|won| *won).count();
            assert_eq!(won, 1, "round {round}");
        }
    });
}

async fn given_to(client: &Client, address: &str) -> String {
    let all = client.namespaced::<Service>("default").list(&Default::default()).await.expect("a list").items;
    let found = all.iter().find(|service| service.spec.cluster_ip == address);
    found.expect("somebody has it").metadata.name.clone()
}

/// A network that comes through one server is given out by the other, and stays for as long as somebody has an address of
/// it, though it is to go.
#[test]
fn a_network_comes_and_goes_for_both() {
    doubled(async |cluster| {
        let servers = both(cluster);
        let [one, other] = &servers[..] else { panic!("two servers") };
        let within = |name: &str, address: &str| {
            let mut wanted = service(name);
            wanted.spec.cluster_ip = address.to_owned();
            wanted
        };
        let (of_one, of_other) = (one.namespaced::<Service>("default"), other.namespaced::<Service>("default"));
        let refused = of_other.create(&within("early", "172.31.0.9")).await.expect_err("there is no such network");
        assert!(refused.to_string().contains("the provided network does not match the current range"), "{refused}");

        let networks = one.all::<ServiceCIDR>();
        let mut more = ServiceCIDR::default();
        more.metadata.name = "more".to_owned();
        more.spec.cidrs = vec!["172.31.0.0/24".to_owned()];
        networks.create(&more).await.expect("a network");
        let is_ready = |own: &ServiceCIDR, status: &str| {
            own.status.conditions.iter().any(|condition| (&*condition.type_, &*condition.status) == ("Ready", status))
        };
        until("it is ready", Duration::from_secs(20), async || {
            is_ready(&networks.get("more").await.expect("it is there"), "True")
        })
        .await;
        of_other.create(&within("early", "172.31.0.9")).await.expect("an address of it");

        networks.delete("more", &DeleteOptions::default()).await.map(drop).expect("it was there");
        until("it says why it stays", Duration::from_secs(20), async || {
            is_ready(&networks.get("more").await.expect("it is there"), "False")
        })
        .await;
        for services in [&of_one, &of_other] {
            let refused = services.create(&within("late", "172.31.0.10")).await.expect_err("it is to go");
            assert!(refused.to_string().contains("does not match the current range"), "{refused}");
        }
        of_one.delete("early", &DeleteOptions::default()).await.map(drop).expect("it was there");
        until("it is gone", Duration::from_secs(30), async || {
            networks.get_opt("more").await.expect("an answer").is_none()
        })
        .await;
    });
}
