//! Rules of the operating system and of user namespaces.

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::os_name;
use api_types::core_v1::{PodSecurityContext, PodSpec, SecurityContext};
use feature_gates::shared::HOST_NETWORK_USERS;
use kinds_frame::field_rules as rules;
use kinds_frame::pod_containers::each_container;

use super::Around;

const NOT_WINDOWS: &str = "cannot be set for a windows pod";
const NOT_LINUX: &str = "windows options cannot be set for a linux pod";
const NO_HOST_USERS: &str = "when `hostUsers` is false";

/// A pod with its own users cannot share the host's other namespaces.
pub(super) fn validate_user_namespace(around: &Around<'_>, path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    if spec.host_users != Some(false) {
        return;
    }
    let shares_network = |spec: &PodSpec| spec.host_users == Some(false) && spec.host_network;
    if spec.host_network && !around.gates.enabled(HOST_NETWORK_USERS) && !around.stored(shares_network) {
        errors.push(path.child("hostNetwork").forbidden(NO_HOST_USERS));
    }
    for (field, shared) in [("HostPID", spec.host_pid), ("HostIPC", spec.host_ipc)] {
        if shared {
            errors.push(path.child(field).forbidden(NO_HOST_USERS));
        }
    }
    let has_devices = |spec: &PodSpec| {
        let containers = each_container(spec, &Path::nil());
        spec.host_users == Some(false) && containers.iter().any(|(_, container)| !container.volume_devices.is_empty())
    };
    if around.stored(has_devices) {
        return;
    }
    for (path, container) in each_container(spec, path) {
        if !container.volume_devices.is_empty() {
            errors.push(path.child("volumeDevices").forbidden(NO_HOST_USERS));
        }
    }
}

pub(super) fn validate_scheduling_group(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    let Some(group) = &spec.scheduling_group else { return };
    let path = path.child("schedulingGroup").child("podGroupName");
    match &group.pod_group_name {
        None => errors.push(path.invalid(BadValue::null(), "must specify one of: `podGroupName`")),
        Some(name) => errors.push_invalid(&path, name, names::dns1123_subdomain(name)),
    }
}

pub(super) fn validate_os(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    let Some(os) = &spec.os else { return };
    let at = path.child("os");
    match os.name.as_str() {
        "" => errors.push(at.child("name").required("")),
        "linux" => refuse_windows_options(spec, path, errors),
        "windows" => refuse_linux_fields(spec, path, errors),
        other => rules::one_of(&at, other, os_name::ALL, errors),
    }
}

fn refuse_windows_options(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    if spec.security_context.as_ref().is_some_and(|context| context.windows_options.is_some()) {
        errors.push(path.child("securityContext").child("windowsOptions").forbidden(NOT_LINUX));
    }
    for (path, container) in each_container(spec, path) {
        if container.security_context.as_ref().is_some_and(|context| context.windows_options.is_some()) {
            errors.push(path.child("securityContext").child("windowsOptions").forbidden(NOT_LINUX));
        }
    }
}

fn refuse_linux_fields(spec: &PodSpec, path: &Path, errors: &mut ErrorList) {
    let none = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&none);
    let at = path.child("securityContext");
    for (path, set) in [
        (at.child("appArmorProfile"), context.app_armor_profile.is_some()),
        (at.child("seLinuxOptions"), context.se_linux_options.is_some()),
        (path.child("hostUsers"), spec.host_users.is_some()),
        (path.child("hostPID"), spec.host_pid),
        (path.child("hostIPC"), spec.host_ipc),
        (at.child("seccompProfile"), context.seccomp_profile.is_some()),
        (at.child("fsGroup"), context.fs_group.is_some()),
        (at.child("fsGroupChangePolicy"), context.fs_group_change_policy.is_some()),
        (at.child("sysctls"), !context.sysctls.is_empty()),
        (path.child("shareProcessNamespace"), spec.share_process_namespace.is_some()),
        (at.child("runAsUser"), context.run_as_user.is_some()),
        (at.child("runAsGroup"), context.run_as_group.is_some()),
        (at.child("supplementalGroups"), !context.supplemental_groups.is_empty()),
        (at.child("supplementalGroupsPolicy"), context.supplemental_groups_policy.is_some()),
        (at.child("seLinuxChangePolicy"), context.se_linux_change_policy.is_some()),
    ] {
        if set {
            errors.push(path.forbidden(NOT_WINDOWS));
        }
    }
    for (path, container) in each_container(spec, path) {
        if let Some(context) = &container.security_context {
            refuse_linux_context(context, &path.child("securityContext"), errors);
        }
    }
}

fn refuse_linux_context(context: &SecurityContext, path: &Path, errors: &mut ErrorList) {
    for (field, set) in [
        ("appArmorProfile", context.app_armor_profile.is_some()),
        ("seLinuxOptions", context.se_linux_options.is_some()),
        ("seccompProfile", context.seccomp_profile.is_some()),
        ("capabilities", context.capabilities.is_some()),
        ("readOnlyRootFilesystem", context.read_only_root_filesystem.is_some()),
        ("privileged", context.privileged.is_some()),
        ("allowPrivilegeEscalation", context.allow_privilege_escalation.is_some()),
        ("procMount", context.proc_mount.is_some()),
        ("runAsUser", context.run_as_user.is_some()),
        ("runAsGroup", context.run_as_group.is_some()),
    ] {
        if set {
            errors.push(path.child(field).forbidden(NOT_WINDOWS));
        }
    }
}
