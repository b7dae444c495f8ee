//! The named value rules that validation of many kinds shares: DNS names, label keys and values, port names, and so on.
//!
//! Every rule returns the list of what is wrong, in upstream's words; an empty list means the value is good. The
//! caller turns each entry into one `Invalid` error ([`ErrorList::push_invalid`](crate::field_path::ErrorList)).
//! The patterns are matched by hand: they are simple, and run on every write.

use std::fmt::Display;

mod address;
mod composite;
mod identifier;

pub use address::{
    cidr, cidr_strict, endpoint_ip, interface_address, ip, ip_strict, parse_cidr_lenient, parse_ip_lenient,
};
pub use composite::{
    annotations, csi_driver_name, domain_prefixed_key, domain_prefixed_path, fully_qualified_domain_name,
    fully_qualified_name, labels,
};
pub use identifier::{
    c_identifier, condition_reason, config_key, decimal_integer, env_var_name, env_var_name_strict, http_header_name,
    path_segment_name, path_segment_name_prefix, percent, port_name, port_number, sysctl_name, user_or_group_id, uuid,
};

/// Greatest length of a DNS label, in bytes.
pub const LABEL_MAX_BYTES: usize = 63;
/// Greatest length of a DNS subdomain, in bytes.
pub const SUBDOMAIN_MAX_BYTES: usize = 253;
/// Greatest length of a label's value, in bytes.
pub const LABEL_VALUE_MAX_BYTES: usize = 63;
/// Greatest sum of all annotation keys and values of an object, in bytes.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const UNDERSCORE_PATTERN: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const NAME_PART_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const SUBDOMAIN_TEXT: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
                              '.', and must start and end with an alphanumeric character";

/// The detail of a value that does not match a pattern.
pub fn pattern_detail(message: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{message} (regex used for validation is '{pattern}')");
    }
    let shown: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", shown.join(" or "))
}

/// `must be no more than {limit} characters`; older rules say characters and count bytes.
pub fn max_characters_detail(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// `must be no more than {limit} bytes`.
pub fn max_bytes_detail(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

/// `must be between {low} and {high}, inclusive`.
pub fn range_detail(low: impl Display, high: impl Display) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// Non-empty, `edge` at both ends and `inner` between.
fn is_framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let ends_well = |byte: Option<&u8>| byte.is_some_and(|&byte| edge(byte));
    let bytes = text.as_bytes();
    ends_well(bytes.first()) && ends_well(bytes.last()) && bytes.iter().all(|&byte| edge(byte) || inner(byte))
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    is_framed(text, is_lower_alphanumeric, |byte| byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_name_part(text: &str) -> bool {
    is_framed(text, |byte| byte.is_ascii_alphanumeric(), |byte| matches!(byte, b'-' | b'_' | b'.'))
}

/// At most one detail about the length and one about the format.
fn details(too_long: Option<String>, malformed: Option<String>) -> Vec<String> {
    too_long.into_iter().chain(malformed).collect()
}

fn over(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| max_characters_detail(limit))
}

/// A DNS label: most names that become host names.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let malformed = || {
        if is_subdomain(value) {
            return "must not contain dots".to_owned();
        }
        let text = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                    and end with an alphanumeric character";
        pattern_detail(text, LABEL_PATTERN, &["my-name", "123-abc"])
    };
    details(over(value, LABEL_MAX_BYTES), (!is_label(value)).then(malformed))
}

/// A DNS subdomain: the names of most objects.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let malformed = || pattern_detail(SUBDOMAIN_TEXT, SUBDOMAIN_PATTERN, &["example.com"]);
    details(over(value, SUBDOMAIN_MAX_BYTES), (!is_subdomain(value)).then(malformed))
}

/// A DNS subdomain whose labels may hold underscores.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Vec<String> {
    let is_part = |part: &str| {
        let rest = part.strip_prefix('_').unwrap_or(part);
        is_framed(rest, is_lower_alphanumeric, |byte| matches!(byte, b'-' | b'_'))
    };
    let malformed = || {
        let text = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', \
                    and must start and end with an alphanumeric character";
        pattern_detail(text, UNDERSCORE_PATTERN, &["example.com"])
    };
    details(over(value, SUBDOMAIN_MAX_BYTES), (!value.split('.').all(is_part)).then(malformed))
}

/// A DNS subdomain as declarative rules check it, which count bytes.
pub fn long_name(value: &str) -> Vec<String> {
    let too_long = (value.len() > SUBDOMAIN_MAX_BYTES).then(|| max_bytes_detail(SUBDOMAIN_MAX_BYTES));
    let malformed = (!is_subdomain(value)).then(|| pattern_detail(SUBDOMAIN_TEXT, SUBDOMAIN_PATTERN, &["example.com"]));
    details(too_long, malformed)
}

/// A DNS subdomain in any letter case, as declarative rules check it.
pub fn long_name_caseless(value: &str) -> Vec<String> {
    let too_long = (value.len() > SUBDOMAIN_MAX_BYTES).then(|| max_bytes_detail(SUBDOMAIN_MAX_BYTES));
    let malformed = || {
        let text = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end \
                    with an alphanumeric character";
        pattern_detail(text, SUBDOMAIN_PATTERN, &["Example.com"])
    };
    details(too_long, (!is_subdomain(&value.to_ascii_lowercase())).then(malformed))
}

/// A DNS label that starts with a letter: the names of Services.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let good = is_label(value) && value.starts_with(|first: char| first.is_ascii_lowercase());
    let malformed = || {
        let text = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                    character, and end with an alphanumeric character";
        pattern_detail(text, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"])
    };
    details(over(value, LABEL_MAX_BYTES), (!good).then(malformed))
}

/// `*.` and a DNS subdomain.
pub fn wildcard_dns1123_subdomain(value: &str) -> Vec<String> {
    let good = value.strip_prefix("*.").is_some_and(is_subdomain);
    let malformed = || {
        let text = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
                    consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        pattern_detail(text, &format!(r"\*\.{SUBDOMAIN_PATTERN}"), &["*.example.com"])
    };
    details(over(value, SUBDOMAIN_MAX_BYTES), (!good).then(malformed))
}

/// A label key, taint key, finalizer or condition type: an optional DNS prefix, a slash, and a name.
pub fn qualified_name(value: &str) -> Vec<String> {
    const EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];
    const TEXT: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
    let (prefix, name) = match value.split_once('/') {
        Some((_, name)) if name.contains('/') => {
            let detail = pattern_detail(&format!("a valid label key {TEXT}"), NAME_PART_PATTERN, &EXAMPLES);
            return vec![format!("{detail} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')")];
        }
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, value),
    };
    let mut found = prefix.map(label_key_prefix).unwrap_or_default();
    if name.is_empty() {
        found.push("name part must be non-empty".into());
    } else if name.len() > LABEL_MAX_BYTES {
        found.push(format!("name part {}", max_bytes_detail(LABEL_MAX_BYTES)));
    }
    if !is_name_part(name) {
        found.push(format!("name part {}", pattern_detail(TEXT, NAME_PART_PATTERN, &EXAMPLES)));
    }
    found
}

fn label_key_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".into()];
    }
    let too_long = (prefix.len() > SUBDOMAIN_MAX_BYTES).then(|| max_bytes_detail(SUBDOMAIN_MAX_BYTES));
    let malformed = || pattern_detail(SUBDOMAIN_TEXT, SUBDOMAIN_PATTERN, &["example.com"]);
    let found = details(too_long, (!is_subdomain(prefix)).then(malformed));
    found.into_iter().map(|detail| format!("prefix part {detail}")).collect()
}

/// The value of a label; may be empty.
pub fn label_value(value: &str) -> Vec<String> {
    let too_long = (value.len() > LABEL_VALUE_MAX_BYTES).then(|| max_bytes_detail(LABEL_VALUE_MAX_BYTES));
    let malformed = || {
        let text = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                    must start and end with an alphanumeric character";
        pattern_detail(text, LABEL_VALUE_PATTERN, &["MyValue", "my_value", "12345"])
    };
    details(too_long, (!value.is_empty() && !is_name_part(value)).then(malformed))
}

/// A `generateName` prepared for its kind's name rule: a trailing `-` is fine, since a suffix follows.
pub fn mask_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-').filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let mut masked = rest.to_owned();
            // Upstream replaces the two last bytes by one letter; so does this, by character.
            masked.pop();
            masked.push('a');
            masked
        }
        None => prefix.to_owned(),
    }
}

#[cfg(test)]
mod tests;
