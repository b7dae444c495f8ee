//! What is told of services that are accepted, and yet not what the client may have meant.

use api_machinery::field_path::Path;
use api_types::core_v1::{Service, ServiceSpec};

use super::service_validation::{HINTS, MODE, is_external_name};
use crate::address_warnings;

/// The warnings of a service.
pub(super) fn of(service: &Service) -> Vec<String> {
    let spec = &service.spec;
    let mut texts = Vec::new();
    if service.metadata.annotations.contains_key(HINTS) {
        texts.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    of_addresses(spec, &mut texts);
    let mut add = |wanted: bool, text: &str| {
        if wanted {
            texts.push(text.to_owned());
        }
    };
    let ignored = "spec.externalIPs is ignored when spec.type is \"ExternalName\"";
    add(is_external_name(spec) && !spec.external_ips.is_empty(), ignored);
    let ignored = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
    add(!is_external_name(spec) && !spec.external_name.is_empty(), ignored);
    let close = spec.traffic_distribution.as_deref() == Some("PreferClose");
    add(close, "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
    texts
}

fn of_addresses(spec: &ServiceSpec, texts: &mut Vec<String>) {
    let path = Path::new("spec");
    if !spec.cluster_ip.is_empty() && spec.cluster_ip != "None" {
        texts.extend(address_warnings::of_ips(&path.child("clusterIPs"), &spec.cluster_ips));
    }
    let headless = spec.type_ == "ClusterIP" && spec.cluster_ip == "None";
    let external = !spec.external_ips.is_empty();
    let deprecated = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
    for (wanted, text) in [
        (headless && !spec.load_balancer_ip.is_empty(), "spec.loadBalancerIP is ignored for headless services"),
        (headless && external, "spec.externalIPs is ignored for headless services"),
        (headless && spec.session_affinity != "None", "spec.SessionAffinity is ignored for headless services"),
        (external && !headless && !is_external_name(spec), deprecated),
    ] {
        texts.extend(wanted.then(|| text.to_owned()));
    }
    texts.extend(address_warnings::of_ips(&path.child("externalIPs"), &spec.external_ips));
    texts.extend(address_warnings::of_ip(&path.child("loadBalancerIP"), &spec.load_balancer_ip));
    let ranges = &spec.load_balancer_source_ranges;
    texts.extend(address_warnings::of_cidrs(&path.child("loadBalancerSourceRanges"), ranges));
}

/// The warnings of the status that a balancer's controller writes.
pub(super) fn of_status(service: &Service) -> Vec<String> {
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ips: Vec<String> = service.status.load_balancer.ingress.iter().map(|one| one.ip.clone()).collect();
    address_warnings::of_ips(&path, &ips)
}
