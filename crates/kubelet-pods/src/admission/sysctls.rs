//! Kernel parameters that a pod may ask for: those that touch its own namespaces alone, and what the node allows beside.

use api_machinery::names::sysctl_name;

use super::{Attempt, Reason, Refusal};

/// Sysctls that only touch the pod's own namespaces.
const SAFE_SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
];

/// How upstream writes what a pattern is.
const PATTERN: &str = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]";

/// What a kernel parameter is kept apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Ipc,
    Net,
}

impl Namespace {
    /// That of a parameter, or of all whose names begin so; nothing where it is the machine's.
    fn of(name: &str) -> Option<Self> {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if name == "kernel.sem" || starts(&["kernel.shm", "kernel.msg", "fs.mqueue."]) {
            return Some(Self::Ipc);
        }
        starts(&["net."]).then_some(Self::Net)
    }
}

/// What is wrong with a pattern of parameters that pods may set: a name, or the beginning of names with an asterisk.
///
/// # Errors
/// It is no name, or one of what all pods share.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    // An asterisk stands where a last part, or its last character, would.
    let (name, complete) = match pattern.strip_suffix('*') {
        Some(prefix) => (prefix, format!("{prefix}x")),
        None => (pattern, pattern.to_owned()),
    };
    if !sysctl_name(&complete).is_empty() {
        return Err(format!("sysctl {pattern:?} must have at most 253 characters and match regex {PATTERN}"));
    }
    let name = name.replace('/', ".");
    match Namespace::of(&name) {
        Some(_) => Ok(()),
        None => Err(format!("the sysctls {name:?} are not known to be namespaced")),
    }
}

pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let pod = attempt.pod;
    let wanted = pod.spec.security_context.iter().flat_map(|context| &context.sysctls);
    for sysctl in wanted {
        let name = sysctl.name.replace('/', ".");
        let allowed = |pattern: &String| {
            let pattern = pattern.replace('/', ".");
            pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
        };
        if !SAFE_SYSCTLS.contains(&name.as_str()) && !attempt.situation.unsafe_sysctls.iter().any(allowed) {
            return Err(Refusal::new(Reason::SysctlForbidden, format!("forbidden sysctl: {name:?} not allowlisted")));
        }
        let shared = match Namespace::of(&name) {
            Some(Namespace::Ipc) if pod.spec.host_ipc => "ipc",
            Some(Namespace::Net) if pod.spec.host_network => "net",
            _ => continue,
        };
        let text = format!("forbidden sysctl: {name:?} not allowed with host {shared} enabled");
        return Err(Refusal::new(Reason::SysctlForbidden, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_what_pods_have_of_their_own() {
        for good in ["net.*", "net.ipv4.ip_forward", "net/ipv4/tcp_*", "kernel.shm*", "kernel.sem", "fs.mqueue.*"] {
            assert_eq!(check_pattern(good), Ok(()), "{good}");
        }
        for (bad, expected) in [
            ("vm.swappiness", "the sysctls \"vm.swappiness\" are not known to be namespaced"),
            ("kernel.*", "the sysctls \"kernel.\" are not known to be namespaced"),
            ("*", "the sysctls \"\" are not known to be namespaced"),
            ("net.IPv4.x", "sysctl \"net.IPv4.x\" must have at most 253 characters and match regex "),
            ("", "sysctl \"\" must have at most 253 characters and match regex "),
            ("net.*.x", "sysctl \"net.*.x\" must have at most 253 characters and match regex "),
        ] {
            assert!(
                check_pattern(bad).is_err_and(|text| text.starts_with(expected)),
                "{bad}: {:?}",
                check_pattern(bad)
            );
        }
    }
}
