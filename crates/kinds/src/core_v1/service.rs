//! Service of core/v1: its names, and its rules.

use super::{service_validation, service_warnings};
use crate::rules::{Endpoint, MetadataCheck, RuleContext, TypedRules};
use api_machinery::field_path::ErrorList;
use std::collections::BTreeSet;

use api_machinery::intstr::IntOrString;
use api_types::core_v1::constants::service_type;
use api_types::core_v1::{LoadBalancerIngress, Service, ServicePort, ServiceSpec};

use crate::gates::RELAXED_SERVICE_NAMES;
use crate::info::{ResourceInfo, StorageInfo, SubresourceInfo};
use crate::lifecycle::Lifecycle;
use crate::strategy::Strategy;
use crate::table::{self, Cell};

static INFO: ResourceInfo<'static> = ResourceInfo {
    short_names: &["svc"],
    categories: &["all"],
    storage: Some(StorageInfo::of::<Service>("services/specs", "0/CO1lhkEBI=")),
    create_on_update: true,
    unconditional_update: true,
    field_selectors: &["spec.clusterIP", "spec.type"],
    subresources: &[
        SubresourceInfo {
            name: "proxy",
            kind: "ServiceProxyOptions",
            group: "",
            version: "",
            verbs: &["create", "delete", "get", "patch", "update"],
        },
        SubresourceInfo::status("Service"),
    ],
    ..ResourceInfo::of::<Service>()
};

/// The rules of the kind.
pub(crate) struct ServiceRules;

impl TypedRules for ServiceRules {
    type Object = Service;
    const INFO: &'static ResourceInfo<'static> = &INFO;
    const COLUMNS: &'static [Cell<Service>] = &[
        Cell::NAME,
        Cell::text("Type", |object, _| object.spec.type_.clone().into()),
        Cell::text("Cluster-IP", |object, _| {
            table::or_none(object.spec.cluster_ips.first().cloned().unwrap_or_default()).into()
        }),
        Cell::text("External-IP", |object, _| external_addresses(object).into()),
        Cell::text("Port(s)", |object, _| table::or_none(ports(&object.spec.ports)).into()),
        Cell::AGE,
        Cell::wide("Selector", |object, _| table::labels(&object.spec.selector)),
    ];
    const LIFECYCLE: Lifecycle = Lifecycle::RETURNS_DELETED;
    const METADATA_CHECKS: &'static [MetadataCheck] = &[MetadataCheck::Update, MetadataCheck::Create];
    const STRATEGY: Strategy = Strategy::Status;

    fn validate_name(name: &str, prefix: bool) -> Vec<String> {
        crate::object_name::dns_label(name, prefix)
    }

    /// A name that DNS takes for a service may begin with a digit (KEP-5311).
    fn validate_new_name(cx: &RuleContext, name: &str, prefix: bool) -> Vec<String> {
        if cx.gates.enabled(RELAXED_SERVICE_NAMES) {
            return Self::validate_name(name, prefix);
        }
        crate::object_name::dns1035_label(name, prefix)
    }

    fn set_defaults(object: &mut Service) {
        set_affinity(&mut object.spec);
        set_policies(&mut object.spec);
        for port in &mut object.spec.ports {
            let unset = match &port.target_port {
                IntOrString::Int(number) => *number == 0,
                IntOrString::Str(text) => text.is_empty(),
            };
            if unset {
                port.target_port = IntOrString::Int(port.port);
            }
        }
        if object.spec.type_ == service_type::LOAD_BALANCER {
            for ingress in object.status.load_balancer.ingress.iter_mut().filter(|ingress| !ingress.ip.is_empty()) {
                ingress.ip_mode.get_or_insert_with(|| "VIP".into());
            }
        }
    }

    fn prepare_update(_: &RuleContext, endpoint: Endpoint, object: &mut Service, old: &Service) {
        if endpoint == Endpoint::Main {
            service_validation::drop_other_types_fields(object, old);
        }
    }

    fn validate(cx: &RuleContext, object: &Service) -> ErrorList {
        service_validation::validate(object, None, &cx.gates)
    }

    fn validate_update(cx: &RuleContext, endpoint: Endpoint, object: &Service, old: &Service) -> ErrorList {
        match endpoint {
            Endpoint::Status => service_validation::validate_status(object, old, &cx.gates),
            _ => service_validation::validate_update(object, old, &cx.gates),
        }
    }

    fn warnings(object: &Service, _: Option<&Service>) -> Vec<String> {
        service_warnings::of(object)
    }

    fn status_warnings(object: &Service) -> Vec<String> {
        service_warnings::of_status(object)
    }

    fn field(object: &Service, path: &str) -> Option<String> {
        Some(match path {
            "spec.clusterIP" => object.spec.cluster_ip.clone(),
            "spec.type" => object.spec.type_.clone(),
            _ => return None,
        })
    }
}

fn ports(ports: &[ServicePort]) -> String {
    let shown = |port: &ServicePort| match port.node_port {
        0 => format!("{}/{}", port.port, port.protocol),
        node_port => format!("{}:{node_port}/{}", port.port, port.protocol),
    };
    ports.iter().map(shown).collect::<Vec<_>>().join(",")
}

/// How long a client sticks to an endpoint unless the service says otherwise.
const AFFINITY_SECONDS: i32 = 10_800;

fn set_affinity(spec: &mut ServiceSpec) {
    match spec.session_affinity.as_str() {
        "None" => spec.session_affinity_config = None,
        "ClientIP" => {
            let client_ip = spec.session_affinity_config.get_or_insert_default().client_ip.get_or_insert_default();
            client_ip.timeout_seconds.get_or_insert(AFFINITY_SECONDS);
        }
        _ => {}
    }
}

fn set_policies(spec: &mut ServiceSpec) {
    let (cluster_ip, node_port, load_balancer) =
        (service_type::CLUSTER_IP, service_type::NODE_PORT, service_type::LOAD_BALANCER);
    let type_ = spec.type_.clone();
    let external =
        type_ == node_port || type_ == load_balancer || (type_ == cluster_ip && !spec.external_ips.is_empty());
    if external && spec.external_traffic_policy.is_empty() {
        spec.external_traffic_policy = "Cluster".into();
    }
    if [cluster_ip, node_port, load_balancer].contains(&type_.as_str()) {
        spec.internal_traffic_policy.get_or_insert_with(|| "Cluster".into());
    }
    if type_ == load_balancer {
        spec.allocate_load_balancer_node_ports.get_or_insert(true);
    }
}

/// The addresses at which the outside reaches the service.
fn external_addresses(service: &Service) -> String {
    let spec = &service.spec;
    match spec.type_.as_str() {
        service_type::CLUSTER_IP | service_type::NODE_PORT => table::or_none(spec.external_ips.join(",")),
        service_type::LOAD_BALANCER => {
            let address =
                |one: &LoadBalancerIngress| if one.ip.is_empty() { one.hostname.clone() } else { one.ip.clone() };
            let ingress = service.status.load_balancer.ingress.iter().map(address);
            let ingress: BTreeSet<String> = ingress.filter(|address| !address.is_empty()).collect();
            let all: Vec<String> = ingress.into_iter().chain(spec.external_ips.iter().cloned()).collect();
            table::or_else(all.join(","), "<pending>")
        }
        service_type::EXTERNAL_NAME => spec.external_name.clone(),
        _ => "<unknown>".into(),
    }
}
