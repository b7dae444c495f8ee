//! What is wrong with the settings, found before anything is done with them: a rule made from a network that is none, or
//! for an interface without a name, would be refused by the kernel with every sync; and an address of NodePorts that is
//! not understood must not open them everywhere. Paths and texts are upstream's.

use std::net::IpAddr;

use component_base::flags::{Errors, Options};
use sys::net::Destination;

use crate::Family;

const ROOT: &str = "KubeProxyConfiguration";
const LINUX: &str = "KubeProxyConfiguration.KubeProxyLinuxConfiguration";
/// The ways to tell traffic of pods, in the order in which people are told of them; blank stands for the first.
const LOCAL_MODES: [&str; 5] = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", ""];

/// Checks what no type checks.
pub(crate) fn check(options: &Options, errors: &mut Errors) {
    in_range(errors, "KubeProxyNFTablesConfiguration.MasqueradeBit", options.int("iptables-masquerade-bit"), (0, 31));
    in_range(errors, "KubeProxyLinuxConfiguration.OOMScoreAdj", options.int("oom-score-adj"), (-1000, 1000));
    tracking(options, errors);
    periods(options, errors);
    let burst = options.int("kube-api-burst");
    errors.check(
        burst >= 0,
        format_args!("{ROOT}.ClientConnection.Burst: Invalid value: {burst}: must be greater than or equal to 0"),
    );
    for (name, flag) in [("HealthzBindAddress", "healthz-bind-address"), ("MetricsBindAddress", "metrics-bind-address")]
    {
        let text = options.string(flag);
        if !(text.is_empty() && flag == "healthz-bind-address") {
            address(name, text, errors);
        }
    }
    node_port_addresses(options.strings("nodeport-addresses"), errors);
    local_mode(options, errors);
}

fn in_range(errors: &mut Errors, name: &str, value: i64, (least, most): (i64, i64)) {
    let fits = (least..=most).contains(&value);
    errors
        .check(fits, format_args!("{ROOT}.{name}: Invalid value: {value}: must be within the range [{least}, {most}]"));
}

fn tracking(options: &Options, errors: &mut Errors) {
    let numbers = [("MaxPerCore", "conntrack-max-per-core"), ("Min", "conntrack-min")];
    let durations = [
        ("TCPEstablishedTimeout", "conntrack-tcp-timeout-established"),
        ("TCPCloseWaitTimeout", "conntrack-tcp-timeout-close-wait"),
        ("UDPTimeout", "conntrack-udp-timeout"),
        ("UDPStreamTimeout", "conntrack-udp-timeout-stream"),
    ];
    let numbers = numbers.map(|(name, flag)| (name, options.int(flag)));
    let durations = durations.map(|(name, flag)| (name, options.duration_ns(flag)));
    for (name, value) in numbers.into_iter().chain(durations) {
        let place = format_args!("{LINUX}.KubeProxyConntrackConfiguration.{name}");
        errors.check(value >= 0, format_args!("{place}: Invalid value: {value}: must be greater than or equal to 0"));
    }
}

/// An address to listen at; it may lack the port.
fn address(name: &str, text: &str, errors: &mut Errors) {
    if text.parse::<IpAddr>().is_ok() {
        return;
    }
    let problem = match text.rsplit_once(':') {
        None => Some((text, "must be IP:port")),
        Some((host, port)) => {
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
            if host.parse::<IpAddr>().is_err() {
                Some((host, "must be a valid IP"))
            } else {
                (!is_port).then_some((port, "must be a valid port"))
            }
        }
    };
    if let Some((value, problem)) = problem {
        errors.push(format_args!("{ROOT}.{name}: Invalid value: {value:?}: {problem}"));
    }
}

fn periods(options: &Options, errors: &mut Errors) {
    let [config, sync, min] = ["config-sync-period", "iptables-sync-period", "iptables-min-sync-period"]
        .map(|flag| options.duration_ns(flag));
    for (name, period) in [("ConfigSyncPeriod", config), ("SyncPeriod", sync)] {
        errors.check(period > 0, format_args!("{ROOT}.{name}: Invalid value: {period}: must be greater than 0"));
    }
    errors.check(
        min >= 0,
        format_args!("{ROOT}.MinSyncPeriod: Invalid value: {min}: must be greater than or equal to 0"),
    );
    errors.check(
        sync >= min,
        format_args!("{ROOT}.SyncPeriod: Invalid value: {min}: must be greater than or equal to {ROOT}.MinSyncPeriod"),
    );
}

fn node_port_addresses(given: &[String], errors: &mut Errors) {
    for (index, text) in given.iter().enumerate() {
        let problem = if text == "primary" {
            (given.len() > 1).then_some("can't use both 'primary' and CIDRs")
        } else {
            (!is_network(text)).then_some("must be a valid CIDR")
        };
        if let Some(problem) = problem {
            errors.push(format_args!("{ROOT}.NodePortAddresses[{index}]: Invalid value: {text:?}: {problem}"));
        }
        if text == "primary" {
            return;
        }
    }
}

fn local_mode(options: &Options, errors: &mut Errors) {
    let mode = options.string("detect-local-mode");
    match mode {
        "" | "ClusterCIDR" => networks(options.string("cluster-cidr"), errors),
        "BridgeInterface" => interface("InterfaceName", options.string("pod-bridge-interface"), errors),
        "InterfaceNamePrefix" => interface("InterfacePrefix", options.string("pod-interface-name-prefix"), errors),
        "NodeCIDR" => {}
        _ => {
            let known = LOCAL_MODES.map(|mode| format!("{mode:?}")).join(", ");
            errors.push(format_args!("{ROOT}.DetectLocalMode: Unsupported value: {mode:?}: supported values: {known}"));
        }
    }
}

fn interface(name: &str, text: &str, errors: &mut Errors) {
    let place = format_args!("{ROOT}.DetectLocalConfiguration.{name}");
    errors.check(!text.is_empty(), format_args!("{place}: Invalid value: \"\": must not be empty"));
}

/// One network of pods, or one of each family.
fn networks(text: &str, errors: &mut Errors) {
    let place = format_args!("{ROOT}.DetectLocalConfiguration.ClusterCIDRs");
    let given: Vec<&str> = text.split(',').map(str::trim).filter(|network| !network.is_empty()).collect();
    let mut are_fine = true;
    for (index, network) in given.iter().enumerate().filter(|(_, network)| !is_network(network)) {
        are_fine = false;
        errors.push(format_args!(
            "{place}[{index}]: Invalid value: {network:?}: must be a valid CIDR block (e.g. 10.100.0.0/16 or \
             fde4:8dba:82e1::/48)"
        ));
    }
    let families: Vec<_> = given.iter().map(|network| Family::of_text(network)).collect();
    let is_pair = families.len() < 2 || matches!(families.as_slice(), [one, other] if one != other);
    errors.check(
        !are_fine || is_pair,
        format_args!(
            "{place}: Invalid value: {given:?}: must be a either a single CIDR or dual-stack pair of CIDRs (e.g. \
             [10.100.0.0/16, fde4:8dba:82e1::/48]"
        ),
    );
}

/// Whether the text is an address with the length of its network.
pub(crate) fn is_network(text: &str) -> bool {
    text.contains('/') && text.parse::<Destination>().is_ok()
}

#[cfg(test)]
mod tests {
    use component_base::flags;

    use super::*;
    use crate::options::FLAGS;

    /// Whether what is said of these flags has this part; an empty one stands for nothing.
    fn expect(arguments: &[&str], part: &str) {
        let options = flags::parse(FLAGS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
        let mut errors = Errors::new();
        check(&options, &mut errors);
        let said = errors.into_result().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(part) && said.is_empty() == part.is_empty(), "{arguments:?}: {said}");
    }

    #[test]
    fn what_would_be_wrong_later_is_said_at_once() {
        for (arguments, part) in [
            (
                &["--nodeport-addresses=10.0.0.0"][..],
                "NodePortAddresses[0]: Invalid value: \"10.0.0.0\": must be a valid",
            ),
            (&["--nodeport-addresses=10.0.0.0/8,fd00::/200"], "NodePortAddresses[1]"),
            (&["--nodeport-addresses=10.0.0.0/8,primary"], "can't use both 'primary' and CIDRs"),
            (&["--nodeport-addresses=primary"], ""),
            (&["--nodeport-addresses=10.0.0.0/8,fd00::/64"], ""),
            (
                &["--iptables-sync-period=0s", "--iptables-min-sync-period=0s"],
                ".SyncPeriod: Invalid value: 0: must be gr",
            ),
            (
                &["--iptables-sync-period=1s", "--iptables-min-sync-period=2s"],
                "equal to KubeProxyConfiguration.MinSync",
            ),
            (&["--iptables-min-sync-period=-1s"], "MinSyncPeriod: Invalid value: -1000000000: must be greater than or"),
            (&["--config-sync-period=-1s"], "ConfigSyncPeriod"),
            (&["--kube-api-burst=-1"], "Burst"),
            (&["--detect-local-mode=BridgeInterface"], "InterfaceName: Invalid value: \"\": must not be empty"),
            (&["--detect-local-mode=InterfaceNamePrefix", "--pod-interface-name-prefix=veth"], ""),
        ] {
            expect(arguments, part);
        }
    }

    #[test]
    fn places_and_words_are_upstreams() {
        for (arguments, part) in [
            (
                &["--conntrack-udp-timeout=-1s"][..],
                "KubeProxyConfiguration.KubeProxyLinuxConfiguration.KubeProxyConntrackConfiguration.UDPTimeout: Invalid value: \
                 -1000000000: must be greater than or equal to 0",
            ),
            (&["--conntrack-tcp-timeout-close-wait=-1s"], "TCPCloseWaitTimeout: Invalid value"),
            (
                &["--conntrack-min=-1"],
                "KubeProxyConntrackConfiguration.Min: Invalid value: -1: must be greater than or equal to 0",
            ),
            (
                &["--iptables-masquerade-bit=32"],
                "KubeProxyConfiguration.KubeProxyNFTablesConfiguration.MasqueradeBit: Invalid value: 32: must be within the \
                 range [0, 31]",
            ),
            (
                &["--oom-score-adj=-1001"],
                "KubeProxyConfiguration.KubeProxyLinuxConfiguration.OOMScoreAdj: Invalid value: -1001: must be within the range \
                 [-1000, 1000]",
            ),
            (
                &["--detect-local-mode=Guess"],
                "KubeProxyConfiguration.DetectLocalMode: Unsupported value: \"Guess\": supported values: \"ClusterCIDR\", \
                 \"NodeCIDR\", \"BridgeInterface\", \"InterfaceNamePrefix\", \"\"",
            ),
            (
                &["--cluster-cidr=10.0.0.0/33"],
                "KubeProxyConfiguration.DetectLocalConfiguration.ClusterCIDRs[0]: Invalid value: \"10.0.0.0/33\": must be a valid \
                 CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)",
            ),
            (
                &["--cluster-cidr=10.0.0.0/8,10.1.0.0/16"],
                "must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]",
            ),
            (&["--cluster-cidr=10.0.0.0/8,fd00::/48"], ""),
            (
                &["--healthz-bind-address=here"],
                "KubeProxyConfiguration.HealthzBindAddress: Invalid value: \"here\": must be IP:port",
            ),
            (
                &["--metrics-bind-address="],
                "KubeProxyConfiguration.MetricsBindAddress: Invalid value: \"\": must be IP:port",
            ),
            (&["--metrics-bind-address=x:1"], "MetricsBindAddress: Invalid value: \"x\": must be a valid IP"),
            (&["--metrics-bind-address=[::1]:0"], "MetricsBindAddress: Invalid value: \"0\": must be a valid port"),
            (&["--healthz-bind-address="], ""),
        ] {
            expect(arguments, part);
        }
    }
}
