//! The checks that level restricted adds, by the order of their ids.

use std::collections::BTreeSet;

use api_machinery::value::struct_to_map;

use super::Violation;
use super::baseline::{forbidden_capabilities, forbidden_proc_mounts, forbidden_seccomp};
use super::subject::{Subject, containers, plural, quoted, setters, values, violation};

const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Everything that is wrong.
pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let minor = subject.minor;
    let linux = !subject.is_windows();
    [
        (minor >= 8 && linux).then(|| escalation(subject)).flatten(),
        (minor >= 22 && linux).then(|| capabilities(subject)).flatten(),
        (minor >= 35).then(|| forbidden_proc_mounts(subject)).flatten(),
        volumes(subject),
        (!subject.has_own_users()).then(|| non_root(subject)).flatten(),
        (minor >= 23 && !subject.has_own_users()).then(|| user(subject)).flatten(),
        (minor >= 19 && linux).then(|| seccomp(subject)).flatten(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn escalation(subject: &Subject<'_>) -> Option<Violation> {
    let names = subject.names(|own| own.security.is_none_or(|own| own.allow_privilege_escalation != Some(false)));
    let detail = || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    (!names.is_empty()).then(|| violation("allowPrivilegeEscalation != false", detail()))
}

fn capabilities(subject: &Subject<'_>) -> Option<Violation> {
    let keeps = subject.names(|own| {
        let dropped = own.security.and_then(|own| own.capabilities.as_ref()).map(|own| own.drop.as_slice());
        !dropped.unwrap_or_default().iter().any(|own| own == "ALL")
    });
    let (names, added) = forbidden_capabilities(subject, &["NET_BIND_SERVICE"]);
    let mut parts = Vec::new();
    if !keeps.is_empty() {
        parts.push(format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&keeps)));
    }
    if !names.is_empty() {
        let (who, what) = (containers(&names), values(&added));
        parts.push(format!("{who} must not include {what} in securityContext.capabilities.add"));
    }
    (!parts.is_empty()).then(|| violation("unrestricted capabilities", parts.join("; ")))
}

fn volumes(subject: &Subject<'_>) -> Option<Violation> {
    let (mut names, mut kinds) = (Vec::new(), BTreeSet::new());
    for volume in &subject.spec.volumes {
        let source = struct_to_map(&volume.volume_source);
        let kind = source.keys().next().map_or("unknown", String::as_str);
        if !VOLUMES.contains(&kind) {
            names.push(volume.name.as_str());
            kinds.insert(kind.to_owned());
        }
    }
    let detail = || {
        let noun = plural(names.len(), "volume", "volumes");
        let verb = plural(names.len(), "uses", "use");
        let types = plural(kinds.len(), "type", "types");
        format!("{noun} {} {verb} restricted volume {types} {}", quoted(&names), values(&kinds))
    };
    (!names.is_empty()).then(|| violation("restricted volume types", detail()))
}

fn non_root(subject: &Subject<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    let of_pod = subject.security().and_then(|own| own.run_as_non_root);
    let own = |own: &super::subject::Container<'_>| own.security.and_then(|own| own.run_as_non_root);
    let explicit = subject.names(|container| own(container) == Some(false));
    if of_pod == Some(false) || !explicit.is_empty() {
        let who = setters(of_pod == Some(false), &explicit);
        return Some(violation(REASON, format!("{who} must not set securityContext.runAsNonRoot=false")));
    }
    let silent = subject.names(|container| own(container).is_none() && of_pod != Some(true));
    let detail = || format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    (!silent.is_empty()).then(|| violation(REASON, detail()))
}

fn user(subject: &Subject<'_>) -> Option<Violation> {
    let of_pod = subject.security().is_some_and(|own| own.run_as_user == Some(0));
    let names = subject.names(|own| own.security.is_some_and(|own| own.run_as_user == Some(0)));
    let detail = || format!("{} must not set runAsUser=0", setters(of_pod, &names));
    (of_pod || !names.is_empty()).then(|| violation("runAsUser=0", detail()))
}

fn seccomp(subject: &Subject<'_>) -> Option<Violation> {
    if let Some(found) = forbidden_seccomp(subject) {
        return Some(found);
    }
    if subject.security().is_some_and(|own| own.seccomp_profile.is_some()) {
        return None;
    }
    let silent = subject.names(|own| own.security.is_none_or(|own| own.seccomp_profile.is_none()));
    let detail = || {
        let who = containers(&silent);
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"")
    };
    (!silent.is_empty()).then(|| violation("seccompProfile", detail()))
}
