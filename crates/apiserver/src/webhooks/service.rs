//! Where a service is: one of its ready endpoints, so that webhooks are reached from where no service address leads.

use std::sync::Arc;

use admission::Lookup;
use api_types::core_v1::Service;
use api_types::core_v1::constants::service_type;
use api_types::discovery_v1::constants::LABEL_SERVICE_NAME;
use api_types::discovery_v1::{EndpointPort, EndpointSlice};
use base::SharedRng;

use crate::node_proxy::guard::{Reach, resolve};

/// Host and port to dial for a port of a service.
///
/// # Errors
/// Upstream's text for why there is none.
pub(super) async fn locate(
    lookup: &dyn Lookup,
    rng: &SharedRng,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<(String, u16), String> {
    let service = match lookup.get::<Service>(namespace, name) {
        Some(cached) => cached,
        None => match lookup.get_live::<Service>(namespace, name).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => return Err(format!("service {name:?} not found")),
            Err(error) => return Err(error.to_string()),
        },
    };
    if service.spec.type_ == service_type::EXTERNAL_NAME {
        return Ok((service.spec.external_name.clone(), port));
    }
    let candidates = candidates(&service, &lookup.list::<EndpointSlice>(namespace), port)?;
    let count = u64::try_from(candidates.len()).unwrap_or(u64::MAX);
    let chosen = usize::try_from(rng.below(count.max(1))).unwrap_or(0);
    let (address, port) = candidates.into_iter().nth(chosen).ok_or_else(|| none(name))?;
    // Whoever writes endpoints must not lead the server to its own host.
    resolve(&address, port, Reach::Routable).await?;
    Ok((address, port))
}

fn none(name: &str) -> String {
    format!("no endpoints available for service {name:?}")
}

/// The ready addresses behind a port, of the service's first family where it has any of that.
fn candidates(service: &Service, slices: &[Arc<EndpointSlice>], port: u16) -> Result<Vec<(String, u16)>, String> {
    let name = &service.metadata.name;
    let wanted = service.spec.ports.iter().find(|own| own.port == i32::from(port));
    let wanted = wanted.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let (mut preferred, mut others) = (Vec::new(), Vec::new());
    for slice in slices.iter().filter(|own| own.metadata.labels.get(LABEL_SERVICE_NAME) == Some(name)) {
        let named = |own: &&EndpointPort| own.name.as_deref().unwrap_or_default() == wanted.name;
        let Some(port) = slice.ports.iter().find(named).and_then(|own| u16::try_from(own.port?).ok()) else { continue };
        let first = service.spec.ip_families.first().is_none_or(|family| *family == slice.address_type);
        let list = if first { &mut preferred } else { &mut others };
        let ready = slice.endpoints.iter().filter(|own| own.conditions.ready.unwrap_or(true));
        list.extend(ready.filter_map(|own| Some((own.addresses.first()?.clone(), port))));
    }
    let found = if preferred.is_empty() { others } else { preferred };
    if found.is_empty() { Err(none(name)) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ServicePort, ServiceSpec};
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

    fn slice(of: &str, family: &str, address: &str, ready: Option<bool>) -> Arc<EndpointSlice> {
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
        Arc::new(slice)
    }

    #[test]
    fn a_service_is_one_of_its_ready_endpoints() {
        let found = |address: &str| Ok(vec![(address.to_owned(), 8443)]);
        let none = || Err("no endpoints available for service \"w\"".to_owned());
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
            (vec![], 80, Err("no service port 80 found for service \"w\"".to_owned())),
        ] {
            assert_eq!(candidates(&service(), &slices, port), expected, "{slices:?} {port}");
        }
    }
}
