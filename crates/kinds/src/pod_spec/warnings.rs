//! Texts for clients whose pods or templates are accepted and yet hold something without effect, or with one they may
//! not have meant.

use std::collections::{BTreeMap, BTreeSet};

use api_machinery::field_path::Path;
use api_machinery::meta::ObjectMeta;
use api_types::core_v1::{Container, PodSpec, VolumeSource};

use super::validation::each_container;

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];
const APPARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What a node label's key is told that has gone out of use.
pub(crate) fn deprecated_label(key: &str) -> Option<&'static str> {
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

/// The warnings of a pod, with an empty path, or of a template at its path.
pub(crate) fn of(path: &Path, meta: &ObjectMeta, spec: &PodSpec) -> Vec<String> {
    let mut texts = Vec::new();
    let spec_path = path.child("spec");
    scheduling(&spec_path, spec, &mut texts);
    let annotations = path.child("metadata").child("annotations");
    for (key, text) in ANNOTATIONS.iter().filter(|(key, _)| meta.annotations.contains_key(*key)) {
        texts.push(format!("{}: {text}", annotations.key(key)));
    }
    for (index, volume) in spec.volumes.iter().enumerate() {
        let at = spec_path.child("volumes").index(index);
        texts.extend(
            removed_sources(&volume.volume_source)
                .into_iter()
                .map(|(field, text)| format!("{}: {text}", at.child(field))),
        );
    }
    references(&spec_path, spec, &mut texts);
    for (path, container) in each_container(spec, &spec_path) {
        repeated_variables(&path, &container, &mut texts);
        fractional_bytes(&path, &container, &mut texts);
    }
    for key in meta.annotations.keys().filter(|key| key.starts_with(APPARMOR)) {
        let text = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        texts.push(format!("{}: {text}", annotations.key(key)));
    }
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        let text = "must be >= 0; negative values are invalid and will be treated as 1";
        texts.push(format!("{}: {text}", spec_path.child("terminationGracePeriodSeconds")));
    }
    texts
}

fn scheduling(path: &Path, spec: &PodSpec, texts: &mut Vec<String>) {
    for key in spec.node_selector.keys() {
        if let Some(text) = deprecated_label(key) {
            texts.push(format!("{}: {text}", path.child("nodeSelector").key(key)));
        }
    }
    for (index, constraint) in spec.topology_spread_constraints.iter().enumerate() {
        let at = path.child("topologySpreadConstraints").index(index);
        let key = &constraint.topology_key;
        if let Some(text) = deprecated_label(key) {
            texts.push(format!("{}: {key} is {text}", at.child("topologyKey")));
        }
        if constraint.label_selector.is_none() {
            texts.push(format!("{}: {NULL_SELECTOR}", at.child("labelSelector")));
        }
    }
}

/// Sources that no node can serve any more.
fn removed_sources(source: &VolumeSource) -> Vec<(&'static str, &'static str)> {
    [
        (
            "photonPersistentDisk",
            source.photon_persistent_disk.is_some(),
            "deprecated in v1.11, non-functional in v1.16+",
        ),
        ("gitRepo", source.git_repo.is_some(), "deprecated in v1.11, and disabled by default in v1.33+"),
        ("scaleIO", source.scale_io.is_some(), "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", source.flocker.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("storageOS", source.storageos.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", source.quobyte.is_some(), "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", source.glusterfs.is_some(), "deprecated in v1.25, non-functional in v1.26+"),
        ("cephfs", source.cephfs.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", source.rbd.is_some(), "deprecated in v1.28, non-functional in v1.31+"),
    ]
    .into_iter()
    .filter(|(_, set, _)| *set)
    .map(|(field, _, text)| (field, text))
    .collect()
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

/// A later variable of the same name hides an earlier one, unless it adds to it.
fn repeated_variables(path: &Path, container: &Container, texts: &mut Vec<String>) {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (index, variable) in container.env.iter().enumerate() {
        let before = seen.insert(&variable.name, &variable.value);
        let itself = format!("$({})", variable.name);
        let adds = variable.value.contains(&itself) && variable.value != itself;
        if before.is_some() && !adds {
            let at = path.child("env").index(index);
            let text = "which may be dropped when using apply";
            texts.push(format!("{at}: hides previous definition of \"{}\", {text}", variable.name));
        }
    }
}

fn fractional_bytes(path: &Path, container: &Container, texts: &mut Vec<String>) {
    let resources = &container.resources;
    for (field, list) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        for (name, quantity) in list {
            if matches!(name.as_str(), "memory" | "ephemeral-storage") && !quantity.is_integer() {
                let at = path.child("resources").child(field).key(name);
                texts.push(format!("{at}: fractional byte value \"{quantity}\" is invalid, must be an integer"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{EnvVar, LocalObjectReference};

    use super::*;

    #[test]
    fn warns_of_what_has_no_effect() {
        let variable = |value: &str| EnvVar { name: "A".into(), value: value.into(), value_from: None };
        let env = vec![variable("1"), variable("$(A)2"), variable("3")];
        let mut spec = PodSpec { containers: vec![Container { env, ..Container::default() }], ..PodSpec::default() };
        spec.node_selector.insert("beta.kubernetes.io/os".into(), "linux".into());
        spec.image_pull_secrets = vec![LocalObjectReference::default()];
        let texts = of(&Path::new("template"), &ObjectMeta::default(), &spec);
        assert_eq!(
            texts,
            [
                "template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" \
                 instead",
                "template.spec.imagePullSecrets[0].name: invalid empty name \"\"",
                "template.spec.containers[0].env[2]: hides previous definition of \"A\", which may be dropped when \
                 using apply",
            ]
        );
        assert!(of(&Path::nil(), &ObjectMeta::default(), &spec)[0].starts_with("spec.nodeSelector["));
    }
}
