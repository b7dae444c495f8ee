//! What a configuration may say; texts are upstream's.

use std::collections::HashSet;
use std::path::Path as File;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::json;
use api_types::apiserver_config_v1::{EgressConnection, EgressSelectorConfiguration, EgressTcp, EgressTls, EgressUds};

use crate::EgressType;

const PROTOCOLS: [&str; 3] = ["Direct", "HTTPConnect", "GRPC"];
/// What stands in errors for a value that is not there.
const NIL: &str = "nil";

pub(crate) fn validate(configuration: &EgressSelectorConfiguration) -> ErrorList {
    // Upstream's path names no element.
    let (path, mut errors) = (Path::new("service").child("connection"), ErrorList::new());
    for selection in &configuration.egress_selections {
        check_connection(&path, &selection.connection, &mut errors);
    }
    let mut seen = HashSet::new();
    for (index, selection) in configuration.egress_selections.iter().enumerate() {
        let name = selection.name.to_lowercase();
        if !seen.insert(name.clone()) {
            errors.push(path.child(index.to_string()).duplicate(&*name));
        } else if !EgressType::ALL.iter().any(|own| own.name() == name) {
            errors.push(path.not_supported(&*name, &EgressType::ALL.map(EgressType::name)));
        }
    }
    errors
}

fn check_connection(path: &Path, connection: &EgressConnection, errors: &mut ErrorList) {
    let transport = path.child("transport");
    match (&*connection.proxy_protocol, &connection.transport) {
        ("Direct", None) => {}
        ("Direct", Some(_)) => {
            errors.push(transport.invalid("direct", "config must be absent for direct connect"));
        }
        ("HTTPConnect", None) => errors.push(transport.required("transport must be set for HTTPConnect")),
        ("HTTPConnect", Some(own)) => match (&own.tcp, &own.uds) {
            (Some(tcp), Some(_)) => {
                let value = BadValue::json(json::encode_redacted(tcp));
                errors.push(path.child("tcp").invalid(value, "TCP and UDS cannot both be set"));
            }
            (None, None) => errors.push(path.child("tcp").required("One of TCP or UDS must be set")),
            (Some(tcp), None) => check_tcp(path, tcp, errors),
            (None, Some(uds)) => check_uds(path, uds, errors),
        },
        ("GRPC", None) => errors.push(transport.required("transport must be set for GRPC")),
        ("GRPC", Some(own)) => match &own.uds {
            Some(uds) => check_uds(path, uds, errors),
            None => errors.push(path.child("uds").required("UDS must be set with GRPC")),
        },
        (other, _) => errors.push(path.child("protocol").not_supported_in_order(other, &PROTOCOLS)),
    }
}

fn check_uds(path: &Path, uds: &EgressUds, errors: &mut ErrorList) {
    if uds.uds_name.is_empty() {
        errors.push(path.child("udsName").invalid(NIL, "must be present for UDS connections"));
    }
}

fn check_tcp(path: &Path, tcp: &EgressTcp, errors: &mut ErrorList) {
    let tls = path.child("tlsConfig");
    if tcp.url.starts_with("http://") {
        if tcp.tls_config.is_some() {
            errors.push(tls.invalid(NIL, "config must not be present when using HTTP"));
        }
    } else if tcp.url.starts_with("https://") {
        match &tcp.tls_config {
            None => errors.push(tls.required("TLSConfig must be present when using HTTPS")),
            Some(own) => check_tls(&tls, own, errors),
        }
    } else {
        let problem = "supported connection protocols are http:// and https://";
        errors.push(path.child("url").invalid(&*tcp.url, problem));
    }
}

fn check_tls(path: &Path, tls: &EgressTls, errors: &mut ErrorList) {
    let is_missing = |file: &str| !File::new(file).exists();
    if !tls.ca_bundle.is_empty() && is_missing(&tls.ca_bundle) {
        errors.push(path.child("caBundle").invalid(&*tls.ca_bundle, "TLS config ca bundle does not exist"));
    }
    for (member, file, unset, missing) in [
        ("clientCert", &tls.client_cert, "Using TLS requires clientCert", "TLS client cert does not exist"),
        ("clientKey", &tls.client_key, "Using TLS requires requires clientKey", "TLS client key does not exist"),
    ] {
        if file.is_empty() {
            errors.push(path.child(member).invalid(NIL, unset));
        } else if is_missing(file) {
            errors.push(path.child(member).invalid(&**file, missing));
        }
    }
}
