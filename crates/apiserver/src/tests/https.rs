//! The server behind a real socket.

use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_types::core_v1::ConfigMap;
use base::{Rng, SystemClock, TaskGroup};
use client::{Client, ClientConfig, ClientCx, ContentType, Credentials, Trust, WatchEvent};
use component_base::serving::{Limits, PortSharing, SecureServing};
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
    api.server.cx().streams().cancel();
    handle.shutdown(std::time::Duration::from_secs(2)).await;
    drop(Arc::clone(api.server.cx()));
}
