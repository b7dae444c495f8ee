//! The leases by which API servers say that they are there (KEP-1965): where they are, and how they are told from others.

use api_types::coordination_v1::Lease;

/// Where the leases are.
pub const NAMESPACE: &str = "kube-system";
/// The label that each of them has.
pub const LABEL: &str = "apiserver.kubernetes.io/identity";
/// Its value.
pub const COMPONENT: &str = "kube-apiserver";
/// What selects them.
pub const SELECTOR: &str = "apiserver.kubernetes.io/identity=kube-apiserver";

/// Whether a lease is an API server's.
#[must_use]
pub fn is_one(lease: &Lease) -> bool {
    lease.metadata.labels.get(LABEL).is_some_and(|component| component == COMPONENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selector_is_the_label() {
        assert_eq!(SELECTOR, format!("{LABEL}={COMPONENT}"));
        let mut lease = Lease::default();
        assert!(!is_one(&lease));
        lease.metadata.labels.insert(LABEL.to_owned(), "another".to_owned());
        assert!(!is_one(&lease));
        lease.metadata.labels.insert(LABEL.to_owned(), COMPONENT.to_owned());
        assert!(is_one(&lease));
    }
}
