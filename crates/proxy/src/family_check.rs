//! Whether the settings are about the families of addresses that the node has: networks of pods of the other family alone tell
//! nothing of the traffic of Services.

use std::net::SocketAddr;

use crate::Family;
use crate::options::Settings;

/// Why rules from these settings would be wrong for every Service.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("kube-proxy configuration is incorrect: {0}")]
pub(crate) struct WrongFamily(String);

/// Logs what does not suit the families, of which the first is the node's own.
///
/// # Errors
/// When traffic of pods could not be told from other traffic at all.
pub(crate) fn check(settings: &Settings, families: &[Family]) -> Result<(), WrongFamily> {
    let Some(primary) = families.first().copied() else { return Ok(()) };
    let is_dual = families.len() > 1;
    let kind = if is_dual { "primary" } else { "only" };
    let cluster = format!("cluster is {}-{kind}", primary.api_name());
    let mut problems = Vec::new();
    let mut wrong = settings.local_networks().map(|(family, _)| family).filter(|family| *family != primary).peekable();
    let others_only = settings.local_networks().all(|(family, _)| family != primary);
    let mut is_fatal = false;
    if let Some(other) = wrong.peek().filter(|_| others_only) {
        let what = if settings.local_by_node { "node.spec.podCIDRs" } else { "clusterCIDRs" };
        problems.push(format!("{cluster} but {what} contains only {} addresses", other.api_name()));
        is_fatal = settings.local_by_node || !is_dual;
    }
    let other = |address: Option<SocketAddr>| address.map(|own| Family::of(own.ip())).filter(|own| *own != primary);
    for (what, address) in [("healthzBindAddress", settings.healthz), ("metricsBindAddress", settings.metrics)] {
        if let Some(other) = other(address).filter(|_| !is_dual) {
            problems.push(format!("{cluster} but {what} is {}", other.api_name()));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    let problems = problems.join(", ");
    if is_fatal {
        return Err(WrongFamily(problems));
    }
    tracing::error!(problems, "Kube-proxy configuration may be incomplete or incorrect");
    Ok(())
}

#[cfg(test)]
mod tests {
    use component_base::flags;

    use super::*;
    use crate::options::{FLAGS, detectors_of};

    #[test]
    fn networks_of_the_other_family_alone_are_a_mistake() {
        const V4: &[Family] = &[Family::V4];
        const V6_FIRST: &[Family] = &[Family::V6, Family::V4];
        let of_cluster =
            "kube-proxy configuration is incorrect: cluster is IPv4-only but clusterCIDRs contains only IPv6 addresses";
        let of_node = "kube-proxy configuration is incorrect: cluster is IPv6-primary but node.spec.podCIDRs contains only IPv4 addresses";
        for (arguments, networks, families, expected) in [
            (&["--cluster-cidr=fd00::/48"][..], &[][..], V4, of_cluster),
            (&["--cluster-cidr=fd00::/48"], &[], &[Family::V4, Family::V6], ""),
            (&["--cluster-cidr=10.0.0.0/8,fd00::/48"], &[], V4, ""),
            (&["--cluster-cidr=10.0.0.0/8"], &[], V6_FIRST, ""),
            (&[], &[], V4, ""),
            (&["--detect-local-mode=NodeCIDR"], &["10.0.1.0/24"], V6_FIRST, of_node),
            (&["--detect-local-mode=NodeCIDR"], &["10.0.1.0/24", "fd00::/64"], V6_FIRST, ""),
            (&["--detect-local-mode=BridgeInterface", "--pod-bridge-interface=b"], &[], V4, ""),
            (&["--metrics-bind-address=[::1]:1"], &[], V4, ""),
        ] {
            let options = flags::parse(FLAGS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
            let mut settings = Settings::from_options(&options, "host").unwrap();
            if settings.local_by_node {
                settings.local_detectors = detectors_of(networks.iter().copied()).unwrap();
            }
            let found = check(&settings, families).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!(found, expected, "{arguments:?} {networks:?} {families:?}");
        }
    }
}
