//! Defaults of a pod's spec that depend on other fields. Those that stand alone are in the field tables.

use api_types::core_v1::{Container, Pod, PodSpec, VolumeSource};

/// Sets what pods and templates share: pull policies, and an empty directory for volumes without a source.
pub(crate) fn set_defaults(spec: &mut PodSpec) {
    for volume in &mut spec.volumes {
        if volume.volume_source == VolumeSource::default() {
            volume.volume_source.empty_dir = Some(Default::default());
        }
        if let Some(image) = &mut volume.volume_source.image
            && image.pull_policy.is_empty()
        {
            image.pull_policy = pull_policy(&image.reference).to_owned();
        }
    }
    for container in containers_mut(spec) {
        if container.image_pull_policy.is_empty() {
            container.image_pull_policy = pull_policy(&container.image).to_owned();
        }
    }
    for container in &mut spec.ephemeral_containers {
        let common = &mut container.ephemeral_container_common;
        if common.image_pull_policy.is_empty() {
            common.image_pull_policy = pull_policy(&common.image).to_owned();
        }
    }
    round_quantities(spec);
}

/// Sets what holds for pods only, after [`set_defaults`].
pub(crate) fn set_pod_defaults(pod: &mut Pod) {
    let spec = &mut pod.spec;
    spec.enable_service_links.get_or_insert(true);
    let host_network = spec.host_network;
    for container in containers_mut(spec) {
        let resources = &mut container.resources;
        for (name, limit) in &resources.limits {
            resources.requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
        for port in container.ports.iter_mut().filter(|port| host_network && port.host_port == 0) {
            port.host_port = port.container_port;
        }
    }
    if spec.termination_grace_period_seconds.is_some_and(|seconds| seconds < 0) {
        spec.termination_grace_period_seconds = Some(1);
    }
}

fn containers_mut(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    spec.init_containers.iter_mut().chain(&mut spec.containers)
}

/// Quantities are kept to the thousandth.
fn round_quantities(spec: &mut PodSpec) {
    for container in containers_mut(spec) {
        let resources = &mut container.resources;
        for quantity in resources.limits.values_mut().chain(resources.requests.values_mut()) {
            quantity.round_up_to_milli();
        }
    }
    for quantity in spec.overhead.values_mut() {
        quantity.round_up_to_milli();
    }
}

/// `Always` for the tag `latest`, said or implied; `IfNotPresent` for any other tag or a digest.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or(image);
    match (name.contains('@'), name.rsplit_once(':')) {
        (true, _) => "IfNotPresent",
        (false, None) if !image.is_empty() => "Always",
        (false, Some((_, "latest"))) => "Always",
        _ => "IfNotPresent",
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Volume;

    use super::*;

    #[test]
    fn pull_policies() {
        for (image, expected) in [
            ("busybox", "Always"),
            ("busybox:latest", "Always"),
            ("busybox:1.36", "IfNotPresent"),
            ("registry:5000/busybox", "Always"),
            ("busybox@sha256:abc", "IfNotPresent"),
            ("busybox:latest@sha256:abc", "IfNotPresent"),
            ("", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }

    #[test]
    fn volumes_without_a_source_are_empty_directories() {
        let mut spec =
            PodSpec { volumes: vec![Volume { name: "v".into(), ..Volume::default() }], ..PodSpec::default() };
        set_defaults(&mut spec);
        assert!(spec.volumes[0].volume_source.empty_dir.is_some());
    }
}
