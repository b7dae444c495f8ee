//! Which endpoints a port of a Service leads to. Pure, but for the choice of one.

use api_types::core_v1::{Service, ServicePort};
use api_types::discovery_v1::constants::LABEL_SERVICE_NAME;
use api_types::discovery_v1::{EndpointPort, EndpointSlice};
use base::SharedRng;

/// Host and port.
pub(crate) type HostPort = (String, u16);

/// A port of a Service leads nowhere. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoEndpoint {
    /// The Service has no such port.
    #[error("no service port {port} found for service {service:?}")]
    Port {
        /// The port.
        port: u16,
        /// The name of the Service.
        service: String,
    },
    /// Nobody behind it is ready.
    #[error("no endpoints available for service {0:?}")]
    Ready(String),
}

impl NoEndpoint {
    /// Nobody behind a Service is ready.
    pub(crate) fn none(service: &Service) -> Self {
        Self::Ready(service.metadata.name.clone())
    }
}

/// The port of a Service by its number.
pub(crate) fn port_of(service: &Service, port: u16) -> Option<&ServicePort> {
    service.spec.ports.iter().find(|own| own.port == i32::from(port))
}

/// The same.
///
/// # Errors
/// When it has none.
pub(crate) fn require_port(service: &Service, port: u16) -> Result<&ServicePort, NoEndpoint> {
    port_of(service, port).ok_or_else(|| NoEndpoint::Port { port, service: service.metadata.name.clone() })
}

/// The ready addresses of a slice that have a port of this name.
pub(crate) fn ready<'a>(slice: &'a EndpointSlice, port_name: &str) -> impl Iterator<Item = (&'a str, u16)> + use<'a> {
    let named = |own: &&EndpointPort| own.name.as_deref().unwrap_or_default() == port_name;
    let port = slice.ports.iter().find(named).and_then(|own| u16::try_from(own.port?).ok());
    let ready = slice.endpoints.iter().filter(|own| own.conditions.ready.unwrap_or(true));
    ready.filter_map(move |own| Some((own.addresses.first()?.as_str(), port?)))
}

/// The ready addresses behind a port, out of the slices of a namespace, of the Service's first family where it has any of that.
///
/// # Errors
/// When there are none.
pub(crate) fn endpoints<'a>(
    service: &Service,
    slices: impl IntoIterator<Item = &'a EndpointSlice>,
    port: u16,
) -> Result<Vec<HostPort>, NoEndpoint> {
    let name = &require_port(service, port)?.name;
    let (mut preferred, mut others) = (Vec::new(), Vec::new());
    let is_own = |slice: &&EndpointSlice| slice.metadata.labels.get(LABEL_SERVICE_NAME) == Some(&service.metadata.name);
    for slice in slices.into_iter().filter(is_own) {
        let is_first = service.spec.ip_families.first().is_none_or(|family| *family == slice.address_type);
        let list = if is_first { &mut preferred } else { &mut others };
        list.extend(ready(slice, name).map(|(address, port)| (address.to_owned(), port)));
    }
    let found = if preferred.is_empty() { others } else { preferred };
    if found.is_empty() { Err(NoEndpoint::none(service)) } else { Ok(found) }
}

/// One of those that were found, by chance.
pub(crate) fn chosen(found: &[HostPort], rng: &SharedRng) -> Option<HostPort> {
    let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let at = usize::try_from(rng.below(count.max(1))).unwrap_or(0);
    found.get(at).cloned()
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ServiceSpec;
    use api_types::discovery_v1::{Endpoint, EndpointConditions};

    use super::*;

    fn service() -> Service {
        let mut service = Service {
            spec: ServiceSpec {
                ports: vec![ServicePort { name: "https".into(), port: 443, ..ServicePort::default() }],
                ip_families: vec!["IPv4".into()],
                ..ServiceSpec::default()
            },
            ..Service::default()
        };
        service.metadata.name = "w".into();
        service
    }

    fn slice(of: &str, family: &str, address: &str, ready: Option<bool>) -> EndpointSlice {
        let mut slice = EndpointSlice {
            address_type: family.into(),
            endpoints: vec![Endpoint {
                addresses: vec![address.into()],
                conditions: EndpointConditions { ready, ..EndpointConditions::default() },
                ..Endpoint::default()
            }],
            ports: vec![EndpointPort { name: Some("https".into()), port: Some(8443), ..EndpointPort::default() }],
            ..EndpointSlice::default()
        };
        slice.metadata.labels.insert(LABEL_SERVICE_NAME.into(), of.into());
        slice
    }

    #[test]
    fn a_service_is_one_of_its_ready_endpoints() {
        let found = |address: &str| Ok(vec![(address.to_owned(), 8443)]);
        let none = || Err(NoEndpoint::Ready("w".to_owned()));
        for (slices, port, expected) in [
            (vec![slice("w", "IPv4", "10.0.0.1", None)], 443, found("10.0.0.1")),
            (vec![slice("w", "IPv6", "2001:db8::1", None)], 443, found("2001:db8::1")),
            (
                vec![slice("w", "IPv6", "2001:db8::1", None), slice("w", "IPv4", "10.0.0.1", Some(true))],
                443,
                found("10.0.0.1"),
            ),
            (vec![slice("w", "IPv4", "10.0.0.1", Some(false))], 443, none()),
            (vec![slice("x", "IPv4", "10.0.0.1", None)], 443, none()),
            (vec![], 80, Err(NoEndpoint::Port { port: 80, service: "w".to_owned() })),
        ] {
            assert_eq!(endpoints(&service(), &slices, port), expected, "{slices:?} {port}");
        }
    }
}
