//! Rules of a pod's status, which kubelets, the scheduler and controllers write.

use std::collections::BTreeSet;

use api_machinery::field_path::{BadValue, ErrorList, Path};
use api_machinery::names;
use api_types::core_v1::constants::resource_health_status;
use api_types::core_v1::{
    Container, ContainerRestartRule, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus, ResourceStatus,
};
use feature_gates::Gates;
use feature_gates::shared::CLEAR_NOMINATION;

use crate::address_warnings;
use crate::addresses;
use crate::field_rules::{self as rules, IMMUTABLE};
use crate::gates::RESTART_ALL_CONTAINERS;
use crate::pod_spec::{node_allocatable, validation as pod_spec};

const NOT_NEGATIVE: &str = "must be a non-negative integer";
const MAX_MESSAGE_BYTES: usize = 1024;
const MAX_IMAGE_REF: usize = 256;

/// Keeps what a writer of the status did not say: the class, and generations it has not seen.
pub(super) fn keep_unsaid(status: &mut PodStatus, old: &PodStatus) {
    if status.qos_class.is_empty() {
        status.qos_class.clone_from(&old.qos_class);
    }
    if status.observed_generation == 0 {
        status.observed_generation = old.observed_generation;
    }
    let mut seen: Vec<String> = Vec::new();
    for condition in &mut status.conditions {
        let nth = seen.iter().filter(|type_| **type_ == condition.type_).count();
        seen.push(condition.type_.clone());
        if condition.observed_generation == 0 {
            let same = |stored: &&PodCondition| stored.type_ == condition.type_;
            let stored = old.conditions.iter().filter(same).nth(nth);
            condition.observed_generation = stored.map_or(0, |stored| stored.observed_generation);
        }
    }
}

/// Whether a status tells of the images that are mounted as volumes.
pub(super) fn has_image_volumes(status: &PodStatus) -> bool {
    let lists = [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    let mut mounts = lists.into_iter().flatten().flat_map(|one| &one.volume_mounts);
    mounts.any(|mount| mount.volume_status.is_some())
}

/// Tells nothing of them.
pub(super) fn drop_image_volumes(status: &mut PodStatus) {
    each_status(status, |one| one.volume_mounts.iter_mut().for_each(|mount| mount.volume_status = None));
}

/// Whether a status tells of the health of devices.
pub(super) fn tells_health(status: &PodStatus) -> bool {
    let lists = [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    lists.into_iter().flatten().any(|one| !one.allocated_resources_status.is_empty())
}

/// Tells nothing of it.
pub(super) fn drop_health(status: &mut PodStatus) {
    each_status(status, |one| one.allocated_resources_status.clear());
}

/// Whether a status says in words what is wrong with a device.
pub(super) fn has_health_messages(status: &PodStatus) -> bool {
    let lists = [&status.container_statuses, &status.init_container_statuses, &status.ephemeral_container_statuses];
    let mut devices = lists.into_iter().flatten().flat_map(|one| &one.allocated_resources_status);
    devices.any(|own| own.resources.iter().any(|device| device.message.is_some()))
}

/// Says nothing of it.
pub(super) fn drop_health_messages(status: &mut PodStatus) {
    each_status(status, |one| {
        one.allocated_resources_status.iter_mut().flat_map(|own| &mut own.resources).for_each(|own| own.message = None);
    });
}

fn each_status(status: &mut PodStatus, change: impl FnMut(&mut ContainerStatus)) {
    let all = status.container_statuses.iter_mut().chain(&mut status.init_container_statuses);
    all.chain(&mut status.ephemeral_container_statuses).for_each(change);
}

/// What is told of the spelling of addresses.
pub(super) fn warnings(status: &PodStatus) -> Vec<String> {
    let path = Path::new("status");
    let mut texts = Vec::new();
    for (index, one) in status.pod_ips.iter().enumerate() {
        texts.extend(address_warnings::of_ip(&path.child("podIPs").index(index).child("ip"), &one.ip));
    }
    for (index, one) in status.host_ips.iter().enumerate() {
        texts.extend(address_warnings::of_ip(&path.child("hostIPs").index(index).child("ip"), &one.ip));
    }
    texts
}

/// Checks a pod whose status is to replace that of `old`.
pub(super) fn validate(pod: &Pod, old: &Pod, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    super::pod_update::validate_annotations(pod, old, &mut errors);
    let annotations = Path::new("metadata").child("annotations");
    let stored = Some((&old.metadata, &old.spec));
    pod_spec::validate_pod_annotations(&annotations, (&pod.metadata, &pod.spec), stored, gates, &mut errors);
    let path = Path::new("status");
    validate_conditions(&path.child("conditions"), &pod.status.conditions, &mut errors);
    validate_nomination(&path.child("nominatedNodeName"), pod, old, gates, &mut errors);
    if pod.status.observed_generation < 0 {
        let at = path.child("observedGeneration");
        errors.push(at.invalid(pod.status.observed_generation, NOT_NEGATIVE));
    }
    if pod.status.qos_class != old.status.qos_class {
        errors.push(path.child("qosClass").invalid(BadValue::named(&pod.status.qos_class), IMMUTABLE));
    }
    validate_states(&path, pod, old, gates, &mut errors);
    validate_claims(&path.child("resourceClaimStatuses"), pod, &mut errors);
    validate_extended_claim(&path.child("extendedResourceClaimStatus"), pod, &mut errors);
    node_allocatable::validate_claims(&path.child("nodeAllocatableResourceClaimStatuses"), pod, &mut errors);
    validate_addresses(&path, &pod.status, &old.status, gates, &mut errors);
    for (field, statuses, containers) in lists(&path, pod) {
        validate_users(&field, pod, statuses, &mut errors);
        validate_image_volumes(&field, statuses, &mut errors);
        match containers {
            Some(containers) => validate_devices(&field, statuses, containers, &mut errors),
            None => refuse_devices(&field, statuses, &mut errors),
        }
    }
    errors
}

type Lists<'a> = [(Path, &'a [ContainerStatus], Option<&'a [Container]>); 3];

fn lists<'a>(path: &Path, pod: &'a Pod) -> Lists<'a> {
    let (spec, status) = (&pod.spec, &pod.status);
    [
        (path.child("containerStatuses"), &status.container_statuses, Some(&spec.containers)),
        (path.child("initContainerStatuses"), &status.init_container_statuses, Some(&spec.init_containers)),
        (path.child("ephemeralContainerStatuses"), &status.ephemeral_container_statuses, None),
    ]
}

fn validate_conditions(path: &Path, conditions: &[PodCondition], errors: &mut ErrorList) {
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        if condition.observed_generation < 0 {
            let at = path.child("observedGeneration");
            errors.push(at.invalid(condition.observed_generation, NOT_NEGATIVE));
        }
        if !matches!(condition.type_.as_str(), "PodScheduled" | "Ready" | "Initialized") {
            errors.push_invalid(&path.child("Type"), &condition.type_, names::qualified_name(&condition.type_));
        }
    }
}

fn validate_nomination(path: &Path, pod: &Pod, old: &Pod, gates: &Gates, errors: &mut ErrorList) {
    let (new, stored) = (&pod.status.nominated_node_name, &old.status.nominated_node_name);
    if new == stored || new.is_empty() {
        return;
    }
    errors.push_invalid(path, new, names::dns1123_subdomain(new));
    if gates.enabled(CLEAR_NOMINATION) && !old.spec.node_name.is_empty() {
        errors.push(path.forbidden("may not be set on pods that are already bound to a node"));
    }
}

/// What has ended stays ended, unless it may start again.
fn validate_states(path: &Path, pod: &Pod, old: &Pod, gates: &Gates, errors: &mut ErrorList) {
    let spec = &old.spec;
    let (new, stored) = (&pod.status, &old.status);
    let restarts_all =
        |container: &Container| container.restart_policy_rules.iter().any(|rule| rule.action == "RestartAllContainers");
    let may_always =
        gates.enabled(RESTART_ALL_CONTAINERS) && spec.containers.iter().chain(&spec.init_containers).any(restarts_all);
    for (field, new, stored, containers) in [
        ("containerStatuses", &new.container_statuses, &stored.container_statuses, &spec.containers),
        ("initContainerStatuses", &new.init_container_statuses, &stored.init_container_statuses, &spec.init_containers),
        (
            "ephemeralContainerStatuses",
            &new.ephemeral_container_statuses,
            &stored.ephemeral_container_statuses,
            &Vec::new(),
        ),
    ] {
        if may_always && field != "ephemeralContainerStatuses" {
            continue;
        }
        for (index, old) in stored.iter().enumerate() {
            let Some(terminated) = &old.state.terminated else { continue };
            let container = containers.iter().find(|container| container.name == old.name);
            if container.is_some_and(|container| may_restart(spec, container, terminated.exit_code)) {
                continue;
            }
            let new = new.iter().find(|new| new.name == old.name);
            if new.is_some_and(|new| new.state.terminated.is_none()) {
                let at = path.child(field).index(index).child("state");
                errors.push(at.forbidden("may not be transitioned to non-terminated state"));
            }
        }
    }
}

fn may_restart(spec: &PodSpec, container: &Container, exit_code: i32) -> bool {
    let by_policy = |policy: &str| policy == "Always" || (policy == "OnFailure" && exit_code != 0);
    let Some(policy) = &container.restart_policy else { return by_policy(&spec.restart_policy) };
    let matches = |rule: &&ContainerRestartRule| {
        rule.exit_codes.as_ref().is_some_and(|codes| match codes.operator.as_str() {
            "In" => codes.values.contains(&exit_code),
            "NotIn" => !codes.values.contains(&exit_code),
            _ => false,
        })
    };
    match container.restart_policy_rules.iter().find(matches) {
        Some(rule) if matches!(rule.action.as_str(), "Restart" | "RestartAllContainers") => true,
        _ => by_policy(policy),
    }
}

fn validate_claims(path: &Path, pod: &Pod, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for (index, status) in pod.status.resource_claim_statuses.iter().enumerate() {
        let at = path.index(index);
        if !pod.spec.resource_claims.iter().any(|claim| claim.name == status.name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(at.child("name").invalid(status.name.as_str(), detail));
        }
        if !seen.insert(status.name.as_str()) {
            errors.push(at.child("name").duplicate(status.name.as_str()));
        }
        if let Some(name) = &status.resource_claim_name {
            errors.push_invalid(&at.child("resourceClaimName"), name, names::dns1123_subdomain(name));
        }
    }
}

/// The claim that the scheduler made for resources that containers ask for by plain names.
fn validate_extended_claim(path: &Path, pod: &Pod, errors: &mut ErrorList) {
    let Some(status) = &pod.status.extended_resource_claim_status else { return };
    let at = path.child("requestMappings");
    if status.request_mappings.is_empty() {
        errors.push(at.required("at least one request mapping is required"));
    }
    let mut seen = BTreeSet::new();
    for (index, mapping) in status.request_mappings.iter().enumerate() {
        let at = at.index(index);
        let (container, resource) = (mapping.container_name.as_str(), mapping.resource_name.as_str());
        let mut all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        match all.find(|one| one.name == container) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(at.child("containerName").invalid(container, detail));
            }
            Some(found) if !found.resources.requests.contains_key(resource) => {
                let detail = "must match the extended resource name of an entry in \
                              spec.initContainers.resources.requests or spec.containers.resources.requests";
                errors.push(at.child("resourceName").invalid(resource, detail));
            }
            Some(_) => {}
        }
        let request = mapping.request_name.as_str();
        errors.push_invalid(&path.child("requestName"), request, names::dns1123_label(request));
        if !seen.insert((container, resource, request)) {
            for (field, value) in [("containerName", container), ("resourceName", resource), ("requestName", request)] {
                errors.push(at.child(field).duplicate(value));
            }
        }
    }
    let at = path.child("resourceClaimName");
    rules::named(&at, &status.resource_claim_name, names::dns1123_subdomain, errors);
}

/// Containers for a look around are given no devices.
fn refuse_devices(path: &Path, statuses: &[ContainerStatus], errors: &mut ErrorList) {
    for (index, _) in statuses.iter().enumerate().filter(|(_, one)| !one.allocated_resources_status.is_empty()) {
        let at = path.index(index).child("allocatedResourcesStatus");
        errors.push(at.forbidden("must not be specified in container status"));
    }
}

fn validate_addresses(path: &Path, status: &PodStatus, old: &PodStatus, gates: &Gates, errors: &mut ErrorList) {
    let texts = |ips: &[api_types::core_v1::PodIP]| ips.iter().map(|one| one.ip.clone()).collect::<Vec<_>>();
    validate_ips(&path.child("podIPs"), &texts(&status.pod_ips), &texts(&old.pod_ips), gates, errors);
    let texts = |ips: &[api_types::core_v1::HostIP]| ips.iter().map(|one| one.ip.clone()).collect::<Vec<_>>();
    let at = path.child("hostIPs");
    if let Some(first) = status.host_ips.first()
        && first.ip != status.host_ip
    {
        errors.push(at.index(0).child("ip").invalid(first.ip.as_str(), "must be equal to `hostIP`"));
    }
    validate_ips(&at, &texts(&status.host_ips), &texts(&old.host_ips), gates, errors);
}

/// Addresses that are stored pass; of several there is at most one of each family.
fn validate_ips(path: &Path, ips: &[String], stored: &[String], gates: &Gates, errors: &mut ErrorList) {
    for (index, ip) in ips.iter().enumerate().filter(|(_, ip)| !stored.contains(ip)) {
        errors.push_invalid(&path.index(index), ip, addresses::ip(gates, ip));
    }
    let is_v6 = |ip: &String| ip.contains(':');
    let one_each = ips.len() == 2 && ips.iter().filter(|ip| is_v6(ip)).count() == 1;
    if ips.len() > 1 && !one_each {
        let shown: Vec<String> = ips.iter().map(|ip| format!("{{\"IP\":\"{ip}\"}}")).collect();
        let value = BadValue::json(format!("[{}]", shown.join(",")));
        errors.push(path.invalid(value, "may specify no more than one IP for each IP family"));
    }
}

fn validate_users(path: &Path, pod: &Pod, statuses: &[ContainerStatus], errors: &mut ErrorList) {
    let windows = pod.spec.os.as_ref().is_some_and(|os| os.name == "windows");
    for (index, status) in statuses.iter().enumerate() {
        let Some(user) = status.user.as_ref().and_then(|user| user.linux.as_ref()) else { continue };
        let path = path.index(index).child("user").child("linux");
        if windows {
            errors.push(path.forbidden("cannot be set for a windows pod"));
            continue;
        }
        rules::id(&path.child("uid"), Some(user.uid), errors);
        rules::id(&path.child("gid"), Some(user.gid), errors);
        for (at, group) in user.supplemental_groups.iter().enumerate() {
            rules::id(&path.child("supplementalGroups").index(at), Some(*group), errors);
        }
    }
}

fn validate_image_volumes(path: &Path, statuses: &[ContainerStatus], errors: &mut ErrorList) {
    for (index, status) in statuses.iter().enumerate() {
        let mounts = path.index(index).child("volumeMounts");
        for (at, mount) in status.volume_mounts.iter().enumerate() {
            let Some(image) = mount.volume_status.as_ref().and_then(|status| status.image.as_ref()) else { continue };
            let path = mounts.index(at).child("volumeStatus").child("imageVolumeStatus").child("imageRef");
            if image.image_ref.is_empty() {
                errors.push(path.required("imageRef must not be empty"));
            } else if image.image_ref.len() > MAX_IMAGE_REF {
                errors.push(path.too_long(MAX_IMAGE_REF));
            }
        }
    }
}

fn validate_devices(path: &Path, statuses: &[ContainerStatus], containers: &[Container], errors: &mut ErrorList) {
    for (index, status) in statuses.iter().enumerate() {
        let path = path.index(index).child("allocatedResourcesStatus");
        let container = containers.iter().find(|container| container.name == status.name);
        for (at, resource) in status.allocated_resources_status.iter().enumerate() {
            validate_device(&path.index(at), resource, container, errors);
        }
    }
}

fn validate_device(path: &Path, resource: &ResourceStatus, container: Option<&Container>, errors: &mut ErrorList) {
    let name = resource.name.as_str();
    let claims = || container.map(|container| container.resources.claims.as_slice()).unwrap_or_default();
    let problem = match name.strip_prefix("claim:") {
        Some(claim) => {
            let same = |one: &&api_types::core_v1::ResourceClaim| match one.request.as_str() {
                "" => one.name == claim,
                request => claim == format!("{}/{request}", one.name),
            };
            let detail = "must match one of the container's resource claims in a format \
                          'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            claims().iter().find(same).is_none().then_some(detail)
        }
        None => {
            let asked = container.is_some_and(|container| container.resources.requests.contains_key(name));
            (!asked).then_some("must match one of the container's resource requests")
        }
    };
    if let Some(detail) = problem {
        errors.push(path.child("name").invalid(BadValue::named(name), detail));
    }
    let mut seen = BTreeSet::new();
    for (index, device) in resource.resources.iter().enumerate() {
        let path = path.child("resources").index(index);
        rules::one_of(&path.child("health"), &device.health, resource_health_status::ALL, errors);
        match &device.message {
            Some(text) if text.is_empty() => {
                errors.push(path.child("message").required("must be non-empty if specified"));
            }
            Some(text) if text.len() > MAX_MESSAGE_BYTES => {
                errors.push(path.child("message").too_long(MAX_MESSAGE_BYTES));
            }
            _ => {}
        }
        if !seen.insert(device.resource_id.as_str()) {
            errors.push(path.child("resourceID").duplicate(BadValue::named(&device.resource_id)));
        }
    }
}

#[cfg(test)]
#[path = "pod_status_test.rs"]
mod tests;
