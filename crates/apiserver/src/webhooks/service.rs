//! Where a service is: one of its ready endpoints, so that webhooks are reached from where no service address leads.

use admission::Lookup;
use api_types::core_v1::Service;
use api_types::core_v1::constants::service_type;
use api_types::discovery_v1::EndpointSlice;
use base::{SharedConnector, SharedRng};

use crate::node_proxy::guard::{self, Reach};
use crate::service_endpoints::{NoEndpoint, chosen, endpoints};

/// Host and port to dial for a port of a service.
///
/// # Errors
/// Upstream's text for why there is none.
pub(super) async fn locate(
    lookup: &dyn Lookup,
    connector: &SharedConnector,
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
    let slices = lookup.list::<EndpointSlice>(namespace);
    let found = endpoints(&service, slices.iter().map(|own| &**own), port).map_err(|error| error.to_string())?;
    let (address, port) = chosen(&found, rng).ok_or_else(|| NoEndpoint::none(&service).to_string())?;
    // Whoever writes endpoints must not lead the server to its own host.
    let way = guard::way(connector, &address, port, Reach::Routable).await?;
    // What was looked at is what is dialled.
    way.places.into_iter().next().ok_or_else(|| NoEndpoint::none(&service).to_string())
}
