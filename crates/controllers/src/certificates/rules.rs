//! What each of the four built-in signers puts its name to.

use std::collections::BTreeSet;

use api_types::certificates_v1::constants::{
    KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME, KUBE_API_SERVER_CLIENT_SIGNER_NAME, KUBELET_SERVING_SIGNER_NAME,
};
use pki::CertificateRequest;

pub(super) const LEGACY_UNKNOWN: &str = "kubernetes.io/legacy-unknown";
const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";
const SIGNATURE: &str = "digital signature";
const ENCIPHERMENT: &str = "key encipherment";
const SERVER: &str = "server auth";
const CLIENT: &str = "client auth";

/// A rule that a request breaks, in upstream's words: they become the message of its condition.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BrokenRule {
    #[error("{0}")]
    Says(&'static str),
    #[error("invalid usage for client certificate: {0}")]
    Usage(String),
}

/// Checks a request against its signer's rules; other signers are not ours.
///
/// # Errors
/// The first rule that it breaks, in upstream's words.
pub(super) fn check(signer: &str, request: &CertificateRequest, usages: &[String]) -> Result<(), BrokenRule> {
    match signer {
        KUBELET_SERVING_SIGNER_NAME => serving(request, usages),
        KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME => kubelet_client(request, usages),
        KUBE_API_SERVER_CLIENT_SIGNER_NAME => api_client(usages),
        _ => Ok(()),
    }
}

fn require(fine: bool, text: &'static str) -> Result<(), BrokenRule> {
    if fine { Ok(()) } else { Err(BrokenRule::Says(text)) }
}

fn usages_are(usages: &[String], purpose: &str) -> bool {
    let usages: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    usages == BTreeSet::from([SIGNATURE, ENCIPHERMENT, purpose]) || usages == BTreeSet::from([SIGNATURE, purpose])
}

fn serving(request: &CertificateRequest, usages: &[String]) -> Result<(), BrokenRule> {
    let names = request.alt_names();
    require(request.subject().organizations() == [NODES], "subject organization is not system:nodes")?;
    require(!names.dns.is_empty() || !names.ips.is_empty(), "DNS or IP subjectAltName is required")?;
    require(names.emails.is_empty(), "Email subjectAltNames are not allowed")?;
    require(names.uris.is_empty(), "URI subjectAltNames are not allowed")?;
    let text = "usages did not match [digital signature key encipherment server auth]";
    require(usages_are(usages, SERVER), text)?;
    let text = "subject common name does not begin with system:node:";
    require(request.subject().common_name().starts_with(NODE_PREFIX), text)
}

/// The rules of the kubelets' client certificates; the approver goes by them as well.
pub(super) fn kubelet_client(request: &CertificateRequest, usages: &[String]) -> Result<(), BrokenRule> {
    let names = request.alt_names();
    require(request.subject().organizations() == [NODES], "subject organization is not system:nodes")?;
    require(names.dns.is_empty(), "DNS subjectAltNames are not allowed")?;
    require(names.emails.is_empty(), "Email subjectAltNames are not allowed")?;
    require(names.ips.is_empty(), "IP subjectAltNames are not allowed")?;
    require(names.uris.is_empty(), "URI subjectAltNames are not allowed")?;
    let text = "subject common name does not begin with system:node:";
    require(request.subject().common_name().starts_with(NODE_PREFIX), text)?;
    let text = "usages did not match [client auth digital signature key encipherment]";
    require(usages_are(usages, CLIENT), text)
}

fn api_client(usages: &[String]) -> Result<(), BrokenRule> {
    let other = usages.iter().find(|usage| ![SIGNATURE, ENCIPHERMENT, CLIENT].contains(&usage.as_str()));
    if let Some(usage) = other {
        return Err(BrokenRule::Usage(usage.clone()));
    }
    let text = "missing required usage for client certificate: client auth";
    require(usages.iter().any(|usage| usage == CLIENT), text)
}

#[cfg(test)]
mod tests {
    use pki::{AltNames, KeyAlgorithm, Name, PrivateKey};

    use super::*;

    #[test]
    fn each_signer_has_its_rules() {
        let key = PrivateKey::generate(KeyAlgorithm::EcdsaP256).unwrap();
        let request = |name: &str, groups: &[&str], host: &str| {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            let mut names = AltNames::default();
            if !host.is_empty() {
                names.push_host(host);
            }
            CertificateRequest::create(&key, &Name::new(name, &groups), &names).unwrap()
        };
        let node = request("system:node:n", &[NODES], "");
        let served = request("system:node:n", &[NODES], "n");
        let (serving, kubelet, client) = (
            KUBELET_SERVING_SIGNER_NAME,
            KUBE_API_SERVER_CLIENT_KUBELET_SIGNER_NAME,
            KUBE_API_SERVER_CLIENT_SIGNER_NAME,
        );
        for (name, signer, request, usages, expected) in [
            ("client", kubelet, &node, vec![CLIENT, ENCIPHERMENT, SIGNATURE], None),
            ("EC key", kubelet, &node, vec![SIGNATURE, CLIENT], None),
            ("one more", kubelet, &node, vec![SIGNATURE, CLIENT, SERVER], Some("usages did not match [client")),
            ("with a host", kubelet, &served, vec![SIGNATURE, CLIENT], Some("DNS subjectAltNames are not allowed")),
            (
                "two groups",
                kubelet,
                &request("system:node:n", &[NODES, "x"], ""),
                vec![SIGNATURE, CLIENT],
                Some("subject organization is not system:nodes"),
            ),
            (
                "no node",
                kubelet,
                &request("n", &[NODES], ""),
                vec![SIGNATURE, CLIENT],
                Some("subject common name does not begin with system:node:"),
            ),
            ("server", serving, &served, vec![SIGNATURE, ENCIPHERMENT, SERVER], None),
            ("no host", serving, &node, vec![SIGNATURE, SERVER], Some("DNS or IP subjectAltName is required")),
            ("any client", client, &request("me", &[], ""), vec![CLIENT], None),
            ("any usage", client, &node, vec!["any", CLIENT], Some("invalid usage for client certificate: any")),
            ("no client", client, &node, vec![SIGNATURE], Some("missing required usage")),
        ] {
            let usages: Vec<String> = usages.into_iter().map(str::to_owned).collect();
            let broken = check(signer, request, &usages).err().map(|rule| rule.to_string());
            match expected {
                None => assert_eq!(broken, None, "{name}"),
                Some(start) => assert!(broken.clone().unwrap_or_default().starts_with(start), "{name}: {broken:?}"),
            }
        }
    }
}
