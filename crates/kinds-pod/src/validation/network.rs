//! Rules of DNS, host names and the ports of the host.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::dns_policy;
use api_types::core_v1::{PodDNSConfig, PodSpec};
use feature_gates::Gates;
use kinds_frame::addresses;
use kinds_frame::field_rules as rules;

use super::Around;

const MAX_NAMESERVERS: usize = 3;
const MAX_SEARCHES: usize = 32;
const MAX_SEARCH_CHARACTERS: usize = 2048;
const MAX_HOSTNAME_BYTES: usize = 64;

/// In the host's network a container's port is the host's.
pub(super) fn validate_host_ports_match(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    if !around.spec.host_network {
        return;
    }
    for (index, container) in around.spec.containers.iter().enumerate() {
        for (at, port) in container.ports.iter().enumerate() {
            let checked = around.is_pod() || port.host_port != 0;
            if checked && port.host_port != port.container_port {
                let at = path.child("containers").index(index).child("ports").index(at).child("hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(at.invalid(port.host_port, detail));
            }
        }
    }
}

pub(super) fn validate_dns_policy(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    rules::choice_in_order(&path.child("dnsPolicy"), &spec.dns_policy, dns_policy::ALL, errors);
}

pub(super) fn validate_dns_config(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    if spec.dns_policy == "None" {
        let Some(config) = &spec.dns_config else {
            errors.push(path.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        };
        if config.nameservers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(path.child("nameservers").required(detail));
            return;
        }
    }
    if let Some(config) = &spec.dns_config {
        validate_config(config, around.gates, path, errors);
    }
}

fn validate_config(config: &PodDNSConfig, gates: &Gates, path: &Path, errors: &mut ErrorList) {
    let at = path.child("nameservers");
    if config.nameservers.len() > MAX_NAMESERVERS {
        let detail = format!("must not have more than {MAX_NAMESERVERS} nameservers");
        errors.push(at.invalid(BadValue::list(&config.nameservers), detail));
    }
    for (index, server) in config.nameservers.iter().enumerate() {
        errors.push_invalid(&at.index(index), server, addresses::ip(gates, server));
    }
    let at = path.child("searches");
    if config.searches.len() > MAX_SEARCHES {
        let detail = format!("must not have more than {MAX_SEARCHES} search paths");
        errors.push(at.invalid(BadValue::list(&config.searches), detail));
    }
    if config.searches.join(" ").len() > MAX_SEARCH_CHARACTERS {
        let detail =
            format!("must not have more than {MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list");
        errors.push(at.invalid(BadValue::list(&config.searches), detail));
    }
    for (index, search) in config.searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let trimmed = search.strip_suffix('.').unwrap_or(search);
        errors.push_invalid(&at.index(index), trimmed, names::dns1123_subdomain_with_underscore(trimmed));
    }
    for (index, option) in config.options.iter().enumerate() {
        if option.name.is_empty() {
            errors.push(path.child("options").index(index).required("must not be empty"));
        }
    }
}

pub(super) fn validate_hostname_override(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    let Some(name) = &spec.hostname_override else { return };
    let path = path.child("hostnameOverride");
    if spec.set_hostname_as_fqdn == Some(true) {
        errors.push(path.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.host_network {
        errors.push(path.forbidden("may not be specified when hostNetwork is true"));
    }
    if name.len() > MAX_HOSTNAME_BYTES {
        errors.push(path.too_long(MAX_HOSTNAME_BYTES));
    }
    errors.push_invalid(&path, name, names::dns1123_subdomain(name));
}
