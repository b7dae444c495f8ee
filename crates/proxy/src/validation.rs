//! What is wrong with the settings, found before anything is done with them: a rule made from a network that is none, or
//! for an interface without a name, would be refused by the kernel with every sync; and an address of NodePorts that is
//! not understood must not open them everywhere. Paths and texts are upstream's.

use component_base::flags::{Errors, Options};
use sys::net::Destination;

const ROOT: &str = "KubeProxyConfiguration";

/// Checks what no type checks.
pub(crate) fn check(options: &Options, errors: &mut Errors) {
    periods(options, errors);
    let burst = options.int("kube-api-burst");
    errors.check(
        burst >= 0,
        format_args!("{ROOT}.ClientConnection.Burst: Invalid value: {burst}: must be greater than or equal to 0"),
    );
    node_port_addresses(options.strings("nodeport-addresses"), errors);
    local_interface(options, errors);
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

fn local_interface(options: &Options, errors: &mut Errors) {
    for (mode, flag, name) in [
        ("BridgeInterface", "pod-bridge-interface", "InterfaceName"),
        ("InterfaceNamePrefix", "pod-interface-name-prefix", "InterfacePrefix"),
    ] {
        let missing = options.string("detect-local-mode") == mode && options.string(flag).is_empty();
        errors.check(
            !missing,
            format_args!("{ROOT}.DetectLocalConfiguration.{name}: Invalid value: \"\": must not be empty"),
        );
    }
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
            let options = flags::parse(FLAGS, arguments.iter().map(|text| (*text).to_owned())).unwrap();
            let mut errors = Errors::new();
            check(&options, &mut errors);
            let said = errors.into_result().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.contains(part) && said.is_empty() == part.is_empty(), "{arguments:?}: {said}");
        }
    }
}
