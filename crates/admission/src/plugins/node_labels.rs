//! Which labels a kubelet may set on its own node.

use std::collections::{BTreeMap, BTreeSet};

use component_helpers::node_labels::{DOMAINS_OF_KUBELETS, OF_KUBELETS};

const RESTRICTED: &str = "node-restriction.kubernetes.io";
const SYSTEM: &[&str] = &["kubernetes.io", "k8s.io"];

/// Whether a kubelet may not set this label.
pub(super) fn is_forbidden(key: &str) -> bool {
    let Some((namespace, _)) = key.split_once('/') else { return false };
    let within =
        |domain: &str| namespace == domain || namespace.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    if within(RESTRICTED) {
        return true;
    }
    let own = OF_KUBELETS.contains(&key) || DOMAINS_OF_KUBELETS.iter().any(|domain| within(domain));
    !own && SYSTEM.iter().any(|domain| within(domain))
}

/// The labels that were added, changed or removed.
pub(super) fn changed<'a>(old: &'a BTreeMap<String, String>, new: &'a BTreeMap<String, String>) -> BTreeSet<&'a str> {
    let keys = old.keys().chain(new.keys());
    keys.filter(|key| old.get(*key) != new.get(*key)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::is_forbidden;

    #[test]
    fn labels() {
        for (key, forbidden) in [
            ("role", false),
            ("example.com/role", false),
            ("kubernetes.io/hostname", false),
            ("kubernetes.io/role", true),
            ("foo.k8s.io/x", true),
            ("node.kubernetes.io/x", false),
            ("sub.kubelet.kubernetes.io/x", false),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
            ("node-role.kubernetes.io/control-plane", true),
        ] {
            assert_eq!(is_forbidden(key), forbidden, "{key}");
        }
    }
}
