//! Tables for the named value rules.

use std::collections::BTreeMap;

use super::*;
use crate::field_path::Path;

type Rule = fn(&str) -> Vec<String>;

#[test]
fn good_values_pass() {
    let cases: [(&str, Rule, &[&str]); 18] = [
        ("label", dns1123_label, &["a", "0", "a-b", "123-abc"]),
        ("subdomain", dns1123_subdomain, &["a", "a.b-c.0"]),
        ("underscore", dns1123_subdomain_with_underscore, &["_a._b-c", "a_b"]),
        ("1035", dns1035_label, &["a", "a-0"]),
        ("wildcard", wildcard_dns1123_subdomain, &["*.a.b"]),
        ("caseless", long_name_caseless, &["Example.com"]),
        ("qualified", qualified_name, &["a", "A.b_c-d", "x.io/Y", "1/2"]),
        ("value", label_value, &["", "A", "a.b_c-d"]),
        ("c", c_identifier, &["_", "a1"]),
        ("env", env_var_name, &["a b", "1$"]),
        ("env strict", env_var_name_strict, &["a.b-c_", "-1"]),
        ("key", config_key, &[".a", "A_b-c.0", "1"]),
        ("header", http_header_name, &["X-A"]),
        ("percent", percent, &["0%", "100%"]),
        ("port", port_name, &["http", "a-1"]),
        ("uuid", uuid, &["01234567-89ab-cdef-0123-456789abcdef"]),
        ("sysctl", sysctl_name, &["net.ipv4.tcp_x", "net/ipv4-a"]),
        ("reason", condition_reason, &["A", "A_", "A,B:c"]),
    ];
    for (name, rule, values) in cases {
        for value in values {
            assert_eq!(rule(value), Vec::<String>::new(), "{name}: {value}");
        }
    }
}

#[test]
fn bad_values_fail_with_upstream_texts() {
    let cases: [(Rule, &str, &[&str]); 21] = [
        (dns1123_label, "a.b", &["must not contain dots"]),
        (
            dns1123_label,
            "A",
            &[
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
               end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
               '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
            ],
        ),
        (
            dns1123_subdomain,
            "a..b",
            &[
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
               start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
               '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
        (dns1035_label, "1a", &["a DNS-1035 label must consist of"]),
        (wildcard_dns1123_subdomain, "*a", &["a wildcard DNS-1123 subdomain must start with '*.'"]),
        (qualified_name, "", &["name part must be non-empty", "name part must consist of"]),
        (qualified_name, "/a", &["prefix part must be non-empty"]),
        (qualified_name, "A/a", &["prefix part a lowercase RFC 1123 subdomain must consist of"]),
        (qualified_name, "a/b/c", &["a valid label key must consist of alphanumeric characters, '-', '_' or '.', and"]),
        (label_value, "-a", &["a valid label must be an empty string or consist of"]),
        (c_identifier, "1", &["a valid C identifier must start with"]),
        (env_var_name, "", &["environment variable name must be non-empty"]),
        (env_var_name, "a=b=", &["a valid environment variable name must consist only of printable ASCII"]),
        (env_var_name_strict, "..", &["must not be '..'"]),
        (config_key, "..a", &["must not start with '..'"]),
        (config_key, "a/b", &["a valid config key must consist of"]),
        (
            port_name,
            "-1--",
            &[
                "must contain at least one letter (a-z)",
                "must not contain consecutive hyphens",
                "must not begin or end with a hyphen",
            ],
        ),
        (path_segment_name, "a/b%", &["may not contain '/'", "may not contain '%'"]),
        (path_segment_name, "..", &["may not be '..'"]),
        (decimal_integer, "01", &["must be a valid decimal integer in canonical form"]),
        (percent, "%", &["a valid percent string must be"]),
    ];
    for (rule, value, expected) in cases {
        let found = rule(value);
        assert_eq!(found.len(), expected.len(), "{value}: {found:?}");
        for (text, start) in found.iter().zip(expected) {
            assert!(text.starts_with(start), "{value}: {text}");
        }
    }
}

#[test]
fn the_qualified_name_text_with_two_slashes_is_whole() {
    let expected = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                    validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and \
                    '/' (e.g. 'example.com/MyName')";
    assert_eq!(qualified_name("a/b/c"), [expected]);
}

#[test]
fn lengths_come_before_formats() {
    let cases: [(Rule, String, &str); 5] = [
        (dns1123_label, "a".repeat(64), "must be no more than 63 characters"),
        (dns1123_subdomain, "a".repeat(254), "must be no more than 253 characters"),
        (label_value, "a".repeat(64), "must be no more than 63 bytes"),
        (qualified_name, "a".repeat(64), "name part must be no more than 63 bytes"),
        (port_name, "a".repeat(16), "must be no more than 15 characters"),
    ];
    for (rule, value, expected) in cases {
        assert_eq!(rule(&value), [expected]);
        assert_eq!(rule(&format!("{value}!")).len(), 2);
    }
}

#[test]
fn numbers() {
    assert!(port_number(65535).is_empty());
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!(user_or_group_id(-1), ["must be between 0 and 2147483647, inclusive"]);
}

#[test]
fn addresses() {
    let cases: [(Rule, &str, &str); 20] = [
        (ip, "10.0.0.1", ""),
        (ip, "2001:DB8::1", ""),
        (ip, "10.0.0.01", "must not have leading 0s"),
        (ip, "::ffff:1.2.3.04", "must not have leading 0s"),
        (ip, "::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        (ip, "10.0.0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (ip, "10.0.0.256", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (ip, "fe80::1%eth0", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (ip_strict, "2001:db8::1", ""),
        (ip_strict, "2001:DB8:0::1", "must be in canonical form (\"2001:db8::1\")"),
        (cidr, "10.0.0.0/8", ""),
        (cidr, "0.0.0.0/0", ""),
        (cidr, "10.0.0.1/32", ""),
        (cidr, "10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        (cidr, "10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
        (cidr, "10.0.0.1/24", "must not have bits set beyond the prefix length"),
        (cidr, "::ffff:1.2.3.4/128", "must not have an IPv4-mapped IPv6 address"),
        (cidr_strict, "2001:DB8::/32", "must be in canonical form (\"2001:db8::/32\")"),
        (interface_address, "10.0.0.1/24", ""),
        (interface_address, "x", "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"),
    ];
    for (rule, value, expected) in cases {
        assert_eq!(rule(value).join("; "), expected, "{value}");
    }
    let endpoints = [
        ("10.0.0.1", ""),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
    ];
    for (value, expected) in endpoints {
        assert_eq!(endpoint_ip(value.parse().unwrap()).join("; "), expected, "{value}");
    }
}

#[test]
fn composite_rules() {
    let path = Path::new("p");
    let cases = [
        (fully_qualified_name(&path, "a.b.c"), "[]"),
        (fully_qualified_name(&path, ""), "p: Required value"),
        (
            fully_qualified_name(&path, "a.b"),
            "p: Invalid value: \"a.b\": should be a domain with at least three segments separated by dots",
        ),
        (fully_qualified_domain_name(&path, "a.b."), "[]"),
        (domain_prefixed_path(&path, "a.io/b"), "[]"),
        (
            domain_prefixed_path(&path, "a.io"),
            "p: Invalid value: \"a.io\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            domain_prefixed_path(&path, "a.io/b c"),
            "p: Invalid value: \"b c\": Invalid path (regex used for validation is \
             '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
        ),
        (
            domain_prefixed_key(&path, "a"),
            "p: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")",
        ),
        (csi_driver_name(&path, "A.b"), "[]"),
    ];
    for (errors, expected) in cases {
        assert_eq!(errors.to_string(), expected);
    }
    let big = BTreeMap::from([("Example.com/A".to_owned(), "x".repeat(ANNOTATIONS_MAX_BYTES))]);
    assert_eq!(annotations(&path, &big).to_string(), "p: Too long: may not be more than 262144 bytes");
    assert_eq!(labels(&path, &BTreeMap::from([("-".into(), "-".into())])).len(), 2);
}

#[test]
fn generated_name_prefixes() {
    for (prefix, masked) in [("web-", "wea"), ("a", "a"), ("-", "-"), ("a-", "a"), ("--", "a")] {
        assert_eq!(mask_trailing_dash(prefix), masked);
    }
}
