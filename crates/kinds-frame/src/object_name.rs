//! The rules for `metadata.name` that kinds choose from; a prefix is that of a name which the server completes.

use api_machinery::names;

/// A DNS subdomain, as most kinds ask for.
#[must_use]
pub fn dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    named(names::dns1123_subdomain, name, prefix)
}

/// A DNS label.
#[must_use]
pub fn dns_label(name: &str, prefix: bool) -> Vec<String> {
    named(names::dns1123_label, name, prefix)
}

/// A DNS label that begins with a letter.
#[must_use]
pub fn dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    named(names::dns1035_label, name, prefix)
}

/// Anything that can stand between slashes in a path, as roles and bindings allow.
#[must_use]
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if prefix { names::path_segment_name_prefix(name) } else { names::path_segment_name(name) }
}

/// A prefix may end in a dash, as more follows.
fn named(rule: fn(&str) -> Vec<String>, name: &str, prefix: bool) -> Vec<String> {
    if prefix { rule(&names::mask_trailing_dash(name)) } else { rule(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes() {
        type Rule = fn(&str, bool) -> Vec<String>;
        let cases: [(Rule, &str, bool, bool); 8] = [
            (dns_subdomain, "a.b", false, true),
            (dns_subdomain, "a-", false, false),
            (dns_subdomain, "a-", true, true),
            (dns_label, "a.b", false, false),
            (dns_label, "-", true, false),
            (path_segment, "system:node", false, true),
            (path_segment, "..", false, false),
            (path_segment, "..", true, true),
        ];
        for (rule, name, prefix, good) in cases {
            assert_eq!(rule(name, prefix).is_empty(), good, "{name} {prefix}");
        }
    }
}
