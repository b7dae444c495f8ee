//! Texts for clients whose pods or templates are accepted and yet hold something without effect, or with one they may
//! not have meant.

mod containers;
mod scheduling;
mod volumes;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use api_machinery::field_path::Path;
use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Container, PodSpec};
use kinds_frame::address_warnings;
use kinds_frame::pod_containers::each_container;

use super::validation::{APPARMOR, Form, SECCOMP_CONTAINER, SECCOMP_POD};

pub(crate) use containers::fractional_bytes;
pub use scheduling::of_term;

/// So many are enough of what is told of pairs: who asks is told a few thousand characters of warnings.
const ENOUGH: usize = 1000;
/// The resources that are counted in bytes and may be asked for by containers.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// What a node label's key is told that has gone out of use.
pub fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => "deprecated since v1.22; use Taints and Tolerations instead",
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

/// The warnings of a pod.
pub fn of_pod(meta: &ObjectMeta, spec: &PodSpec) -> Vec<String> {
    all(Form::Pod, &Path::nil(), meta, spec)
}

/// The warnings of a template at its path.
pub fn of(path: &Path, meta: &ObjectMeta, spec: &PodSpec) -> Vec<String> {
    all(Form::Template, path, meta, spec)
}

fn all(form: Form, path: &Path, meta: &ObjectMeta, spec: &PodSpec) -> Vec<String> {
    let mut texts = Vec::new();
    let at = path.child("spec");
    scheduling::of(&at, spec, &mut texts);
    let annotations = path.child("metadata").child("annotations");
    for (key, text) in ANNOTATIONS.iter().filter(|(key, _)| meta.annotations.contains_key(*key)) {
        texts.push(format!("{}: {text}", annotations.key(key)));
    }
    volumes::of(&at, spec, &mut texts);
    references(&at, spec, &mut texts);
    fractional_bytes(&at.child("overhead"), &spec.overhead, &BYTES, &mut texts);
    let containers = each_container(spec, &at);
    of_profiles(&annotations, &meta.annotations, spec, (form, &containers), &mut texts);
    let mut ports = containers::Ports::default();
    for (path, container) in &containers {
        let resources = path.child("resources");
        fractional_bytes(&resources.child("limits"), &container.resources.limits, &BYTES, &mut texts);
        fractional_bytes(&resources.child("requests"), &container.resources.requests, &BYTES, &mut texts);
        containers::repeated_variables(path, container, &mut texts);
        ports.look(path, container, &mut texts);
    }
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        texts.push(format!("{}: {text}", at.child("terminationGracePeriodSeconds")));
    }
    of_addresses(&at, spec, &mut texts);
    texts
}

/// Profiles that are named by annotations, which the fields have replaced.
fn of_profiles(
    path: &Path,
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    (form, containers): (Form, &[(Path, Cow<'_, Container>)]),
    texts: &mut Vec<String>,
) {
    if annotations.is_empty() {
        return;
    }
    let mut useless = |key: &str, has_field: bool| {
        if !has_field && annotations.contains_key(key) {
            let text = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
            texts.push(format!("{}: {text}", path.key(key)));
        }
    };
    let context = spec.security_context.as_ref();
    useless(SECCOMP_POD, context.is_some_and(|context| context.seccomp_profile.is_some()));
    for (_, container) in containers {
        let context = container.security_context.as_ref();
        let has_field = context.is_some_and(|context| context.seccomp_profile.is_some());
        useless(&format!("{SECCOMP_CONTAINER}{}", container.name), has_field);
    }
    let has_field = |container: &Container| {
        container.security_context.as_ref().is_some_and(|context| context.app_armor_profile.is_some())
    };
    for (_, container) in containers {
        let key = format!("{APPARMOR}{}", container.name);
        // The field of a pod's container may have come from the annotation; that of a template's has not.
        if !annotations.contains_key(&key) || (form == Form::Template && has_field(container)) {
            continue;
        }
        let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        texts.push(format!("{}: {text}", path.key(&key)));
    }
}

fn of_addresses(path: &Path, spec: &PodSpec, texts: &mut Vec<String>) {
    if let Some(config) = &spec.dns_config {
        texts.extend(address_warnings::of_ips(&path.child("dnsConfig").child("nameservers"), &config.nameservers));
    }
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        texts.extend(address_warnings::of_ip(&path.child("hostAliases").index(index).child("ip"), &alias.ip));
    }
}

fn references(path: &Path, spec: &PodSpec, texts: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for (index, alias) in spec.host_aliases.iter().enumerate() {
        if !seen.insert(alias.ip.as_str()) {
            let at = path.child("hostAliases").index(index).child("ip");
            texts.push(format!("{at}: duplicate ip \"{}\"", alias.ip));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        let at = path.child("imagePullSecrets").index(index).child("name");
        if secret.name.is_empty() {
            texts.push(format!("{at}: invalid empty name \"\""));
        } else if !seen.insert(secret.name.as_str()) {
            texts.push(format!("{at}: duplicate name \"{}\"", secret.name));
        }
    }
}
