//! Kernel parameters that a pod may ask for: those that touch its own namespaces alone, and what the node allows beside.

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

pub(super) fn check(attempt: &Attempt<'_>) -> Result<(), Refusal> {
    let pod = attempt.pod;
    let wanted = pod.spec.security_context.iter().flat_map(|context| &context.sysctls);
    for sysctl in wanted {
        let name = sysctl.name.replace('/', ".");
        let allowed = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => *pattern == name,
        };
        if !SAFE_SYSCTLS.contains(&name.as_str()) && !attempt.situation.unsafe_sysctls.iter().any(allowed) {
            return Err(Refusal::new(Reason::SysctlForbidden, format!("forbidden sysctl: {name:?} not allowlisted")));
        }
        let ipc = ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix));
        let ipc = ipc || name == "kernel.sem";
        let shared = if ipc && pod.spec.host_ipc {
            "ipc"
        } else if name.starts_with("net.") && pod.spec.host_network {
            "net"
        } else {
            continue;
        };
        let text = format!("forbidden sysctl: {name:?} not allowed with host {shared} enabled");
        return Err(Refusal::new(Reason::SysctlForbidden, text));
    }
    Ok(())
}
