//! Where the server behind a Service is reached: at the Service's own address, or, with `--enable-aggregator-routing`, at
//! one of its endpoints.

use api_machinery::meta::ListOptions;
use api_machinery::object::Kind as _;
use api_machinery::status::ApiError;
use api_types::core_v1::Service;
use api_types::core_v1::constants::service_type::EXTERNAL_NAME;
use api_types::discovery_v1::EndpointSlice;
use api_types::discovery_v1::constants::LABEL_SERVICE_NAME;
use base::host_and_port;

use super::table::Remote;
use crate::config::{AggregationRouting, OwnHost};
use crate::cx::ApiCx;
use crate::node_proxy::connection::Backend;
use crate::node_proxy::guard::{self, Reach};
use crate::own_request::server_request;
use crate::service_endpoints::{NoEndpoint, chosen, endpoints, require_port};

const NO_ADDRESS: &str = "None";
/// The Service of the API servers themselves: what is passed on to it would come back, again and again.
const OWN_SERVICE: (&str, &str) = ("default", "kubernetes");

/// The server cannot be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoDestination {
    /// The Service cannot be read.
    #[error("{0}")]
    Service(#[from] ApiError),
    /// It has no endpoint that is ready.
    #[error(transparent)]
    Endpoint(#[from] NoEndpoint),
    /// The Service does not lead anywhere.
    #[error("{0}")]
    Nowhere(String),
    /// It may not be spoken to as its APIService says.
    #[error("{0}")]
    Tls(String),
}

/// Finds the server.
pub(super) async fn of(cx: &ApiCx, remote: &Remote) -> Result<Backend, NoDestination> {
    let tls = remote.tls.as_ref().as_ref().map_err(|error| NoDestination::Tls(error.clone()))?;
    let (namespace, name) = (remote.service.0.as_str(), remote.service.1.as_str());
    if (namespace, name) == OWN_SERVICE {
        return Err(NoDestination::Nowhere("the server does not stand behind itself".to_owned()));
    }
    let service = service(cx, namespace, name).await?;
    let (host, port) = match cx.config().aggregation.routing {
        AggregationRouting::ClusterIp => cluster_address(&service, remote.port)?,
        AggregationRouting::Endpoints => endpoint(cx, &service, remote.port).await?,
    };
    let reach = match cx.config().kubelet.own_host {
        OwnHost::AnyPort => Reach::Node,
        OwnHost::KubeletPort => Reach::Routable,
    };
    let way = guard::way(cx.egress().cluster(), &host, port, reach).await.map_err(NoDestination::Nowhere)?;
    Ok(Backend { way, authority: host_and_port(&host, port), tls: Some(tls.clone()) })
}

/// The Service, out of the cache: every request that is passed on looks at it.
pub(super) async fn service(cx: &ApiCx, namespace: &str, name: &str) -> Result<Service, ApiError> {
    let of = Service::TYPE;
    let resource = cx.registry().resource(of.group, of.version, of.resource).ok_or_else(ApiError::unknown_resource)?;
    let found = resource.get(&server_request(resource.rule_context(), namespace), name, "0").await?;
    found.object().downcast_ref::<Service>().cloned().ok_or_else(ApiError::unknown_resource)
}

fn cluster_address(service: &Service, port: u16) -> Result<(String, u16), NoDestination> {
    if service.spec.type_ == EXTERNAL_NAME {
        return Ok((service.spec.external_name.clone(), port));
    }
    require_port(service, port)?;
    let address = service.spec.cluster_ip.as_str();
    if address.is_empty() || address == NO_ADDRESS {
        return Err(NoDestination::Nowhere(format!("service {:?} has no cluster IP", service.metadata.name)));
    }
    Ok((address.to_owned(), port))
}

async fn endpoint(cx: &ApiCx, service: &Service, port: u16) -> Result<(String, u16), NoDestination> {
    if service.spec.type_ == EXTERNAL_NAME {
        return Err(NoDestination::Nowhere(format!("unsupported service type {:?}", service.spec.type_)));
    }
    let slices = slices(cx, &service.metadata.namespace, &service.metadata.name).await?;
    let found = endpoints(service, &slices, port)?;
    Ok(chosen(&found, cx.rng()).ok_or_else(|| NoEndpoint::none(service))?)
}

/// The slices of a Service.
pub(super) async fn slices(cx: &ApiCx, namespace: &str, service: &str) -> Result<Vec<EndpointSlice>, ApiError> {
    let of = EndpointSlice::TYPE;
    let Some(resource) = cx.registry().resource(of.group, of.version, of.resource) else { return Ok(Vec::new()) };
    let label_selector = format!("{LABEL_SERVICE_NAME}={service}");
    let options = ListOptions { resource_version: "0".to_owned(), label_selector, ..ListOptions::default() };
    let listed = resource.list(&server_request(resource.rule_context(), namespace), &options).await?;
    Ok(listed.items.iter().filter_map(|item| item.object().downcast_ref::<EndpointSlice>().cloned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_lead_to_their_own_address() {
        let cases = [
            (r#"{"type":"ClusterIP","clusterIP":"10.0.0.7","ports":[{"port":443}]}"#, Ok("10.0.0.7:443")),
            (r#"{"type":"LoadBalancer","clusterIP":"10.0.0.7","ports":[{"port":443}]}"#, Ok("10.0.0.7:443")),
            (r#"{"type":"ExternalName","externalName":"metrics.example"}"#, Ok("metrics.example:443")),
            (
                r#"{"type":"ClusterIP","clusterIP":"None","ports":[{"port":443}]}"#,
                Err("service \"s\" has no cluster IP"),
            ),
            (
                r#"{"type":"ClusterIP","clusterIP":"10.0.0.7","ports":[{"port":80}]}"#,
                Err("no service port 443 found for service \"s\""),
            ),
        ];
        for (spec, expected) in cases {
            let mut service = Service::default();
            let text = format!(r#"{{"metadata":{{"name":"s"}},"spec":{spec}}}"#);
            api_machinery::json::decode(text.as_bytes(), &mut service).unwrap();
            let found = cluster_address(&service, 443).map(|(host, port)| host_and_port(&host, port));
            assert_eq!(found.map_err(|error| error.to_string()), expected.map(str::to_owned).map_err(str::to_owned));
        }
    }
}
