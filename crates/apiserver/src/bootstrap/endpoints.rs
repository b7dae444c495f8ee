//! The Endpoints and the EndpointSlice of the Service `kubernetes`, as they should be.

use std::collections::BTreeSet;
use std::net::IpAddr;

use api_machinery::meta::{DeleteOptions, ObjectMeta};
use api_types::core_v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
use api_types::discovery_v1::{self, Endpoint, EndpointConditions, EndpointSlice};
use client::{Client, ClientError};

pub(super) const NAMESPACE: &str = "default";
pub(super) const NAME: &str = "kubernetes";
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const PORT_NAME: &str = "https";

fn metadata(label: &str, value: &str) -> ObjectMeta {
    let labels = [(label.to_owned(), value.to_owned())].into();
    ObjectMeta { name: NAME.into(), namespace: NAMESPACE.into(), labels, ..ObjectMeta::default() }
}

/// The addresses that are published now.
pub(super) async fn published(client: &Client) -> Result<BTreeSet<String>, ClientError> {
    let stored = client.namespaced::<Endpoints>(NAMESPACE).get_opt(NAME).await?;
    let subsets = stored.into_iter().flat_map(|endpoints| endpoints.subsets);
    Ok(subsets.flat_map(|subset| subset.addresses).map(|address| address.ip).collect())
}

/// Writes both objects where they differ from these addresses and this port.
pub(super) async fn publish(client: &Client, addresses: &BTreeSet<String>, port: u16) -> Result<(), ClientError> {
    publish_endpoints(client, addresses, port).await?;
    publish_slice(client, addresses, port).await
}

async fn publish_endpoints(client: &Client, addresses: &BTreeSet<String>, port: u16) -> Result<(), ClientError> {
    let api = client.namespaced::<Endpoints>(NAMESPACE);
    let subset = EndpointSubset {
        addresses: addresses
            .iter()
            .map(|ip| EndpointAddress { ip: ip.clone(), ..EndpointAddress::default() })
            .collect(),
        ports: vec![EndpointPort {
            name: PORT_NAME.to_owned(),
            port: port.into(),
            protocol: "TCP".to_owned(),
            app_protocol: None,
        }],
        ..EndpointSubset::default()
    };
    let subsets = if addresses.is_empty() { Vec::new() } else { vec![subset] };
    match api.get_opt(NAME).await? {
        None => {
            let wanted = Endpoints { metadata: metadata(SKIP_MIRROR, "true"), subsets };
            api.create(&wanted).await.map(drop)
        }
        Some(stored) if is_current(&stored, addresses) => Ok(()),
        Some(mut stored) => {
            stored.metadata.labels.insert(SKIP_MIRROR.to_owned(), "true".to_owned());
            stored.subsets = subsets;
            api.update(&stored).await.map(drop)
        }
    }
}

fn is_current(stored: &Endpoints, addresses: &BTreeSet<String>) -> bool {
    let labelled = stored.metadata.labels.get(SKIP_MIRROR).is_some_and(|value| value == "true");
    match stored.subsets.as_slice() {
        [] => labelled && addresses.is_empty(),
        [subset] => labelled && subset.addresses.iter().map(|address| &address.ip).eq(addresses),
        _ => false,
    }
}

async fn publish_slice(client: &Client, addresses: &BTreeSet<String>, port: u16) -> Result<(), ClientError> {
    let api = client.namespaced::<EndpointSlice>(NAMESPACE);
    let wanted = slice(addresses, port);
    match api.get_opt(NAME).await? {
        None => api.create(&wanted).await.map(drop),
        Some(stored) if stored.address_type != wanted.address_type => {
            api.delete(NAME, &DeleteOptions::default()).await?;
            api.create(&wanted).await.map(drop)
        }
        Some(mut stored) => {
            let current = stored.endpoints == wanted.endpoints && stored.ports == wanted.ports;
            let labelled = stored.metadata.labels.get(SERVICE_NAME).is_some_and(|name| name == NAME);
            if current && labelled {
                return Ok(());
            }
            stored.metadata.labels.extend(wanted.metadata.labels);
            stored.endpoints = wanted.endpoints;
            stored.ports = wanted.ports;
            api.update(&stored).await.map(drop)
        }
    }
}

fn slice(addresses: &BTreeSet<String>, port: u16) -> EndpointSlice {
    let is_v6 = addresses.iter().any(|address| address.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()));
    let endpoint = |address: &String| Endpoint {
        addresses: vec![address.clone()],
        conditions: EndpointConditions { ready: Some(true), ..EndpointConditions::default() },
        ..Endpoint::default()
    };
    EndpointSlice {
        metadata: metadata(SERVICE_NAME, NAME),
        address_type: if is_v6 { "IPv6" } else { "IPv4" }.to_owned(),
        endpoints: addresses.iter().map(endpoint).collect(),
        ports: vec![discovery_v1::EndpointPort {
            name: Some(PORT_NAME.to_owned()),
            protocol: Some("TCP".to_owned()),
            port: Some(port.into()),
            app_protocol: None,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_rewritten_only_when_they_differ() {
        let addresses = BTreeSet::from(["10.0.0.1".to_owned(), "10.0.0.2".to_owned()]);
        let address = |ip: &str| EndpointAddress { ip: ip.into(), ..EndpointAddress::default() };
        let subset = EndpointSubset { addresses: vec![address("10.0.0.1"), address("10.0.0.2")], ..Default::default() };
        let mut stored = Endpoints { metadata: metadata(SKIP_MIRROR, "true"), subsets: vec![subset.clone()] };
        assert!(is_current(&stored, &addresses));
        assert!(!is_current(&stored, &BTreeSet::new()));
        stored.subsets.push(subset);
        assert!(!is_current(&stored, &addresses));
        stored.subsets.pop();
        stored.metadata.labels.clear();
        assert!(!is_current(&stored, &addresses));
        assert_eq!(slice(&BTreeSet::from(["fd00::1".to_owned()]), 6443).address_type, "IPv6");
    }
}
