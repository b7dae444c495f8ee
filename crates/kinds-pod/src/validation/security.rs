//! Rules of security contexts.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::{
    app_armor_profile_type, pod_fs_group_change_policy, pod_se_linux_change_policy as policy, proc_mount_type,
    seccomp_profile_type, supplemental_groups_policy,
};
use api_types::core_v1::{AppArmorProfile, Container, PodSecurityContext, PodSpec, SeccompProfile, SecurityContext};
use feature_gates::shared::SELINUX_MOUNT;
use kinds_frame::field_rules as rules;
use kinds_frame::internal_json;

use super::annotations::profile_value;
use super::{Around, windows};

/// The longest name of a profile on the node.
const MAX_PROFILE_BYTES: usize = 4095;

pub(super) fn validate_pod(around: &Around<'_>, spec_path: &Path, errors: &mut ErrorList) {
    let spec = around.spec;
    let none = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&none);
    let path = spec_path.child("securityContext");
    rules::id(&path.child("fsGroup"), context.fs_group, errors);
    rules::id(&path.child("runAsUser"), context.run_as_user, errors);
    rules::id(&path.child("runAsGroup"), context.run_as_group, errors);
    for (index, group) in context.supplemental_groups.iter().enumerate() {
        rules::id(&path.child("supplementalGroups").index(index), Some(*group), errors);
    }
    if spec.share_process_namespace == Some(true) && spec.host_pid {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(path.child("shareProcessNamespace").invalid(true, detail));
    }
    validate_sysctls(around, context, &path.child("sysctls"), errors);
    let changes = context.fs_group_change_policy.as_ref();
    rules::one_of_if_set(&path.child("fsGroupChangePolicy"), changes, pod_fs_group_change_policy::ALL, errors);
    validate_seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    if let Some(options) = &context.windows_options {
        windows::validate_options(options, &path.child("windowsOptions"), errors);
    }
    validate_apparmor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
    let groups = context.supplemental_groups_policy.as_ref();
    rules::one_of_if_set(&path.child("supplementalGroupsPolicy"), groups, supplemental_groups_policy::ALL, errors);
    validate_selinux_policy(around, context, &path.child("seLinuxChangePolicy"), errors);
}

fn validate_selinux_policy(around: &Around<'_>, context: &PodSecurityContext, path: &Path, errors: &mut ErrorList) {
    let has_policy = |spec: &PodSpec| {
        let context = spec.security_context.as_ref();
        context.is_some_and(|context| context.se_linux_change_policy.is_some())
    };
    // The other value is behind the feature; who had any policy before may still have either.
    let all = around.gates.enabled(SELINUX_MOUNT) || around.stored(has_policy);
    let known = if all { policy::ALL } else { &[policy::RECURSIVE] };
    rules::one_of_if_set(path, context.se_linux_change_policy.as_ref(), known, errors);
}

fn is_ipc(name: &str) -> bool {
    const KERNEL: [&str; 10] = [
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.shm",
        "kernel.msg",
    ];
    KERNEL.contains(&name) || name.starts_with("fs.mqueue.")
}

/// Why a kernel parameter would be the host's, if it would.
fn host_namespace(spec: &PodSpec, name: &str) -> Option<&'static str> {
    let name = name.replace('/', ".");
    if spec.host_network && name.starts_with("net.") {
        return Some("may not be specified when 'hostNetwork' is true");
    }
    (spec.host_ipc && is_ipc(&name)).then_some("may not be specified when 'hostIPC' is true")
}

fn validate_sysctls(around: &Around<'_>, context: &PodSecurityContext, path: &Path, errors: &mut ErrorList) {
    let breaks = |spec: &PodSpec| {
        let context = spec.security_context.as_ref();
        context.is_some_and(|context| context.sysctls.iter().any(|sysctl| host_namespace(spec, &sysctl.name).is_some()))
    };
    let checked = !around.stored(breaks);
    let mut seen = BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().enumerate() {
        let at = path.index(index).child("name");
        let name = sysctl.name.as_str();
        if name.is_empty() {
            errors.push(at.required(""));
        } else {
            let problems = names::sysctl_name(name);
            let good = problems.is_empty();
            errors.push_invalid(&at, name, problems);
            if good && !seen.insert(name) {
                errors.push(at.duplicate(name));
            }
        }
        if checked && let Some(detail) = host_namespace(around.spec, name) {
            errors.push(at.invalid(name, detail));
        }
    }
}

fn validate_seccomp(profile: Option<&SeccompProfile>, path: &Path, errors: &mut ErrorList) {
    let Some(profile) = profile else { return };
    let at = path.child("type");
    if profile.type_.is_empty() {
        errors.push(at.required("type is required when seccompProfile is set"));
    } else {
        rules::one_of(&at, &profile.type_, seccomp_profile_type::ALL, errors);
    }
    let at = path.child("localhostProfile");
    match (profile.type_.as_str(), &profile.localhost_profile) {
        ("Localhost", None) => errors.push(at.required("must be set when seccomp type is Localhost")),
        ("Localhost", Some(file)) => rules::relative_path(&at, file, errors),
        (_, Some(_)) => {
            let value = profile_value(&profile.type_, profile.localhost_profile.as_ref());
            errors.push(at.invalid(value, "can only be set when seccomp type is Localhost"));
        }
        (_, None) => {}
    }
}

fn validate_apparmor(profile: Option<&AppArmorProfile>, path: &Path, errors: &mut ErrorList) {
    let Some(profile) = profile else { return };
    let at = path.child("type");
    if profile.type_.is_empty() {
        errors.push(at.required("type is required when appArmorProfile is set"));
    } else {
        rules::one_of(&at, &profile.type_, app_armor_profile_type::ALL, errors);
    }
    let at = path.child("localhostProfile");
    let file = profile.localhost_profile.as_deref().unwrap_or_default();
    if profile.type_ != "Localhost" {
        // Of an unknown type nobody knows what goes with it.
        if profile.localhost_profile.is_some() && app_armor_profile_type::ALL.contains(&profile.type_.as_str()) {
            errors.push(at.invalid(BadValue::from(file), "can only be set when AppArmor type is Localhost"));
        }
        return;
    }
    if file.is_empty() {
        errors.push(at.required("must be set when AppArmor type is Localhost"));
        return;
    }
    if file.trim() != file {
        errors.push(at.invalid(file, "must not be padded with whitespace"));
    }
    if file.len() > MAX_PROFILE_BYTES {
        errors.push(at.too_long(MAX_PROFILE_BYTES));
    }
}

pub(super) fn validate_container(spec: &PodSpec, container: &Container, path: &Path, errors: &mut ErrorList) {
    let Some(context) = &container.security_context else { return };
    rules::id(&path.child("runAsUser"), context.run_as_user, errors);
    rules::id(&path.child("runAsGroup"), context.run_as_group, errors);
    let at = path.child("procMount");
    rules::one_of_if_set(&at, context.proc_mount.as_ref(), proc_mount_type::ALL, errors);
    if context.proc_mount.as_deref() == Some("Unmasked") && spec.host_users != Some(false) {
        errors.push(at.invalid(BadValue::named("Unmasked"), "`hostUsers` must be false to use `Unmasked`"));
    }
    validate_seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile"), errors);
    validate_escalation(context, path, errors);
    if let Some(options) = &context.windows_options {
        windows::validate_options(options, &path.child("windowsOptions"), errors);
    }
    validate_apparmor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile"), errors);
}

fn validate_escalation(context: &SecurityContext, path: &Path, errors: &mut ErrorList) {
    if context.allow_privilege_escalation != Some(false) {
        return;
    }
    if context.privileged == Some(true) {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(path.invalid(internal_json::bad_value(context), detail));
    }
    let added = context.capabilities.as_ref().map(|capabilities| capabilities.add.as_slice()).unwrap_or_default();
    if added.iter().any(|name| name == "CAP_SYS_ADMIN") {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(path.invalid(internal_json::bad_value(context), detail));
    }
}
