//! Rules of Services, and what falls away when a Service changes its type. The block about cluster addresses and
//! families is checked before, where addresses are allocated.

use std::collections::BTreeSet;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{
    load_balancer_ip_mode, protocol, service_affinity, service_external_traffic_policy,
    service_internal_traffic_policy, service_type,
};
use api_types::core_v1::{Service, ServicePort, ServiceSpec};
use feature_gates::Gates;

use crate::addresses;
use crate::field_rules as rules;
use crate::internal_json;
use crate::pod_spec::validation::port_or_name;

const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const ONCE: &str = "may not change once set";
/// The older way to ask for routing by topology.
pub(super) const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
/// The newer way.
pub(super) const MODE: &str = "service.kubernetes.io/topology-mode";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const MAX_STICKY_SECONDS: i32 = 86400;

fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(spec.cluster_ips.as_slice(), [only] if only == "None")
}

pub(super) fn is_external_name(spec: &ServiceSpec) -> bool {
    spec.type_ == "ExternalName"
}

/// Whether traffic from outside the cluster can come in.
fn is_external(spec: &ServiceSpec) -> bool {
    match spec.type_.as_str() {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !spec.external_ips.is_empty(),
        _ => false,
    }
}

fn has_node_ports(spec: &ServiceSpec) -> bool {
    matches!(spec.type_.as_str(), "NodePort" | "LoadBalancer")
}

/// Whether balancers must ask each node for its health.
fn needs_health_check(spec: &ServiceSpec) -> bool {
    spec.type_ == "LoadBalancer" && spec.external_traffic_policy == "Local"
}

/// Checks a Service, whichever way it is written. `old` is the stored one on updates.
pub(super) fn validate(service: &Service, old: Option<&Service>, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let annotations = &service.metadata.annotations;
    if let (Some(mode), Some(hints)) = (annotations.get(MODE), annotations.get(HINTS))
        && mode != hints
    {
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(Path::new("metadata").child("annotations").key(MODE).invalid(mode, detail));
    }
    let spec = &service.spec;
    let path = Path::new("spec");
    validate_type_needs(&path, spec, &mut errors);
    let mut names = BTreeSet::new();
    for (index, port) in spec.ports.iter().enumerate() {
        let repeats = !names.insert(port.name.as_str());
        validate_port(&path.child("ports").index(index), port, spec, repeats, &mut errors);
    }
    errors.extend(names::labels(&path.child("selector"), &spec.selector));
    rules::choice(&path.child("sessionAffinity"), &spec.session_affinity, service_affinity::ALL, &mut errors);
    validate_affinity(&path.child("sessionAffinityConfig"), spec, &mut errors);
    validate_external_ips(&path.child("externalIPs"), spec, old, gates, &mut errors);
    rules::choice(&path.child("type"), &spec.type_, service_type::ALL, &mut errors);
    validate_node_ports(&path.child("ports"), spec, &mut errors);
    validate_balancer(&path, service, old, gates, &mut errors);
    validate_policies(&path, spec, &mut errors);
    errors
}

fn validate_type_needs(path: &Path, spec: &ServiceSpec, errors: &mut ErrorList) {
    let headless = is_headless(spec);
    if spec.ports.is_empty() && !headless && !is_external_name(spec) {
        errors.push(path.child("ports").required(""));
    }
    match spec.type_.as_str() {
        "LoadBalancer" | "NodePort" if headless => {
            let detail = format!("may not be set to 'None' for {} services", spec.type_);
            errors.push(path.child("clusterIPs").index(0).invalid("None", detail));
        }
        "ExternalName" => {
            for (field, set) in [
                ("clusterIPs", !spec.cluster_ips.is_empty()),
                ("ipFamilies", !spec.ip_families.is_empty()),
                ("ipFamilyPolicy", spec.ip_family_policy.is_some()),
            ] {
                if set {
                    errors.push(path.child(field).forbidden("may not be set for ExternalName services"));
                }
            }
            let name = spec.external_name.strip_suffix('.').unwrap_or(&spec.external_name);
            rules::named(&path.child("externalName"), name, names::dns1123_subdomain, errors);
        }
        _ => {}
    }
}

fn validate_port(path: &Path, port: &ServicePort, spec: &ServiceSpec, repeats: bool, errors: &mut ErrorList) {
    let at = path.child("name");
    if port.name.is_empty() {
        if spec.ports.len() > 1 {
            errors.push(at.required(""));
        }
    } else {
        errors.push_invalid(&at, &port.name, names::dns1123_label(&port.name));
        if repeats {
            errors.push(at.duplicate(port.name.as_str()));
        }
    }
    rules::port(&path.child("port"), port.port, errors);
    rules::choice(&path.child("protocol"), &port.protocol, protocol::ALL, errors);
    port_or_name(&path.child("targetPort"), &port.target_port, errors);
    if let Some(protocol) = &port.app_protocol {
        errors.push_invalid(&path.child("appProtocol"), protocol, names::qualified_name(protocol));
    }
}

fn validate_affinity(path: &Path, spec: &ServiceSpec, errors: &mut ErrorList) {
    const MISSING: &str = "when session affinity type is ClientIP";
    let config = spec.session_affinity_config.as_ref();
    if spec.session_affinity == "None" && config.is_some() {
        errors.push(path.forbidden("must not be set when session affinity is None"));
    }
    if spec.session_affinity != "ClientIP" {
        return;
    }
    let client = config.and_then(|config| config.client_ip.as_ref());
    let at = path.child("clientIP").child("timeoutSeconds");
    match (config, client, client.and_then(|client| client.timeout_seconds)) {
        (None, ..) => errors.push(path.required(MISSING)),
        (_, None, _) => errors.push(path.child("clientIP").required(MISSING)),
        (.., None) => errors.push(at.required(MISSING)),
        (.., Some(seconds)) if !(1..=MAX_STICKY_SECONDS).contains(&seconds) => {
            let detail = format!("must be greater than 0 and less than {MAX_STICKY_SECONDS}");
            errors.push(at.invalid(seconds, detail));
        }
        _ => {}
    }
}

fn validate_external_ips(
    path: &Path,
    spec: &ServiceSpec,
    old: Option<&Service>,
    gates: &Gates,
    errors: &mut ErrorList,
) {
    let stored = old.map(|old| old.spec.external_ips.as_slice()).unwrap_or_default();
    for (index, ip) in spec.external_ips.iter().enumerate() {
        let at = path.index(index);
        let problems = if stored.contains(ip) { Vec::new() } else { addresses::ip(gates, ip) };
        let good = problems.is_empty();
        errors.push_invalid(&at, ip, problems);
        if good && let Some(address) = names::parse_ip_lenient(ip) {
            errors.push_invalid(&at, ip, names::endpoint_ip(address));
        }
    }
}

fn validate_node_ports(path: &Path, spec: &ServiceSpec, errors: &mut ErrorList) {
    if spec.type_ == "ClusterIP" {
        for (index, _) in spec.ports.iter().enumerate().filter(|(_, port)| port.node_port != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(path.index(index).child("nodePort").forbidden(detail));
        }
    }
    let (mut node_ports, mut ports) = (BTreeSet::new(), BTreeSet::new());
    for (index, port) in spec.ports.iter().enumerate() {
        if port.node_port != 0 && !node_ports.insert((&port.protocol, port.node_port)) {
            errors.push(path.index(index).child("nodePort").duplicate(port.node_port));
        }
    }
    for (index, port) in spec.ports.iter().enumerate() {
        if !ports.insert((&port.protocol, port.port)) {
            let shown = ServicePort { protocol: port.protocol.clone(), port: port.port, ..ServicePort::default() };
            errors.push(path.index(index).duplicate(internal_json::bad_value(&shown)));
        }
    }
}

fn validate_balancer(path: &Path, service: &Service, old: Option<&Service>, gates: &Gates, errors: &mut ErrorList) {
    let spec = &service.spec;
    let balancer = spec.type_ == "LoadBalancer";
    let at = path.child("LoadBalancerSourceRanges");
    if !spec.load_balancer_source_ranges.is_empty() {
        if !balancer {
            errors.push(at.forbidden(ONLY_BALANCERS));
        }
        let stored = old.map(|old| old.spec.load_balancer_source_ranges.as_slice()).unwrap_or_default();
        for (index, range) in spec.load_balancer_source_ranges.iter().enumerate() {
            if !stored.contains(range) {
                errors.push_invalid(&at.index(index), range.trim(), addresses::cidr(gates, range.trim()));
            }
        }
    } else if let Some(ranges) = service.metadata.annotations.get(SOURCE_RANGES) {
        let at = Path::new("metadata").child("annotations").key(SOURCE_RANGES);
        if !balancer {
            errors.push(at.forbidden(ONLY_BALANCERS));
        }
        let stored = old.and_then(|old| old.metadata.annotations.get(SOURCE_RANGES));
        if stored != Some(ranges) && !ranges.trim().is_empty() {
            let ranges = ranges.split(',').map(str::trim);
            ranges.for_each(|range| errors.push_invalid(&at, range, addresses::cidr(gates, range)));
        }
    }
    match (balancer, spec.allocate_load_balancer_node_ports) {
        (false, Some(_)) => errors.push(path.child("allocateLoadBalancerNodePorts").forbidden(ONLY_BALANCERS)),
        (true, None) => errors.push(Path::new("allocateLoadBalancerNodePorts").required("")),
        _ => {}
    }
    if let Some(class) = &spec.load_balancer_class {
        let at = path.child("loadBalancerClass");
        match balancer {
            true => errors.push_invalid(&at, class, names::qualified_name(class)),
            false => errors.push(at.forbidden(ONLY_BALANCERS)),
        }
    }
}

fn validate_policies(path: &Path, spec: &ServiceSpec, errors: &mut ErrorList) {
    let (at, policy) = (path.child("externalTrafficPolicy"), spec.external_traffic_policy.as_str());
    if is_external(spec) {
        rules::choice(&at, policy, service_external_traffic_policy::ALL, errors);
    } else if !policy.is_empty() {
        let value = api_machinery::field_path::BadValue::named(policy);
        errors.push(at.invalid(value, "may only be set for externally-accessible services"));
    }
    let (at, port) = (path.child("healthCheckNodePort"), spec.health_check_node_port);
    match (needs_health_check(spec), port) {
        (false, 0) => {}
        (false, _) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(at.invalid(port, detail));
        }
        (true, 0) => errors.push(at.required("")),
        (true, _) => rules::port(&at, port, errors),
    }
    let at = path.child("internalTrafficPolicy");
    match &spec.internal_traffic_policy {
        None if matches!(spec.type_.as_str(), "ClusterIP" | "NodePort" | "LoadBalancer") => {
            errors.push(at.required(""));
        }
        policy => rules::one_of_if_set(&at, policy.as_ref(), service_internal_traffic_policy::ALL, errors),
    }
    if let Some(distribution) = &spec.traffic_distribution
        && !DISTRIBUTIONS.contains(&distribution.as_str())
    {
        let at = path.child("trafficDistribution");
        errors.push(at.not_supported_in_order(distribution.as_str(), &DISTRIBUTIONS));
    }
}

/// Checks what may not change; these come before the rules of every write.
pub(super) fn validate_update(service: &Service, old: &Service, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let (new, stored, path) = (&service.spec, &old.spec, Path::new("spec"));
    let named = is_external_name(new) || is_external_name(stored);
    let both_headless = is_headless(new) && is_headless(stored);
    if !named && !both_headless {
        validate_kept_addresses(&path, new, stored, &mut errors);
        if !is_headless(new) && !is_headless(stored) {
            validate_kept_families(&path, new, stored, &mut errors);
        }
    }
    let both = new.type_ == "LoadBalancer" && stored.type_ == "LoadBalancer";
    if both && new.load_balancer_class != stored.load_balancer_class {
        errors.push(path.child("loadBalancerClass").invalid(new.load_balancer_class.clone(), ONCE));
    }
    let checked = needs_health_check(new) && needs_health_check(stored);
    if checked && new.health_check_node_port != stored.health_check_node_port {
        errors.push(path.child("healthCheckNodePort").forbidden(rules::IMMUTABLE));
    }
    errors.extend(validate(service, Some(old), gates));
    errors
}

fn validate_kept_addresses(path: &Path, new: &ServiceSpec, old: &ServiceSpec, errors: &mut ErrorList) {
    use api_machinery::field_path::BadValue;
    let at = path.child("clusterIPs");
    let (ips, stored) = (&new.cluster_ips, &old.cluster_ips);
    let value = || BadValue::list(ips);
    if ips.len() == stored.len() {
        for (index, _) in ips.iter().zip(stored).enumerate().filter(|(_, (new, old))| new != old) {
            errors.push(at.index(index).invalid(value(), ONCE));
        }
        return;
    }
    match (ips.first(), stored.first()) {
        (None, Some(_)) => errors.push(at.index(0).invalid(value(), "primary clusterIP can not be unset")),
        (Some(first), Some(old)) if first != old => errors.push(at.index(0).invalid(value(), ONCE)),
        _ => {}
    }
    let single = new.ip_family_policy.as_deref() == Some("SingleStack");
    if ips.len() == 1 && stored.len() == 2 && !single {
        let detail = "must be set to 'SingleStack' when releasing the secondary clusterIP";
        errors.push(path.child("ipFamilyPolicy").invalid(new.ip_family_policy.clone(), detail));
    }
}

fn validate_kept_families(path: &Path, new: &ServiceSpec, old: &ServiceSpec, errors: &mut ErrorList) {
    use api_machinery::field_path::BadValue;
    let at = path.child("ipFamilies").index(0);
    let (families, stored) = (&new.ip_families, &old.ip_families);
    let value = || BadValue::list(families);
    let differs = match families.len() == stored.len() {
        true => families != stored,
        false => families.first().is_some_and(|first| stored.first().is_some_and(|old| first != old)),
    };
    if families.is_empty() && !stored.is_empty() && new.cluster_ips.is_empty() {
        errors.push(at.invalid(value(), "primary ipFamily can not be unset"));
    } else if differs {
        errors.push(at.invalid(value(), ONCE));
    }
    let single = new.ip_family_policy.as_deref() == Some("SingleStack");
    if families.len() == 1 && stored.len() == 2 && !single {
        let detail = "must be set to 'SingleStack' when releasing the secondary ipFamily";
        errors.push(path.child("ipFamilyPolicy").invalid(new.ip_family_policy.clone(), detail));
    }
}

/// Drops what the old type needed and the new one does not know, where the client sent it back unchanged.
pub(super) fn drop_other_types_fields(service: &mut Service, old: &Service) {
    let (new, stored) = (&mut service.spec, &old.spec);
    if is_external_name(new) && !is_external_name(stored) {
        if new.cluster_ip == stored.cluster_ip && new.cluster_ips == stored.cluster_ips {
            new.cluster_ip.clear();
            new.cluster_ips.clear();
        }
        if new.ip_families == stored.ip_families {
            new.ip_families.clear();
        }
        if new.ip_family_policy == stored.ip_family_policy {
            new.ip_family_policy = None;
        }
    }
    if is_external_name(new) {
        // Older versions stored one, and no version shows it.
        new.internal_traffic_policy = None;
    }
    if has_node_ports(stored) && !has_node_ports(new) {
        let known: BTreeSet<i32> = stored.ports.iter().map(|port| port.node_port).collect();
        if new.ports.iter().all(|port| port.node_port == 0 || known.contains(&port.node_port)) {
            new.ports.iter_mut().for_each(|port| port.node_port = 0);
        }
    }
    let health = needs_health_check(stored) && !needs_health_check(new);
    if health && new.health_check_node_port == stored.health_check_node_port {
        new.health_check_node_port = 0;
    }
    let balancer = new.type_ == "LoadBalancer";
    if stored.type_ == "LoadBalancer" && !balancer {
        if new.allocate_load_balancer_node_ports == stored.allocate_load_balancer_node_ports {
            new.allocate_load_balancer_node_ports = None;
        }
        if new.load_balancer_class == stored.load_balancer_class {
            new.load_balancer_class = None;
        }
    }
    let closed = is_external(stored) && !is_external(new);
    if closed && new.external_traffic_policy == stored.external_traffic_policy {
        new.external_traffic_policy.clear();
    }
    if !balancer {
        service.status.load_balancer = Default::default();
    }
}

/// Checks the status that a balancer's controller writes.
pub(super) fn validate_status(service: &Service, old: &Service, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let ingress = &service.status.load_balancer.ingress;
    if service.spec.type_ != "LoadBalancer" && !ingress.is_empty() {
        errors.push(path.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        return errors;
    }
    let stored: BTreeSet<&str> = old.status.load_balancer.ingress.iter().map(|one| one.ip.as_str()).collect();
    for (index, one) in ingress.iter().enumerate() {
        let path = path.index(index);
        if !one.ip.is_empty() && !stored.contains(one.ip.as_str()) {
            errors.push_invalid(&path.child("ip"), &one.ip, addresses::ip(gates, &one.ip));
        }
        let at = path.child("ipMode");
        match (one.ip.is_empty(), &one.ip_mode) {
            (false, None) => errors.push(at.required("must be specified when `ip` is set")),
            (true, Some(_)) => errors.push(at.forbidden("may not be specified when `ip` is not set")),
            (_, mode) => rules::one_of_if_set(&at, mode.as_ref(), load_balancer_ip_mode::ALL, &mut errors),
        }
        if !one.hostname.is_empty() {
            let at = path.child("hostname");
            errors.push_invalid(&at, &one.hostname, names::dns1123_subdomain(&one.hostname));
            if names::parse_ip_lenient(&one.hostname).is_some() {
                errors.push(at.invalid(one.hostname.as_str(), "must be a DNS name, not an IP address"));
            }
        }
    }
    errors
}

#[cfg(test)]
#[path = "service_validation_test.rs"]
mod tests;
