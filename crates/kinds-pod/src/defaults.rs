//! Defaults of a pod's spec that depend on other fields. Those that stand alone are in the field tables.

use api_types::core_v1::{Container, Pod, PodIP, PodSpec, PodStatus, ResourceList, VolumeSource};
use component_helpers::pod_requests::{aggregate, is_pod_level};

use super::image_reference;

/// Sets what pods and templates share: pull policies, and an empty directory for volumes without a source.
pub fn set_defaults(spec: &mut PodSpec) {
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
    sync_account(spec);
}

/// The account has two names in a spec, which always say the same; the older one is read only where it is alone.
pub fn sync_account(spec: &mut PodSpec) {
    if spec.service_account_name.is_empty() {
        spec.service_account_name.clone_from(&spec.service_account);
    }
    spec.service_account.clone_from(&spec.service_account_name);
}

/// Sets what holds for pods only, after [`set_defaults`].
pub fn set_pod_defaults(pod: &mut Pod) {
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
    set_pod_level(spec);
    sync_addresses(&mut pod.status);
}

/// The first of the addresses is also the only one of older clients, whose word goes first.
fn sync_addresses(status: &mut PodStatus) {
    let first = status.pod_ips.first().map(|one| one.ip.clone()).unwrap_or_default();
    if status.pod_ip.is_empty() {
        status.pod_ip = first;
    } else if status.pod_ip != first {
        status.pod_ips = vec![PodIP { ip: status.pod_ip.clone() }];
    }
}

/// What the pod as a whole asks for, from its containers and its limits, where it states anything at all (KEP-2837).
fn set_pod_level(spec: &mut PodSpec) {
    let Some(mut resources) = spec.resources.take() else { return };
    if !resources.requests.is_empty() || !resources.limits.is_empty() {
        // Huge pages cannot be overcommitted, so the limits of the containers are what the pod needs.
        let pages = aggregate(spec, |container| container.resources.limits.clone());
        for (name, amount) in pages.into_iter().filter(|(name, _)| name.starts_with("hugepages-")) {
            if !resources.requests.contains_key(&name) {
                resources.limits.entry(name).or_insert(amount);
            }
        }
    }
    if !resources.limits.is_empty() {
        let asked = aggregate(spec, |container| container.resources.requests.clone());
        for (name, amount) in asked.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
            resources.requests.entry(name).or_insert(amount);
        }
        for (name, limit) in resources.limits.iter().filter(|(name, _)| is_pod_level(name)) {
            resources.requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    spec.resources = Some(resources);
}

fn containers_mut(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    spec.init_containers.iter_mut().chain(&mut spec.containers)
}

/// Quantities are kept to the thousandth.
fn round_quantities(spec: &mut PodSpec) {
    for container in containers_mut(spec) {
        round_up([&mut container.resources.limits, &mut container.resources.requests]);
    }
    for container in &mut spec.ephemeral_containers {
        let resources = &mut container.ephemeral_container_common.resources;
        round_up([&mut resources.limits, &mut resources.requests]);
    }
    if let Some(resources) = &mut spec.resources {
        round_up([&mut resources.limits, &mut resources.requests]);
    }
    for volume in &mut spec.volumes {
        let claim = volume.volume_source.ephemeral.as_mut().and_then(|one| one.volume_claim_template.as_mut());
        if let Some(claim) = claim {
            round_up([&mut claim.spec.resources.limits, &mut claim.spec.resources.requests]);
        }
    }
    round_up([&mut spec.overhead]);
}

/// Rounds amounts up to the thousandth, which is the least that is kept of any.
pub fn round_up<'a>(lists: impl IntoIterator<Item = &'a mut ResourceList>) {
    for quantity in lists.into_iter().flat_map(ResourceList::values_mut) {
        quantity.round_up_to_milli();
    }
}

/// `Always` for the tag `latest`, said or implied; `IfNotPresent` for any other tag or a digest.
fn pull_policy(image: &str) -> &'static str {
    if image_reference::is_latest(image) { "Always" } else { "IfNotPresent" }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Volume;

    use super::*;

    fn list(pairs: &str) -> ResourceList {
        let pairs = pairs.split(' ').filter_map(|pair| pair.split_once('='));
        let quantity = |text| api_machinery::quantity::Quantity::parse(text).expect("a quantity");
        pairs.map(|(name, text)| (name.to_owned(), quantity(text))).collect()
    }

    #[test]
    fn amounts_of_the_pod_as_a_whole() {
        for (requests, limits, of_container, expected_requests, expected_limits) in [
            ("", "", "cpu=1", "", ""),
            ("", "cpu=4", "cpu=1", "cpu=1", "cpu=4"),
            ("", "cpu=4 memory=1Gi", "cpu=1", "cpu=1 memory=1Gi", "cpu=4 memory=1Gi"),
            ("cpu=2", "cpu=4", "cpu=1", "cpu=2", "cpu=4"),
            ("cpu=2", "", "memory=1Gi", "cpu=2", ""),
            ("cpu=2", "", "hugepages-2Mi=4Mi", "cpu=2 hugepages-2Mi=4Mi", "hugepages-2Mi=4Mi"),
        ] {
            let mut pod = Pod::default();
            let mut container = Container::default();
            container.resources.limits = list(of_container);
            pod.spec.containers = vec![container];
            let resources = pod.spec.resources.get_or_insert_default();
            (resources.requests, resources.limits) = (list(requests), list(limits));
            set_pod_defaults(&mut pod);
            let found = pod.spec.resources.unwrap_or_default();
            assert_eq!((found.requests, found.limits), (list(expected_requests), list(expected_limits)), "{requests}");
        }
    }

    #[test]
    fn accounts_have_two_names() {
        for (name, older, expected) in [("a", "", "a"), ("", "b", "b"), ("a", "b", "a"), ("", "", "")] {
            let mut spec = PodSpec::default();
            (spec.service_account_name, spec.service_account) = (name.into(), older.into());
            set_defaults(&mut spec);
            let found = (spec.service_account_name.as_str(), spec.service_account.as_str());
            assert_eq!(found, (expected, expected), "{name} {older}");
        }
    }

    #[test]
    fn the_first_address_is_the_only_one_of_old() {
        for (ip, ips, expected) in [
            ("", &[][..], ("", &[][..])),
            ("1.1.1.1", &[], ("1.1.1.1", &["1.1.1.1"])),
            ("", &["1.1.1.1", "fd00::1"], ("1.1.1.1", &["1.1.1.1", "fd00::1"])),
            ("1.1.1.1", &["1.1.1.1", "fd00::1"], ("1.1.1.1", &["1.1.1.1", "fd00::1"])),
            ("1.1.1.1", &["2.2.2.2", "fd00::1"], ("1.1.1.1", &["1.1.1.1"])),
        ] {
            let mut pod = Pod::default();
            pod.status.pod_ip = ip.into();
            pod.status.pod_ips = ips.iter().map(|ip| PodIP { ip: (*ip).into() }).collect();
            set_pod_defaults(&mut pod);
            let found: Vec<&str> = pod.status.pod_ips.iter().map(|one| one.ip.as_str()).collect();
            assert_eq!((pod.status.pod_ip.as_str(), found.as_slice()), expected, "{ip} {ips:?}");
        }
    }

    #[test]
    fn amounts_are_kept_to_the_thousandth() {
        let mut spec = PodSpec { overhead: list("cpu=100u"), ..PodSpec::default() };
        spec.resources.get_or_insert_default().limits = list("cpu=1001u");
        set_defaults(&mut spec);
        assert_eq!((spec.overhead, spec.resources.unwrap_or_default().limits), (list("cpu=1m"), list("cpu=2m")));
    }

    #[test]
    fn pull_policies() {
        for (image, expected) in [("busybox", "Always"), ("busybox:1.36", "IfNotPresent"), ("", "IfNotPresent")] {
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
