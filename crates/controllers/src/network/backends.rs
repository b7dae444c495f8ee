//! Which pods stand behind a service, with which addresses and ports; the same for Endpoints and EndpointSlices.

use std::net::IpAddr;

use api_machinery::intstr::IntOrString;
use api_types::core_v1::constants::CLUSTER_IP_NONE;
use api_types::core_v1::{Container, ObjectReference, Pod, Service, ServicePort};
use component_helpers::pod_state;

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    /// As in `spec.ipFamilies` and `addressType`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub(super) fn of(address: &str) -> Option<Self> {
        address.parse::<IpAddr>().ok().map(|address| if address.is_ipv4() { Self::V4 } else { Self::V6 })
    }
}

/// The families of a service, the primary one first; empty where nothing tells.
pub(super) fn families(service: &Service) -> Vec<Family> {
    let known = [Family::V4, Family::V6];
    let named = service.spec.ip_families.iter();
    let named: Vec<Family> = named.filter_map(|name| known.into_iter().find(|family| family.name() == name)).collect();
    if named.is_empty() { Family::of(&service.spec.cluster_ip).into_iter().collect() } else { named }
}

/// Whether the service has no address of its own.
pub(super) fn is_headless(service: &Service) -> bool {
    service.spec.cluster_ip.is_empty() || service.spec.cluster_ip == CLUSTER_IP_NONE
}

/// Whether the service's selector chooses the labels; without a selector it chooses nothing.
pub(super) fn selects(service: &Service, labels: &std::collections::BTreeMap<String, String>) -> bool {
    let selector = &service.spec.selector;
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether a pod can stand behind a service: it has an address and has not ended.
pub(super) fn counts(pod: &Pod) -> bool {
    !pod_state::is_terminal(pod) && (!pod.status.pod_ip.is_empty() || !pod.status.pod_ips.is_empty())
}

/// All addresses of a pod, in canonical form.
pub(super) fn addresses(pod: &Pod) -> impl Iterator<Item = IpAddr> {
    let all = pod.status.pod_ips.iter().map(|address| address.ip.as_str());
    let only = pod.status.pod_ips.is_empty().then_some(pod.status.pod_ip.as_str());
    all.chain(only).filter_map(|address| address.parse().ok())
}

/// The addresses of a pod in a family.
pub(super) fn addresses_of(pod: &Pod, family: Family) -> Vec<String> {
    let of_family = addresses(pod).filter(|address| address.is_ipv4() == (family == Family::V4));
    of_family.map(|address| address.to_string()).collect()
}

/// The pod's own host name, where the service is its subdomain.
pub(super) fn hostname(pod: &Pod, service: &Service) -> Option<String> {
    let own = !pod.spec.hostname.is_empty()
        && pod.spec.subdomain == service.metadata.name
        && pod.metadata.namespace == service.metadata.namespace;
    own.then(|| pod.spec.hostname.clone())
}

/// The reference to a pod in an address.
pub(super) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: "Pod".to_owned(),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The number behind a service's port on this pod; nothing where the pod has no port of that name.
pub(super) fn target_port(pod: &Pod, port: &ServicePort) -> Option<i32> {
    let name = match &port.target_port {
        IntOrString::Int(number) => return Some(*number),
        IntOrString::Str(name) => name,
    };
    let find = |container: &Container| {
        let named = |own: &&api_types::core_v1::ContainerPort| own.name == *name && own.protocol == port.protocol;
        container.ports.iter().find(named).map(|own| own.container_port)
    };
    let sidecars = pod.spec.init_containers.iter().filter(|container| pod_state::is_sidecar(container));
    pod.spec.containers.iter().chain(sidecars).find_map(find)
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ContainerPort;

    use super::*;

    #[test]
    fn ports_are_numbers_or_names() {
        let mut pod = Pod::default();
        let port = |name: &str, number, protocol: &str| ContainerPort {
            name: name.into(),
            container_port: number,
            protocol: protocol.into(),
            ..ContainerPort::default()
        };
        let ports = vec![port("dns", 53, "UDP"), port("dns", 54, "TCP")];
        pod.spec.containers.push(Container { ports, ..Container::default() });
        let once = Container { ports: vec![port("late", 1, "TCP")], ..Container::default() };
        let sidecar = Container { restart_policy: Some("Always".into()), ..once.clone() };
        for (name, target, init, expected) in [
            ("a number need not be declared", IntOrString::Int(80), &once, Some(80)),
            ("name and protocol count", IntOrString::Str("dns".into()), &once, Some(54)),
            ("unknown name", IntOrString::Str("late".into()), &once, None),
            ("sidecars count", IntOrString::Str("late".into()), &sidecar, Some(1)),
        ] {
            pod.spec.init_containers = vec![init.clone()];
            let port = ServicePort { target_port: target, protocol: "TCP".into(), ..ServicePort::default() };
            assert_eq!(target_port(&pod, &port), expected, "{name}");
        }
    }
}
