//! Security contexts: what a pod and a container ask for, as the runtime takes it.

use std::path::Path;

use api_types::core_v1::{AppArmorProfile, Container, Pod, SELinuxOptions, SeccompProfile, SecurityContext};
use node_api::cri::v1::security_profile::ProfileType;
use node_api::cri::v1::{
    Capability, Int64Value, LinuxContainerSecurityContext, LinuxSandboxSecurityContext, NamespaceMode, NamespaceOption,
    SeLinuxOption, SecurityProfile, SupplementalGroupsPolicy, UserNamespace,
};

use super::images::Ready;
use super::text;

const APPARMOR_ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Paths that containers do not see unless `procMount` is `Unmasked`.
const MASKED_PATHS: &[&str] = &[
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READONLY_PATHS: &[&str] = &["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];
/// Processors looked at for `thermal_throttle`, a bound.
const MAX_CPUS: usize = 4096;

/// What the kubelet's own settings add.
pub struct Defaults<'a> {
    pub seccomp_default: bool,
    /// Where `localhostProfile` paths start.
    pub seccomp_root: &'a Path,
    /// Groups that the pod's volumes add.
    pub volume_groups: Vec<i64>,
}

/// Which namespaces the pod's containers share with whom.
pub fn namespaces(pod: &Pod, users: Option<&UserNamespace>) -> NamespaceOption {
    let spec = &pod.spec;
    let or_node = |host: bool| if host { NamespaceMode::Node } else { NamespaceMode::Pod };
    let pid = match (spec.host_pid, spec.share_process_namespace) {
        (true, _) => NamespaceMode::Node,
        (false, Some(true)) => NamespaceMode::Pod,
        _ => NamespaceMode::Container,
    };
    NamespaceOption {
        network: or_node(spec.host_network).into(),
        pid: pid.into(),
        ipc: or_node(spec.host_ipc).into(),
        target_id: String::new(),
        userns_options: Some(users.cloned().unwrap_or_else(of_machine)),
    }
}

/// The machine's namespace of users.
fn of_machine() -> UserNamespace {
    UserNamespace { mode: NamespaceMode::Node.into(), ..UserNamespace::default() }
}

/// The sandbox's security context; `users` is the pod's own namespace of users, if it has one.
pub fn of_sandbox(pod: &Pod, users: Option<&UserNamespace>, defaults: &Defaults<'_>) -> LinuxSandboxSecurityContext {
    let privileged = super::super::pod::containers::members(pod).any(|member| is_privileged(&member.container));
    let mut out = LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(pod, users)),
        privileged,
        seccomp: Some(profile(ProfileType::RuntimeDefault, "")),
        ..Default::default()
    };
    let Some(context) = &pod.spec.security_context else { return out };
    out.run_as_user = context.run_as_user.map(int);
    out.run_as_group = context.run_as_group.map(int);
    out.selinux_options = context.se_linux_options.as_ref().map(selinux);
    out.supplemental_groups = supplemental_groups(pod, defaults);
    out.supplemental_groups_policy = groups_policy(pod).into();
    out
}

/// Why a container may not have the security context that it asks for. Nothing that the kubelet does helps; the last field
/// says whose it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecurityError {
    #[error("container's runAsUser breaks non-root policy {0}")]
    RunAsRoot(String),
    #[error("container has runAsNonRoot and image has non-numeric user ({0}), cannot verify user is non-root {1}")]
    UserByName(String, String),
    #[error("container has runAsNonRoot and image will run as root {0}")]
    ImageRunsAsRoot(String),
    /// The kernel's ids have 32 bits.
    #[error("container has runAsNonRoot and image has an invalid user id ({0}). {1}")]
    InvalidUser(i64, String),
    #[error("localhostProfile must be set if seccompProfile type is Localhost.")]
    NoProfile,
    #[error("localhostProfile {0:?} must be a path below the profile root")]
    ProfileOutside(String),
}

/// The container's security context, its fields over the pod's.
///
/// # Errors
/// What it asks for contradicts itself or the image; the text becomes the message of `CreateContainerConfigError`.
pub fn of_container(
    pod: &Pod,
    container: &Container,
    image: &Ready,
    users: Option<&UserNamespace>,
    defaults: &Defaults<'_>,
) -> Result<LinuxContainerSecurityContext, SecurityError> {
    let empty = SecurityContext::default();
    let own = container.security_context.as_ref().unwrap_or(&empty);
    let of_pod = pod.spec.security_context.as_ref();
    let user = own.run_as_user.or_else(|| of_pod.and_then(|all| all.run_as_user));
    let non_root = own.run_as_non_root.or_else(|| of_pod.and_then(|all| all.run_as_non_root));
    if non_root == Some(true) {
        check_non_root(pod, container, user, image)?;
    }
    let unmasked = own.proc_mount.as_deref() == Some("Unmasked");
    let user = user.or(image.uid);
    let selinux_options =
        own.se_linux_options.as_ref().or_else(|| of_pod.and_then(|all| all.se_linux_options.as_ref()));
    let (apparmor, apparmor_profile) = apparmor(pod, container, own);
    #[expect(deprecated, reason = "older runtimes read the old field only")]
    Ok(LinuxContainerSecurityContext {
        capabilities: own.capabilities.as_ref().map(|capabilities| Capability {
            add_capabilities: capabilities.add.clone(),
            drop_capabilities: capabilities.drop.clone(),
            ..Default::default()
        }),
        privileged: is_privileged(container),
        namespace_options: Some(namespaces(pod, users)),
        selinux_options: selinux_options.map(selinux),
        run_as_user: user.map(int),
        run_as_group: own.run_as_group.or_else(|| of_pod.and_then(|all| all.run_as_group)).map(int),
        run_as_username: if user.is_none() { image.username.clone() } else { String::new() },
        readonly_rootfs: own.read_only_root_filesystem == Some(true),
        supplemental_groups: supplemental_groups(pod, defaults),
        supplemental_groups_policy: groups_policy(pod).into(),
        no_new_privs: own.allow_privilege_escalation == Some(false),
        masked_paths: if unmasked { Vec::new() } else { masked_paths() },
        readonly_paths: if unmasked { Vec::new() } else { owned(READONLY_PATHS) },
        seccomp: Some(seccomp(pod, own, defaults)?),
        apparmor,
        apparmor_profile,
        seccomp_profile_path: String::new(),
    })
}

fn is_privileged(container: &Container) -> bool {
    container.security_context.as_ref().and_then(|context| context.privileged) == Some(true)
}

fn int(value: i64) -> Int64Value {
    Int64Value { value }
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn masked_paths() -> Vec<String> {
    let throttles = (0..MAX_CPUS)
        .map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}"))
        .take_while(|cpu| Path::new(cpu).exists())
        .map(|cpu| cpu + "/thermal_throttle")
        .filter(|path| Path::new(path).exists());
    owned(MASKED_PATHS).into_iter().chain(throttles).collect()
}

fn selinux(options: &SELinuxOptions) -> SeLinuxOption {
    SeLinuxOption {
        user: options.user.clone(),
        role: options.role.clone(),
        r#type: options.type_.clone(),
        level: options.level.clone(),
    }
}

fn supplemental_groups(pod: &Pod, defaults: &Defaults<'_>) -> Vec<i64> {
    let of_pod = pod.spec.security_context.as_ref();
    let mut groups: Vec<i64> = of_pod.and_then(|all| all.fs_group).into_iter().collect();
    groups.extend(of_pod.iter().flat_map(|all| &all.supplemental_groups));
    groups.extend(&defaults.volume_groups);
    groups
}

fn groups_policy(pod: &Pod) -> SupplementalGroupsPolicy {
    let policy = pod.spec.security_context.as_ref().and_then(|all| all.supplemental_groups_policy.as_deref());
    if policy == Some("Strict") { SupplementalGroupsPolicy::Strict } else { SupplementalGroupsPolicy::Merge }
}

fn check_non_root(pod: &Pod, container: &Container, user: Option<i64>, image: &Ready) -> Result<(), SecurityError> {
    let of = || format!("(pod: {:?}, container: {})", text::pod(pod), container.name);
    match (user, image.uid, image.username.as_str()) {
        (Some(0), _, _) => Err(SecurityError::RunAsRoot(of())),
        (Some(_), _, _) => Ok(()),
        (None, _, name) if !name.is_empty() => Err(SecurityError::UserByName(name.to_owned(), of())),
        (None, Some(0) | None, _) => Err(SecurityError::ImageRunsAsRoot(of())),
        // The kernel's ids have 32 bits: what does not fit may come out as root, and the last one means "as before".
        (None, Some(uid), _) if u32::try_from(uid).is_ok_and(|uid| uid != u32::MAX) => Ok(()),
        (None, Some(uid), _) => Err(SecurityError::InvalidUser(uid, of())),
    }
}

fn profile(kind: ProfileType, localhost: &str) -> SecurityProfile {
    SecurityProfile { profile_type: kind.into(), localhost_ref: localhost.to_owned() }
}

fn seccomp(pod: &Pod, own: &SecurityContext, defaults: &Defaults<'_>) -> Result<SecurityProfile, SecurityError> {
    let of_pod = pod.spec.security_context.as_ref().and_then(|all| all.seccomp_profile.as_ref());
    let wanted: Option<&SeccompProfile> = own.seccomp_profile.as_ref().or(of_pod);
    let Some(wanted) = wanted else {
        let kind = if defaults.seccomp_default { ProfileType::RuntimeDefault } else { ProfileType::Unconfined };
        return Ok(profile(kind, ""));
    };
    match wanted.type_.as_str() {
        "RuntimeDefault" => Ok(profile(ProfileType::RuntimeDefault, "")),
        "Localhost" => {
            let name = wanted.localhost_profile.as_deref().filter(|name| !name.is_empty());
            let name = name.ok_or(SecurityError::NoProfile)?;
            // The API refuses others; what comes past it must not be a way to name any file of the host.
            let path = sys::fs::join_below(defaults.seccomp_root, Path::new(name));
            let path = path.ok_or_else(|| SecurityError::ProfileOutside(name.to_owned()))?;
            Ok(profile(ProfileType::Localhost, &path.to_string_lossy()))
        }
        _ => Ok(profile(ProfileType::Unconfined, "")),
    }
}

/// The profile in the new form and in the old one; both are sent.
fn apparmor(pod: &Pod, container: &Container, own: &SecurityContext) -> (Option<SecurityProfile>, String) {
    let of_pod = pod.spec.security_context.as_ref().and_then(|all| all.app_armor_profile.as_ref());
    let wanted: Option<&AppArmorProfile> = own.app_armor_profile.as_ref().or(of_pod);
    let annotation = pod.metadata.annotations.get(&format!("{APPARMOR_ANNOTATION}{}", container.name));
    let (kind, localhost) = match (wanted, annotation.map(String::as_str)) {
        (Some(wanted), _) => (wanted.type_.as_str(), wanted.localhost_profile.as_deref().unwrap_or_default()),
        (None, Some("runtime/default")) => ("RuntimeDefault", ""),
        (None, Some("unconfined")) => ("Unconfined", ""),
        (None, Some(other)) => match other.strip_prefix("localhost/") {
            Some(name) => ("Localhost", name),
            None => return (None, String::new()),
        },
        (None, None) => return (None, String::new()),
    };
    match kind {
        "RuntimeDefault" => (Some(profile(ProfileType::RuntimeDefault, "")), "runtime/default".to_owned()),
        "Localhost" => (Some(profile(ProfileType::Localhost, localhost)), format!("localhost/{localhost}")),
        _ => (Some(profile(ProfileType::Unconfined, "")), "unconfined".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PodSecurityContext;

    use super::*;

    fn defaults() -> Defaults<'static> {
        Defaults { seccomp_default: false, seccomp_root: Path::new("/root/seccomp"), volume_groups: vec![7] }
    }

    #[test]
    fn root_is_refused_where_it_must_be() {
        for (user, image_uid, name, expected) in [
            (Some(0), None, "", "container's runAsUser breaks non-root policy"),
            (Some(5), Some(0), "", ""),
            (None, Some(0), "", "image will run as root"),
            (None, None, "", "image will run as root"),
            (None, None, "www", "non-numeric user (www)"),
            (None, Some(8), "", ""),
        ] {
            let mut pod = Pod::default();
            let context =
                PodSecurityContext { run_as_user: user, run_as_non_root: Some(true), ..PodSecurityContext::default() };
            pod.spec.security_context = Some(context);
            let image = Ready { reference: String::new(), uid: image_uid, username: name.into() };
            let outcome = of_container(&pod, &Container::default(), &image, None, &defaults());
            match expected {
                "" => assert!(outcome.is_ok()),
                text => assert!(outcome.unwrap_err().to_string().contains(text), "{text}"),
            }
        }
    }

    #[test]
    fn a_containers_fields_win_over_the_pods() {
        let mut pod = Pod::default();
        pod.spec.security_context = Some(PodSecurityContext {
            run_as_user: Some(1),
            fs_group: Some(9),
            supplemental_groups: vec![3],
            seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
            ..PodSecurityContext::default()
        });
        let own = SecurityContext {
            run_as_user: Some(2),
            allow_privilege_escalation: Some(false),
            seccomp_profile: Some(SeccompProfile {
                type_: "Localhost".into(),
                localhost_profile: Some("a.json".into()),
            }),
            proc_mount: Some("Unmasked".into()),
            ..SecurityContext::default()
        };
        let container = Container { security_context: Some(own), ..Container::default() };
        let out = of_container(&pod, &container, &Ready::default(), None, &defaults()).unwrap();
        assert_eq!(out.run_as_user, Some(int(2)));
        assert_eq!(out.supplemental_groups, [9, 3, 7]);
        assert!(out.no_new_privs && out.masked_paths.is_empty());
        assert_eq!(out.seccomp.unwrap().localhost_ref, "/root/seccomp/a.json");
        let plain = of_container(&pod, &Container::default(), &Ready::default(), None, &defaults()).unwrap();
        assert_eq!(plain.seccomp.unwrap().profile_type(), ProfileType::RuntimeDefault);
        assert!(plain.masked_paths.contains(&"/proc/kcore".to_owned()));
    }
}

#[cfg(test)]
#[path = "security_hostile_tests.rs"]
mod hostile_tests;
