//! Whether a rule covers a request.

use api_types::rbac_v1::PolicyRule;

use crate::Attributes;

/// Whether the rule allows the request.
#[must_use]
pub fn rule_allows(rule: &PolicyRule, attributes: &Attributes) -> bool {
    if !has(&rule.verbs, &attributes.verb) {
        return false;
    }
    if !attributes.resource_request {
        return rule.non_resource_urls.iter().any(|url| url_matches(url, &attributes.path));
    }
    has(&rule.api_groups, &attributes.group)
        && resource_matches(rule, &attributes.resource, &attributes.subresource)
        && (rule.resource_names.is_empty() || rule.resource_names.contains(&attributes.name))
}

/// Whether the list has the value or `*`.
fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|own| own == "*" || own == value)
}

fn resource_matches(rule: &PolicyRule, resource: &str, subresource: &str) -> bool {
    rule.resources.iter().any(|own| match own.split_once('/') {
        _ if own == "*" => true,
        None => subresource.is_empty() && own == resource,
        Some((main, sub)) => sub == subresource && !sub.is_empty() && (main == "*" || main == resource),
    })
}

/// Whether a rule's URL (equal, `*`, or a prefix that ends in `*`) covers a path.
pub(super) fn url_matches(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => url == path,
    }
}
