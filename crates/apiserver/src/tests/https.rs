//! The server behind a real socket.

use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_types::core_v1::ConfigMap;
use base::{Rng, SystemClock, TaskGroup};
use client::{Client, ClientConfig, ClientCx, ContentType, Credentials, Trust, WatchEvent};
use component_base::serving::{Counters, Limits, PortSharing, SecureServing};
use component_base::tls::TlsOptions;

use super::harness::Api;

/// An ephemeral port, and a pair that is made for the occasion.
pub(super) fn serving() -> SecureServing {
    SecureServing {
        address: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
        sharing: PortSharing::Exclusive,
        files: None,
        cert_dir: "".into(),
        pair_name: "apiserver".into(),
        sni: Vec::new(),
        tls: TlsOptions::default(),
        limits: Limits::default(),
        counters: Counters::default(),
        asks_for_certificates: false,
    }
}

#[tokio::test]
async fn clients_come_over_https() {
    component_base::tls::install_default();
    let api = Api::with(|config| config.serving = Some(serving())).await;
    let handle = api.server.listen().unwrap().expect("it listens");
    for content in [ContentType::Protobuf, ContentType::Json] {
        let mut config = ClientConfig::for_server(format!("https://{}", handle.address()));
        config.trust = Trust::Insecure;
        config.content = content;
        config.credentials = Credentials::Token("root".into());
        let tasks = TaskGroup::new("client");
        let process = ClientCx::new(SystemClock::shared(), Rng::seeded(1), tasks.clone());
        let client = Client::new(config, process).unwrap();
        let maps = client.namespaced::<ConfigMap>("default");
        let mut map = ConfigMap::default();
        map.metadata.name = "over-https".into();
        let mut watch =
            maps.watch(&ListOptions { resource_version: "0".into(), ..ListOptions::default() }).await.unwrap();
        let made = maps.create(&map).await.unwrap();
        assert!(!made.metadata.uid.is_empty());
        loop {
            match watch.next().await.expect("an event").expect("a good event") {
                WatchEvent::Added(seen) if seen.metadata.name == "over-https" => break,
                _ => {}
            }
        }
        assert!(
            maps.list(&ListOptions::default()).await.unwrap().items.iter().any(|item| item.metadata == made.metadata)
        );
        maps.delete("over-https", &Default::default()).await.unwrap();
        tasks.cancel();
    }
    api.server.cx().watches().end(std::time::Duration::ZERO).await;
    handle.shutdown(std::time::Duration::from_secs(2)).await;
    drop(Arc::clone(api.server.cx()));
}

#[tokio::test]
async fn the_end_closes_the_port_and_waits_for_what_runs() {
    component_base::tls::install_default();
    let api = Api::with(|config| config.serving = Some(serving())).await;
    // What the start does would be taken for the request that is waited for.
    api.wait_until_ready().await;
    let handle = api.server.listen().unwrap().expect("it listens");
    let mut config = ClientConfig::for_server(format!("https://{}", handle.address()));
    config.trust = Trust::Insecure;
    config.credentials = Credentials::Token("root".into());
    let tasks = TaskGroup::new("client");
    let client = Client::new(config, ClientCx::new(SystemClock::shared(), Rng::seeded(1), tasks.clone())).unwrap();
    let slow = client.send(client::Request::get("/test/slow").query("timeout", "2s"));
    let closed = async {
        // Besides the one that asks.
        let runs = "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 2";
        while !api.get("/metrics").await.text.contains(runs) {
            tokio::task::yield_now().await;
        }
        let end = crate::server::shut_down(api.server.cx(), Some(&handle));
        let refused = async {
            while tokio::net::TcpStream::connect(handle.address()).await.is_ok() {
                tokio::task::yield_now().await;
            }
            !api.server.cx().lifecycle.events().in_flight_requests_drained.has_happened()
        };
        tokio::join!(end, refused).1
    };
    let (answer, closed_first) = tokio::join!(slow, closed);
    assert!(closed_first, "the port is closed before the request ends");
    assert!(format!("{answer:?}").contains("did not complete within the allotted timeout"), "{answer:?}");
    tasks.cancel();
}

#[tokio::test]
async fn unknown_clients_do_not_take_all_connections() {
    component_base::tls::install_default();
    let mut limited = serving();
    limited.limits.newcomers = Some(3);
    let api = Api::with(|config| config.serving = Some(limited)).await;
    let handle = api.server.listen().unwrap().expect("it listens");
    let mut config = ClientConfig::for_server(format!("https://{}", handle.address()));
    config.trust = Trust::Insecure;
    config.credentials = Credentials::Token("root".into());
    let tasks = TaskGroup::new("client");
    let known = || Client::new(config.clone(), ClientCx::new(SystemClock::shared(), Rng::seeded(1), tasks.clone()));
    let mut clients = Vec::new();
    for _ in 0..5 {
        let client = known().unwrap();
        client.namespaced::<ConfigMap>("default").list(&ListOptions::default()).await.unwrap();
        clients.push(client);
    }
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(tokio::net::TcpStream::connect(handle.address()).await.unwrap());
    }
    let counter = "coxswain_apiserver_refused_connections_total 17";
    for _ in 0..500 {
        if api.get("/metrics").await.text.contains(counter) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let metrics = api.get("/metrics").await.text;
    assert!(metrics.contains(counter), "{metrics}");
    clients[0].namespaced::<ConfigMap>("default").list(&ListOptions::default()).await.unwrap();
    tasks.cancel();
}
