//! Rules that report at several paths, or report `Required` and `TooLong` besides `Invalid`.

use std::collections::BTreeMap;

use super::{
    ANNOTATIONS_MAX_BYTES, LABEL_MAX_BYTES, dns1123_label, dns1123_subdomain, label_value, pattern_detail,
    qualified_name,
};
use crate::field_path::{ErrorList, Path};

/// `metadata.labels`: keys and values; the path names the map only.
pub fn labels(path: &Path, labels: &BTreeMap<String, String>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in labels {
        errors.push_invalid(path, key, qualified_name(key));
        errors.push_invalid(path, value, label_value(value));
    }
    errors
}

/// `metadata.annotations`: keys in any letter case, and the size of everything together.
pub fn annotations(path: &Path, annotations: &BTreeMap<String, String>) -> ErrorList {
    let mut errors = ErrorList::new();
    for key in annotations.keys() {
        errors.push_invalid(path, key, qualified_name(&key.to_lowercase()));
    }
    let total: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if total > ANNOTATIONS_MAX_BYTES {
        errors.push(path.too_long(ANNOTATIONS_MAX_BYTES));
    }
    errors
}

/// A domain of at least three segments.
pub fn fully_qualified_name(path: &Path, name: &str) -> ErrorList {
    if name.is_empty() {
        return path.required("").into();
    }
    let details = dns1123_subdomain(name);
    if !details.is_empty() {
        return path.invalid(name, details.join(",")).into();
    }
    let mut errors = ErrorList::new();
    if name.split('.').count() < 3 {
        errors.push(path.invalid(name, "should be a domain with at least three segments separated by dots"));
    }
    errors
}

/// A domain of at least two segments, each a DNS label; one trailing dot is fine.
pub fn fully_qualified_domain_name(path: &Path, name: &str) -> ErrorList {
    if name.is_empty() {
        return path.required("").into();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let details = dns1123_subdomain(name);
    if !details.is_empty() {
        return path.invalid(name, details.join(",")).into();
    }
    if name.split('.').count() < 2 {
        return path.invalid(name, "should be a domain with at least two segments separated by dots").into();
    }
    let mut errors = ErrorList::new();
    for segment in name.split('.') {
        errors.push_invalid(path, segment, dns1123_label(segment));
    }
    errors
}

/// `host/path`, such as `acme.io/foo`.
pub fn domain_prefixed_path(path: &Path, value: &str) -> ErrorList {
    if value.is_empty() {
        return path.required("").into();
    }
    let (host, rest) = match value.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => return path.invalid(value, "must be a domain-prefixed path (such as \"acme.io/foo\")").into(),
    };
    let mut errors = ErrorList::new();
    errors.push_invalid(path, host, dns1123_subdomain(host));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(allowed) {
        let pattern = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
        errors.push(path.invalid(rest, pattern_detail("Invalid path", pattern, &[])));
    }
    errors
}

/// A label key that must have a prefix.
pub fn domain_prefixed_key(path: &Path, key: &str) -> ErrorList {
    if key.is_empty() {
        return path.required("").into();
    }
    let mut errors = ErrorList::new();
    errors.push_invalid(path, key, qualified_name(key));
    if !key.contains('/') {
        errors.push(path.invalid(key, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
    }
    errors
}

/// The name of a CSI driver, in any letter case.
pub fn csi_driver_name(path: &Path, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(path.required(""));
        return errors;
    }
    if name.len() > LABEL_MAX_BYTES {
        errors.push(path.too_long(LABEL_MAX_BYTES));
    }
    errors.push_invalid(path, name, dns1123_subdomain(&name.to_lowercase()));
    errors
}
