//! The rules of names that are about signers of certificates, which requests, bundles of trust and the volumes of pods
//! share.

use std::collections::BTreeMap;

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;

use crate::field_rules::{self as rules, NameRule};

const DOMAIN_MAX_BYTES: usize = 253;
const SIGNER_MAX_BYTES: usize = 571;
const PROJECT: &str = "kubernetes.io";
/// The shortest time, in seconds, that a certificate of a pod may be asked for.
pub const SHORTEST: i32 = 3_600;
/// The longest: a day of signers of the project, ninety-one days of others.
const LONGEST_OF_PROJECT: i32 = 86_400;
const LONGEST: i32 = 7_862_400;

/// Checks the name of a signer: a domain, and a path below it.
pub fn validate_name(path: &Path, name: &str, errors: &mut ErrorList) {
    if !rules::required(path, name, errors) {
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(path.invalid(name, detail));
        return;
    };
    if domain.len() > DOMAIN_MAX_BYTES {
        errors.push(path.too_long(DOMAIN_MAX_BYTES));
    }
    let mut labels = |whole: &str, rule: NameRule| {
        for label in whole.split('.') {
            let problems = rule(label);
            let is_bad = !problems.is_empty();
            for problem in problems {
                errors.push(path.invalid(whole, format!("validating label \"{label}\": {problem}")));
            }
            if is_bad {
                break;
            }
        }
    };
    labels(domain, names::dns1123_label);
    labels(rest, names::dns1123_subdomain);
    if !domain.contains('.') {
        errors.push(path.invalid(domain, "should be a domain with at least two segments separated by dots"));
    }
    if name.len() > SIGNER_MAX_BYTES {
        errors.push(path.too_long(SIGNER_MAX_BYTES));
    }
}

/// The longest time, in seconds, that the signer gives a pod a certificate for.
#[must_use]
pub fn longest(signer: &str) -> i32 {
    let domain = signer.split('/').next().unwrap_or_default();
    let of_project = domain.strip_suffix(PROJECT).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if of_project { LONGEST_OF_PROJECT } else { LONGEST }
}

/// What is wrong with the name of a bundle of trust; one of a signer is named after it.
#[must_use]
pub fn bundle_name(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return names::dns1123_subdomain(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::dns1123_subdomain(rest),
        None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
    }
}

/// The signer that the name of a bundle tells of; empty where it tells of none.
#[must_use]
pub fn signer_of_bundle(name: &str) -> String {
    name.rsplit_once(':').map_or_else(String::new, |(signer, _)| signer.replace(':', "/"))
}

/// Checks what a pod tells a signer in its own words.
pub fn validate_user_annotations(path: &Path, annotations: &BTreeMap<String, String>, errors: &mut ErrorList) {
    for key in annotations.keys() {
        errors.extend(names::domain_prefixed_key(path, &key.to_lowercase()));
    }
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    if size > names::ANNOTATIONS_MAX_BYTES {
        errors.push(path.too_long(names::ANNOTATIONS_MAX_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_own_signers_give_short_certificates() {
        for (name, expected) in [
            ("kubernetes.io/legacy", LONGEST_OF_PROJECT),
            ("a.kubernetes.io/x", LONGEST_OF_PROJECT),
            ("notkubernetes.io/x", LONGEST),
            ("kubernetes.io.example/x", LONGEST),
        ] {
            assert_eq!(longest(name), expected, "{name}");
        }
    }

    #[test]
    fn bundles_are_named_after_their_signers() {
        for (name, signer) in [("a.b:c:d", "a.b/c"), ("plain", ""), (":x", "")] {
            assert_eq!(signer_of_bundle(name), signer, "{name}");
        }
        assert!(bundle_name("a.b:c:d", "a.b/c").is_empty());
        assert_eq!(
            bundle_name("x", "a.b/c"),
            ["ClusterTrustBundle for signerName a.b/c must be named with prefix a.b:c:"]
        );
    }
}
