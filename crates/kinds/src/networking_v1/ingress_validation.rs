//! Validation of ingresses: hosts, paths, backends, and the addresses that a controller reports.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::TypedLocalObjectReference;
use api_types::networking_v1::constants::path_type;
use api_types::networking_v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressRule, IngressServiceBackend, IngressSpec,
};
use feature_gates::Gates;

use crate::addresses;
use crate::field_rules as rules;
use crate::gates::RELAXED_SERVICE_NAMES;

/// The older way to name the class.
pub(super) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const NOT_AN_IP: &str = "must be a DNS name, not an IP address";
const ABSOLUTE: &str = "must be an absolute path";
const NOT_IN_PATHS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const NOT_AT_THE_END: [&str; 2] = ["/..", "/."];

/// What is not held against an ingress, as the stored one breaks it already.
#[derive(Debug, Clone, Copy)]
struct Stored {
    bad_secret_names: bool,
    bad_wildcard_rules: bool,
    /// Names of Services may begin with a digit: those of the stored one do, or all may.
    relaxed_names: bool,
}

impl Stored {
    fn nothing(gates: &Gates) -> Self {
        let relaxed_names = gates.enabled(RELAXED_SERVICE_NAMES);
        Self { bad_secret_names: false, bad_wildcard_rules: false, relaxed_names }
    }

    fn of(old: &IngressSpec, gates: &Gates) -> Self {
        let bad_secret = |name: &str| !name.is_empty() && !names::dns1123_subdomain(name).is_empty();
        let bad_rule = |rule: &IngressRule| {
            let mut errors = ErrorList::new();
            validate_http(&Path::nil(), rule, Self::nothing(gates), &mut errors);
            rule.host.contains('*') && !errors.is_empty()
        };
        Self {
            bad_secret_names: old.tls.iter().any(|tls| bad_secret(&tls.secret_name)),
            bad_wildcard_rules: old.rules.iter().any(bad_rule),
            relaxed_names: gates.enabled(RELAXED_SERVICE_NAMES) || names_services_relaxed(old),
        }
    }
}

/// Checks an ingress that is to be created.
pub(super) fn validate(ingress: &Ingress, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let class = ingress.spec.ingress_class_name.as_ref();
    if let (Some(annotation), Some(class)) = (ingress.metadata.annotations.get(CLASS_ANNOTATION), class)
        && annotation != class
    {
        // The path lacks `metadata` upstream, too.
        let at = Path::new("annotations").child(CLASS_ANNOTATION);
        errors.push(at.invalid(annotation, "must match `ingressClassName` when both are specified"));
    }
    validate_spec(&Path::new("spec"), &ingress.spec, Stored::nothing(gates), &mut errors);
    errors
}

/// Checks an ingress that is to replace `old`.
pub(super) fn validate_update(ingress: &Ingress, old: &Ingress, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_spec(&Path::new("spec"), &ingress.spec, Stored::of(&old.spec, gates), &mut errors);
    errors
}

fn validate_spec(path: &Path, spec: &IngressSpec, stored: Stored, errors: &mut ErrorList) {
    if spec.rules.is_empty() && spec.default_backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(path.invalid(BadValue::null(), detail));
    }
    if let Some(backend) = &spec.default_backend {
        validate_backend(&path.child("defaultBackend"), backend, stored, errors);
    }
    for (index, rule) in spec.rules.iter().enumerate() {
        let at = path.child("rules").index(index);
        validate_host(&at.child("host"), &rule.host, errors);
        if !(stored.bad_wildcard_rules && rule.host.contains('*')) {
            validate_http(&at, rule, stored, errors);
        }
    }
    for (index, tls) in spec.tls.iter().enumerate() {
        let at = path.child("tls").index(index);
        for (index, host) in tls.hosts.iter().enumerate() {
            errors.push_invalid(&at.child("hosts").index(index), host, host_problems(host));
        }
        if !stored.bad_secret_names {
            rules::named_if_set(&at.child("secretName"), &tls.secret_name, names::dns1123_subdomain, errors);
        }
    }
    if let Some(class) = &spec.ingress_class_name {
        errors.push_invalid(&path.child("ingressClassName"), class, names::dns1123_subdomain(class));
    }
}

fn host_problems(host: &str) -> Vec<String> {
    if host.contains('*') { names::wildcard_dns1123_subdomain(host) } else { names::dns1123_subdomain(host) }
}

fn validate_host(path: &Path, host: &str, errors: &mut ErrorList) {
    if host.is_empty() {
        return;
    }
    if names::parse_ip_lenient(host).is_some() {
        errors.push(path.invalid(host, NOT_AN_IP));
    }
    errors.push_invalid(path, host, host_problems(host));
}

fn validate_http(path: &Path, rule: &IngressRule, stored: Stored, errors: &mut ErrorList) {
    let Some(http) = &rule.ingress_rule_value.http else { return };
    let path = path.child("http").child("paths");
    if http.paths.is_empty() {
        errors.push(path.required(""));
    }
    for (index, one) in http.paths.iter().enumerate() {
        validate_path(&path.index(index), one, stored, errors);
    }
}

fn validate_path(path: &Path, one: &HTTPIngressPath, stored: Stored, errors: &mut ErrorList) {
    let Some(path_type) = &one.path_type else {
        errors.push(path.child("pathType").required("pathType must be specified"));
        return;
    };
    let (at, value) = (path.child("path"), one.path.as_str());
    match path_type.as_str() {
        "Exact" | "Prefix" => {
            if !value.starts_with('/') {
                errors.push(at.invalid(value, ABSOLUTE));
            }
            if !value.is_empty() {
                validate_plain_path(&at, value, errors);
            }
        }
        "ImplementationSpecific" if !value.is_empty() && !value.starts_with('/') => {
            errors.push(at.invalid(value, ABSOLUTE));
        }
        other => rules::one_of(&path.child("pathType"), other, path_type::ALL, errors),
    }
    validate_backend(&path.child("backend"), &one.backend, stored, errors);
}

fn validate_plain_path(at: &Path, value: &str, errors: &mut ErrorList) {
    for sequence in NOT_IN_PATHS.iter().filter(|sequence| value.contains(**sequence)) {
        errors.push(at.invalid(value, format!("must not contain '{sequence}'")));
    }
    for suffix in NOT_AT_THE_END.iter().filter(|suffix| value.ends_with(**suffix)) {
        errors.push(at.invalid(value, format!("cannot end with '{suffix}'")));
    }
}

fn validate_backend(path: &Path, backend: &IngressBackend, stored: Stored, errors: &mut ErrorList) {
    match (&backend.resource, &backend.service) {
        (Some(_), Some(_)) => errors.push(path.invalid("", "cannot set both resource and service backends")),
        (Some(resource), None) => validate_resource(&path.child("resource"), resource, errors),
        (None, Some(service)) => validate_service(path, service, stored, errors),
        (None, None) => errors.push(path.invalid("", "resource or service backend is required")),
    }
}

/// Whether a Service is named that begins with a digit.
fn names_services_relaxed(spec: &IngressSpec) -> bool {
    let paths = spec.rules.iter().filter_map(|rule| rule.ingress_rule_value.http.as_ref()).flat_map(|http| &http.paths);
    let mut backends = spec.default_backend.iter().chain(paths.map(|path| &path.backend));
    let is_relaxed = |service: &IngressServiceBackend| !names::dns1035_label(&service.name).is_empty();
    backends.any(|backend| backend.service.as_ref().is_some_and(is_relaxed))
}

fn validate_resource(path: &Path, resource: &TypedLocalObjectReference, errors: &mut ErrorList) {
    if let Some(group) = &resource.api_group {
        errors.push_invalid(&path.child("apiGroup"), group, names::dns1123_subdomain(group));
    }
    rules::named(&path.child("kind"), &resource.kind, names::path_segment_name, errors);
    rules::named(&path.child("name"), &resource.name, names::path_segment_name, errors);
}

fn validate_service(path: &Path, service: &IngressServiceBackend, stored: Stored, errors: &mut ErrorList) {
    let rule: rules::NameRule = if stored.relaxed_names { names::dns1123_label } else { names::dns1035_label };
    rules::named(&path.child("service").child("name"), &service.name, rule, errors);
    let port = &service.port;
    let at = path.child("service").child("port");
    match (port.name.is_empty(), port.number) {
        (false, number) if number != 0 => errors.push(path.invalid("", "cannot set both port name & port number")),
        (false, _) => errors.push_invalid(&at.child("name"), &port.name, names::port_name(&port.name)),
        (true, 0) => errors.push(path.required("port name or number is required")),
        (true, number) => rules::port(&at.child("number"), number, errors),
    }
}

/// Checks a status that is to replace that of `old`; addresses that are stored pass.
pub(super) fn validate_status(ingress: &Ingress, old: &Ingress, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("status").child("loadBalancer").child("ingress");
    let stored = &old.status.load_balancer.ingress;
    for (index, one) in ingress.status.load_balancer.ingress.iter().enumerate() {
        let path = path.index(index);
        if !one.ip.is_empty() && !stored.iter().any(|old| old.ip == one.ip) {
            errors.push_invalid(&path.child("ip"), &one.ip, addresses::ip(gates, &one.ip));
        }
        if !one.hostname.is_empty() {
            let at = path.child("hostname");
            errors.push_invalid(&at, &one.hostname, names::dns1123_subdomain(&one.hostname));
            if names::parse_ip_lenient(&one.hostname).is_some() {
                errors.push(at.invalid(one.hostname.as_str(), NOT_AN_IP));
            }
        }
    }
    errors
}
