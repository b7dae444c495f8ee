//! The variables that tell a container where services are, in the form that Docker links once had.

use std::collections::BTreeMap;

use api_types::core_v1::Service;

/// The service that every pod hears of, whatever its namespace.
const MASTER_SERVICE: &str = "kubernetes";
const MASTER_NAMESPACE: &str = "default";

/// The variables for a pod of `namespace`: those of the API server always, those of the pod's own namespace when it
/// wants links. A service named `kubernetes` of the pod's own namespace wins over the API server's.
#[must_use]
pub(crate) fn variables<'a>(
    services: impl IntoIterator<Item = &'a Service>,
    namespace: &str,
    links: bool,
) -> BTreeMap<String, String> {
    let mut chosen: BTreeMap<&str, &Service> = BTreeMap::new();
    for service in services {
        let (name, own) = (service.metadata.name.as_str(), service.metadata.namespace == namespace);
        let master = name == MASTER_SERVICE && service.metadata.namespace == MASTER_NAMESPACE;
        if !has_address(service) {
            continue;
        }
        if own && links {
            chosen.insert(name, service);
        } else if master {
            chosen.entry(name).or_insert(service);
        }
    }
    let mut variables = BTreeMap::new();
    chosen.into_values().for_each(|service| add(&mut variables, service));
    variables
}

fn has_address(service: &Service) -> bool {
    !matches!(service.spec.cluster_ip.as_str(), "" | "None")
}

fn add(variables: &mut BTreeMap<String, String>, service: &Service) {
    let prefix = variable_name(&service.metadata.name);
    let ip = &service.spec.cluster_ip;
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
    let mut set = |name: String, value: String| drop(variables.insert(format!("{prefix}_{name}"), value));
    set("SERVICE_HOST".to_owned(), ip.clone());
    for (index, port) in service.spec.ports.iter().enumerate() {
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        let lower = protocol.to_ascii_lowercase();
        let url = format!("{lower}://{host}:{}", port.port);
        if index == 0 {
            set("SERVICE_PORT".to_owned(), port.port.to_string());
            set("PORT".to_owned(), url.clone());
        }
        if !port.name.is_empty() {
            set(format!("SERVICE_PORT_{}", variable_name(&port.name)), port.port.to_string());
        }
        let of_port = format!("PORT_{}_{}", port.port, protocol.to_ascii_uppercase());
        set(of_port.clone(), url);
        set(format!("{of_port}_PROTO"), lower);
        set(format!("{of_port}_PORT"), port.port.to_string());
        set(format!("{of_port}_ADDR"), ip.clone());
    }
}

fn variable_name(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ServicePort;

    use super::*;

    fn service(namespace: &str, name: &str, ip: &str, ports: &[(&str, i32)]) -> Service {
        let mut service = Service::default();
        service.metadata.namespace = namespace.into();
        service.metadata.name = name.into();
        service.spec.cluster_ip = ip.into();
        service.spec.ports = ports
            .iter()
            .map(|(name, port)| ServicePort { name: (*name).into(), port: *port, ..ServicePort::default() })
            .collect();
        service
    }

    #[test]
    fn services_become_variables() {
        let services = [
            service("default", "kubernetes", "10.0.0.1", &[("https", 443)]),
            service("shop", "redis-primary", "10.0.0.11", &[("", 6379)]),
            service("shop", "six", "fd00::1", &[("a-b", 80), ("c", 81)]),
            service("shop", "headless", "None", &[("", 1)]),
            service("other", "far", "10.0.0.9", &[("", 1)]),
        ];
        let found = variables(&services, "shop", true);
        let cases = [
            ("REDIS_PRIMARY_SERVICE_HOST", "10.0.0.11"),
            ("REDIS_PRIMARY_SERVICE_PORT", "6379"),
            ("REDIS_PRIMARY_PORT", "tcp://10.0.0.11:6379"),
            ("REDIS_PRIMARY_PORT_6379_TCP", "tcp://10.0.0.11:6379"),
            ("REDIS_PRIMARY_PORT_6379_TCP_PROTO", "tcp"),
            ("REDIS_PRIMARY_PORT_6379_TCP_PORT", "6379"),
            ("REDIS_PRIMARY_PORT_6379_TCP_ADDR", "10.0.0.11"),
            ("KUBERNETES_SERVICE_PORT_HTTPS", "443"),
            ("SIX_PORT", "tcp://[fd00::1]:80"),
            ("SIX_SERVICE_PORT_A_B", "80"),
            ("SIX_PORT_81_TCP_ADDR", "fd00::1"),
        ];
        for (name, value) in cases {
            assert_eq!(found.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert!(!found.keys().any(|name| name.starts_with("HEADLESS") || name.starts_with("FAR")));
        let unlinked = variables(&services, "shop", false);
        assert!(unlinked.keys().all(|name| name.starts_with("KUBERNETES_")) && !unlinked.is_empty());
    }

    #[test]
    fn the_own_service_of_that_name_wins() {
        let both = [
            service("shop", "kubernetes", "10.0.0.5", &[("", 1)]),
            service("default", "kubernetes", "10.0.0.1", &[("", 443)]),
        ];
        assert_eq!(variables(&both, "shop", true)["KUBERNETES_SERVICE_HOST"], "10.0.0.5");
        let swapped = [both[1].clone(), both[0].clone()];
        assert_eq!(variables(&swapped, "shop", true)["KUBERNETES_SERVICE_HOST"], "10.0.0.5");
    }
}
