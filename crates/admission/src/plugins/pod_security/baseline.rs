//! The checks of level baseline, by the order of their ids.

use std::collections::BTreeSet;

use api_types::core_v1::{AppArmorProfile, LifecycleHandler, SELinuxOptions, SeccompProfile};

use super::Violation;
use super::subject::{Subject, containers, plural, quoted, setters, values, violation};

/// Which checks are left out, as stricter ones stand for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overridden {
    None,
    ByRestricted,
}

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const POD_SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const CONTAINER_SECCOMP: &str = "container.seccomp.security.alpha.kubernetes.io/";
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
/// Settings that pods may have, each with the version from which on.
const SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

/// Everything that is wrong.
pub(super) fn check(subject: &Subject<'_>, overridden: Overridden) -> Vec<Violation> {
    let stricter = overridden == Overridden::ByRestricted;
    let minor = subject.minor;
    [
        app_armor(subject),
        // On Windows the stricter check does not look; the plain one is left out all the same.
        (!(stricter && minor >= 22)).then(|| capabilities(subject)).flatten(),
        host_namespaces(subject),
        (!stricter).then(|| host_path(subject)).flatten(),
        host_ports(subject),
        (minor >= 34).then(|| hosts(subject)).flatten(),
        privileged(subject),
        (!(stricter && minor >= 35)).then(|| proc_mount(subject)).flatten(),
        se_linux(subject),
        (!(stricter && minor >= 19)).then(|| seccomp(subject)).flatten(),
        sysctls(subject),
        host_process(subject),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn app_armor(subject: &Subject<'_>) -> Option<Violation> {
    let bad = |profile: Option<&AppArmorProfile>| {
        let kind = &profile?.type_;
        (!matches!(kind.as_str(), "RuntimeDefault" | "Localhost")).then(|| kind.clone())
    };
    let mut kinds = BTreeSet::new();
    let of_pod = subject.security().and_then(|own| bad(own.app_armor_profile.as_ref()));
    kinds.extend(of_pod.clone());
    let names = subject.names(|own| bad(own.security.and_then(|own| own.app_armor_profile.as_ref())).is_some());
    let of_containers = subject.containers.iter().filter_map(|own| own.security);
    kinds.extend(of_containers.filter_map(|own| bad(own.app_armor_profile.as_ref())));
    let annotations: Vec<String> = subject
        .metadata
        .annotations
        .iter()
        .filter(|(key, value)| {
            let fine = matches!(value.as_str(), "" | "runtime/default") || value.starts_with("localhost/");
            key.starts_with(APP_ARMOR) && !fine
        })
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let count = kinds.len() + annotations.len();
    if count == 0 {
        return None;
    }
    let mut who = Vec::new();
    if of_pod.is_some() || !names.is_empty() {
        who.push(setters(of_pod.is_some(), &names));
    }
    if !annotations.is_empty() {
        who.push(plural(annotations.len(), "annotation", "annotations").to_owned());
    }
    let shown: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).chain(annotations).collect();
    let reason = plural(count, "forbidden AppArmor profile", "forbidden AppArmor profiles");
    let detail = format!("{} must not set AppArmor profile type to {}", who.join(" and "), shown.join(", "));
    Some(violation(reason, detail))
}

fn capabilities(subject: &Subject<'_>) -> Option<Violation> {
    let (names, added) = forbidden_capabilities(subject, &CAPABILITIES);
    let detail =
        || format!("{} must not include {} in securityContext.capabilities.add", containers(&names), values(&added));
    (!names.is_empty()).then(|| violation("non-default capabilities", detail()))
}

/// The containers that add other capabilities than these, and which ones.
pub(super) fn forbidden_capabilities<'a>(subject: &Subject<'a>, allowed: &[&str]) -> (Vec<&'a str>, BTreeSet<String>) {
    let mut forbidden = BTreeSet::new();
    let mut names = Vec::new();
    for container in &subject.containers {
        let added = container.security.and_then(|own| own.capabilities.as_ref()).map(|own| own.add.as_slice());
        let bad: Vec<&String> =
            added.unwrap_or_default().iter().filter(|own| !allowed.contains(&own.as_str())).collect();
        if !bad.is_empty() {
            names.push(container.name);
        }
        forbidden.extend(bad.into_iter().cloned());
    }
    (names, forbidden)
}

fn host_namespaces(subject: &Subject<'_>) -> Option<Violation> {
    let spec = subject.spec;
    let set =
        [("hostNetwork=true", spec.host_network), ("hostPID=true", spec.host_pid), ("hostIPC=true", spec.host_ipc)];
    let set: Vec<&str> = set.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
    (!set.is_empty()).then(|| violation("host namespaces", set.join(", ")))
}

fn host_path(subject: &Subject<'_>) -> Option<Violation> {
    let with_path = subject.spec.volumes.iter().filter(|volume| volume.volume_source.host_path.is_some());
    let names: Vec<&str> = with_path.map(|volume| volume.name.as_str()).collect();
    let detail = || format!("{} {}", plural(names.len(), "volume", "volumes"), quoted(&names));
    (!names.is_empty()).then(|| violation("hostPath volumes", detail()))
}

fn host_ports(subject: &Subject<'_>) -> Option<Violation> {
    let names = subject.names(|own| own.ports.iter().any(|port| port.host_port != 0));
    let all = subject.containers.iter().flat_map(|own| own.ports).filter(|port| port.host_port != 0);
    let ports: BTreeSet<String> = all.map(|port| port.host_port.to_string()).collect();
    let detail = || {
        let verb = plural(names.len(), "uses", "use");
        let noun = plural(ports.len(), "hostPort", "hostPorts");
        let listed = ports.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{} {verb} {noun} {listed}", containers(&names))
    };
    (!names.is_empty()).then(|| violation("hostPort", detail()))
}

/// Probes and hooks that go to another host than the pod.
fn hosts(subject: &Subject<'_>) -> Option<Violation> {
    let (mut names, mut found) = (Vec::new(), BTreeSet::new());
    for container in &subject.containers {
        let mut hosts = Vec::new();
        for probe in container.probes.iter().flatten() {
            let handler = &probe.probe_handler;
            hosts.extend(handler.http_get.as_ref().map(|own| own.host.clone()));
            hosts.extend(handler.tcp_socket.as_ref().map(|own| own.host.clone()));
        }
        let hooks = container.lifecycle.iter().flat_map(|own| [own.post_start.as_ref(), own.pre_stop.as_ref()]);
        for LifecycleHandler { http_get, tcp_socket, .. } in hooks.flatten() {
            hosts.extend(http_get.as_ref().map(|own| own.host.clone()));
            hosts.extend(tcp_socket.as_ref().map(|own| own.host.clone()));
        }
        hosts.retain(|host| !host.is_empty());
        if !hosts.is_empty() {
            names.push(container.name);
        }
        found.extend(hosts);
    }
    names.sort_unstable();
    let detail = || {
        let verb = plural(names.len(), "uses", "use");
        let noun = plural(found.len(), "host", "hosts");
        format!("{} {verb} probe or lifecycle {noun} {}", containers(&names), values(&found))
    };
    (!names.is_empty()).then(|| violation("probe or lifecycle host", detail()))
}

fn privileged(subject: &Subject<'_>) -> Option<Violation> {
    let names = subject.names(|own| own.security.is_some_and(|own| own.privileged == Some(true)));
    let detail = || format!("{} must not set securityContext.privileged=true", containers(&names));
    (!names.is_empty()).then(|| violation("privileged", detail()))
}

/// Containers that see more of `/proc` than usual.
pub(super) fn proc_mount(subject: &Subject<'_>) -> Option<Violation> {
    if subject.has_own_users() {
        return None;
    }
    forbidden_proc_mounts(subject)
}

/// The same, whoever the users are.
pub(super) fn forbidden_proc_mounts(subject: &Subject<'_>) -> Option<Violation> {
    let own_of = |own: &super::subject::Container<'_>| {
        own.security.and_then(|own| own.proc_mount.clone()).filter(|kind| kind != "Default")
    };
    let names = subject.names(|own| own_of(own).is_some());
    let kinds: BTreeSet<String> = subject.containers.iter().filter_map(own_of).collect();
    let detail = || format!("{} must not set securityContext.procMount to {}", containers(&names), values(&kinds));
    (!names.is_empty()).then(|| violation("procMount", detail()))
}

fn se_linux(subject: &Subject<'_>) -> Option<Violation> {
    let engine = subject.minor >= 31;
    let fine = |kind: &str| {
        matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
            || (engine && kind == "container_engine_t")
    };
    let bad = |own: &SELinuxOptions| !fine(&own.type_) || !own.user.is_empty() || !own.role.is_empty();
    let of_pod = subject.security().and_then(|own| own.se_linux_options.as_ref());
    let of_container = |own: &super::subject::Container<'_>| {
        own.security.and_then(|own| own.se_linux_options.as_ref()).is_some_and(bad)
    };
    let names = subject.names(of_container);
    let own = subject.containers.iter().filter_map(|own| own.security?.se_linux_options.as_ref());
    let all: Vec<&SELinuxOptions> = of_pod.into_iter().chain(own).filter(|own| bad(own)).collect();
    if all.is_empty() {
        return None;
    }
    let kinds: BTreeSet<String> = all.iter().filter(|own| !fine(&own.type_)).map(|own| own.type_.clone()).collect();
    let mut parts = Vec::new();
    if !kinds.is_empty() {
        parts.push(format!("{} {}", plural(kinds.len(), "type", "types"), values(&kinds)));
    }
    if all.iter().any(|own| !own.user.is_empty()) {
        parts.push("user may not be set".to_owned());
    }
    if all.iter().any(|own| !own.role.is_empty()) {
        parts.push("role may not be set".to_owned());
    }
    let who = setters(of_pod.is_some_and(bad), &names);
    let detail = format!("{who} set forbidden securityContext.seLinuxOptions: {}", parts.join("; "));
    Some(violation("seLinuxOptions", detail))
}

fn seccomp(subject: &Subject<'_>) -> Option<Violation> {
    if subject.minor >= 19 { forbidden_seccomp(subject) } else { seccomp_annotations(subject) }
}

/// Profiles other than the runtime's and the node's.
pub(super) fn forbidden_seccomp(subject: &Subject<'_>) -> Option<Violation> {
    let bad = |profile: Option<&SeccompProfile>| {
        let kind = &profile?.type_;
        (!matches!(kind.as_str(), "RuntimeDefault" | "Localhost")).then(|| kind.clone())
    };
    let of_pod = subject.security().and_then(|own| bad(own.seccomp_profile.as_ref()));
    let of_container = |own: &super::subject::Container<'_>| bad(own.security?.seccomp_profile.as_ref());
    let names = subject.names(|own| of_container(own).is_some());
    let mut kinds: BTreeSet<String> = subject.containers.iter().filter_map(of_container).collect();
    let pod = of_pod.is_some();
    kinds.extend(of_pod);
    let detail =
        || format!("{} must not set securityContext.seccompProfile.type to {}", setters(pod, &names), values(&kinds));
    (!kinds.is_empty()).then(|| violation("seccompProfile", detail()))
}

/// Before there was a field, annotations said it.
fn seccomp_annotations(subject: &Subject<'_>) -> Option<Violation> {
    let fine = |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let own = |key: &str| key == POD_SECCOMP || key.starts_with(CONTAINER_SECCOMP);
    let annotations = subject.metadata.annotations.iter().filter(|(key, value)| own(key) && !fine(value));
    let bad: Vec<String> = annotations.map(|(key, value)| format!("{key}={value:?}")).collect();
    let detail = || format!("forbidden {} {}", plural(bad.len(), "annotation", "annotations"), bad.join(", "));
    (!bad.is_empty()).then(|| violation("seccompProfile", detail()))
}

fn sysctls(subject: &Subject<'_>) -> Option<Violation> {
    let allowed = |name: &str| SYSCTLS.iter().any(|(own, since)| *own == name && subject.minor >= *since);
    let all = subject.security().map(|own| own.sysctls.as_slice()).unwrap_or_default();
    let bad: Vec<&str> = all.iter().map(|own| own.name.as_str()).filter(|name| !allowed(name)).collect();
    (!bad.is_empty()).then(|| violation("forbidden sysctls", bad.join(", ")))
}

fn host_process(subject: &Subject<'_>) -> Option<Violation> {
    let of_pod = subject.security().and_then(|own| own.windows_options.as_ref());
    let of_pod = of_pod.is_some_and(|own| own.host_process == Some(true));
    let names = subject.names(|own| {
        own.security.and_then(|own| own.windows_options.as_ref()).is_some_and(|own| own.host_process == Some(true))
    });
    let detail = || format!("{} must not set securityContext.windowsOptions.hostProcess=true", setters(of_pod, &names));
    (of_pod || !names.is_empty()).then(|| violation("hostProcess", detail()))
}
