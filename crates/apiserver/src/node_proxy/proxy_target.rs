//! Where the proxy goes for a pod, a Service or a node.

use std::net::IpAddr;
use std::sync::Arc;

use api_machinery::gvk::GroupResource;
use api_machinery::status::ApiError;
use api_types::core_v1::{EndpointAddress, EndpointSubset, Endpoints, Node, Pod, Service};
use base::host_and_port;
use component_base::tls::{ClientTls, ServerTrust};

use super::access::read;
use super::connection::Backend;
use super::guard::{self, Reach};
use super::kubelet::{Kubelets, Use, Verify, locate, port_of};
use super::proxy_id::ProxyId;
use crate::cx::ApiCx;

/// The backend of a pod.
pub(super) async fn of_pod(cx: &ApiCx, namespace: &str, id: &ProxyId<'_>) -> Result<Backend, ApiError> {
    let pod: Pod = read(cx, "pods", namespace, id.name).await?;
    let port = match id.port.parse() {
        Ok(port) => port,
        Err(_) if id.port.is_empty() => {
            let ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
            let declared = ports.map(|port| port.container_port).find_map(|port| u16::try_from(port).ok());
            declared.unwrap_or(if id.scheme == "https" { 443 } else { 80 })
        }
        Err(_) => {
            return Err(ApiError::bad_request(format!("invalid pod request {:?}", format!("{}:{}", id.name, id.port))));
        }
    };
    let address = pod.status.pod_ips.first().map_or(pod.status.pod_ip.as_str(), |address| address.ip.as_str());
    if address.parse::<IpAddr>().is_err() {
        return Err(ApiError::bad_request("address not allowed"));
    }
    plain(cx, address, port, id.scheme == "https").await
}

/// The backend of a Service: one of its ready endpoints.
pub(super) async fn of_service(cx: &ApiCx, namespace: &str, id: &ProxyId<'_>) -> Result<Backend, ApiError> {
    let port_name = match id.port.parse::<i32>() {
        Ok(number) => {
            let service: Service = read(cx, "services", namespace, id.name).await?;
            let found = service.spec.ports.into_iter().find(|port| port.port == number);
            let missing = || format!("no service port {number} found for service {:?}", id.name);
            found.ok_or_else(|| ApiError::service_unavailable(missing()))?.name
        }
        Err(_) => id.port.to_owned(),
    };
    // A service without them is as good as none.
    let services = || GroupResource { group: "".into(), resource: "services".into() };
    let absent = |error: ApiError| if error.is_not_found() { ApiError::not_found(&services(), id.name) } else { error };
    let endpoints: Endpoints = read(cx, "endpoints", namespace, id.name).await.map_err(absent)?;
    let candidates = candidates(&endpoints.subsets, &port_name);
    let start =
        usize::try_from(cx.rng().below(u64::try_from(candidates.len()).unwrap_or(u64::MAX).max(1))).unwrap_or(0);
    for (address, port) in candidates.iter().cycle().skip(start).take(candidates.len()) {
        if is_pods_own(cx, namespace, address).await {
            return plain(cx, &address.ip, *port, id.scheme == "https").await;
        }
    }
    Err(ApiError::service_unavailable(none_of(id, &endpoints.subsets)))
}

/// That a Service has no endpoint to go to: none at all, or none behind what is asked for.
fn none_of(id: &ProxyId<'_>, subsets: &[EndpointSubset]) -> String {
    let whole = match id {
        ProxyId { scheme: "", port: "", name } => (*name).to_owned(),
        ProxyId { scheme: "", port, name } => format!("{name}:{port}"),
        ProxyId { scheme, port, name } => format!("{scheme}:{name}:{port}"),
    };
    format!("no endpoints available for service {:?}", if subsets.is_empty() { id.name } else { &whole })
}

/// The ready addresses that have a port of that name, each with its port.
fn candidates<'a>(subsets: &'a [EndpointSubset], port_name: &str) -> Vec<(&'a EndpointAddress, u16)> {
    let mut found = Vec::new();
    for subset in subsets {
        let port = subset.ports.iter().find(|port| port.name == port_name);
        let Some(port) = port.and_then(|port| u16::try_from(port.port).ok()) else { continue };
        found.extend(subset.addresses.iter().map(|address| (address, port)));
    }
    found
}

/// An address counts only if the pod that it claims to be of has it: otherwise whoever writes endpoints could have any
/// address dialled.
async fn is_pods_own(cx: &ApiCx, namespace: &str, address: &EndpointAddress) -> bool {
    let Some(reference) = address.target_ref.as_ref().filter(|reference| reference.kind == "Pod") else { return false };
    if reference.namespace != namespace {
        return false;
    }
    let Ok(pod) = read::<Pod>(cx, "pods", namespace, &reference.name).await else { return false };
    pod.status.pod_ip == address.ip || pod.status.pod_ips.iter().any(|own| own.ip == address.ip)
}

/// The backend of a node: its agent, or another port of the node.
pub(super) async fn of_node(cx: &ApiCx, kubelets: &Kubelets, id: &ProxyId<'_>) -> Result<Backend, ApiError> {
    let node: Node = read(cx, "nodes", "", id.name).await?;
    let own = port_of(&node, &cx.config().kubelet);
    let invalid = || ApiError::bad_request(format!("invalid node request {:?}", format!("{}:{}", id.name, id.port)));
    let port = if id.port.is_empty() { own } else { id.port.parse().map_err(|_| invalid())? };
    if port == own {
        return kubelets.of_node(cx, id.name, Use::Proxy, Verify::AsConfigured).await;
    }
    let (host, _) = locate(&node, &cx.config().kubelet)?;
    plain(cx, &host, port, id.scheme == "https").await
}

/// A backend that gets no credentials and whose certificate nobody checks.
async fn plain(cx: &ApiCx, host: &str, port: u16, https: bool) -> Result<Backend, ApiError> {
    let way = guard::way(cx.egress().cluster(), host, port, Reach::Routable).await.map_err(ApiError::bad_request)?;
    let tls = if https {
        let tls = ClientTls { alpn: vec![b"http/1.1".to_vec()], ..ClientTls::new(ServerTrust::Anyone) };
        let name = tls.name_for(host).map_err(ApiError::internal)?;
        Some((Arc::clone(&tls.config().map_err(ApiError::internal)?), name))
    } else {
        None
    };
    Ok(Backend { way, authority: host_and_port(host, port), tls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_without_endpoints_is_named_as_it_was_asked_for() {
        let some = [EndpointSubset::default()];
        for (id, subsets, expected) in [
            ("web:http", &[][..], "web"),
            ("web", &some[..], "web"),
            ("web:http", &some[..], "web:http"),
            ("https:web:443", &some[..], "https:web:443"),
            ("https:web:", &some[..], "https:web:"),
        ] {
            let text = none_of(&ProxyId::parse(id).unwrap(), subsets);
            assert_eq!(text, format!("no endpoints available for service {expected:?}"), "{id}");
        }
    }
}
