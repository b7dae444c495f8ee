//! What claims for devices use of a quota (KEP-4381), and what of that a pod has been charged for already which asks for its
//! devices as extended resources (KEP-5004).

use std::collections::BTreeMap;
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, ResourceList};
use api_types::resource_v1::constants::device_allocation_mode::{ALL_FITTING, EXACT_COUNT};
use api_types::resource_v1::constants::{ALLOCATION_RESULTS_MAX, DEVICE_CLASS_RESOURCE_PREFIX};
use api_types::resource_v1::{DeviceRequest, ResourceClaim};

use super::{Circumstances, usage, whole};
use crate::owners::controller_of;
use crate::resource_claims::is_for_extended_resources;

const COUNT: &str = "count/resourceclaims.resource.k8s.io";
const OF_CLASS: &str = ".deviceclass.resource.k8s.io/devices";

/// What is known of devices that can be had as extended resources, and of who has them so.
pub trait ExtendedDevices: Send + Sync {
    /// The extended resource that a class names.
    fn resource_of(&self, class: &str) -> Option<String>;
    /// Whether any class names an extended resource.
    fn is_named(&self, resource: &str) -> bool;
    /// A pod.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;
    /// The claims whose controller is a pod.
    fn claims_of(&self, pod: &Pod) -> Vec<Arc<ResourceClaim>>;
}

/// Whether a name is about claims for devices.
pub(super) fn concern(name: &str, devices: Option<&dyn ExtendedDevices>) -> bool {
    if name == COUNT || name.ends_with(OF_CLASS) {
        return true;
    }
    let (Some(devices), Some(resource)) = (devices, name.strip_prefix("requests.")) else { return false };
    resource.starts_with(DEVICE_CLASS_RESOURCE_PREFIX) || devices.is_named(resource)
}

pub(super) fn claim(claim: &ResourceClaim, at: Circumstances<'_>) -> ResourceList {
    let per_class = per_class(claim);
    let mut used = match at.devices {
        Some(devices) => as_extended(claim, &per_class, devices, at.now),
        None => ResourceList::new(),
    };
    used.insert(COUNT.to_owned(), whole(1));
    used.extend(per_class.into_iter().map(|(class, count)| (format!("{class}{OF_CLASS}"), whole(count))));
    used
}

/// How many devices of each class a claim may get. Those for administrators count like others.
fn per_class(claim: &ResourceClaim) -> BTreeMap<&str, u64> {
    let mut total = BTreeMap::new();
    for request in &claim.spec.devices.requests {
        for (class, count) in most_of(request) {
            let sum = total.entry(class).or_insert(0_u64);
            *sum = sum.saturating_add(count);
        }
    }
    total
}

/// The most of each class that a request comes to, whichever of its alternatives is chosen.
fn most_of(request: &DeviceRequest) -> BTreeMap<&str, u64> {
    if let Some(exactly) = &request.exactly {
        return [(exactly.device_class_name.as_str(), amount(&exactly.allocation_mode, exactly.count))].into();
    }
    let mut most = BTreeMap::new();
    for own in &request.first_available {
        let largest = most.entry(own.device_class_name.as_str()).or_insert(0);
        *largest = amount(&own.allocation_mode, own.count).max(*largest);
    }
    most
}

/// Of all that fit there may be as many as a claim can have at all; how many there are is not known before they are chosen.
fn amount(mode: &str, count: i64) -> u64 {
    match mode {
        EXACT_COUNT => u64::try_from(count).unwrap_or(0),
        ALL_FITTING => ALLOCATION_RESULTS_MAX as u64,
        _ => 0,
    }
}

/// The same devices by the names of extended resources, without those that the pod was charged for that the claim is of.
fn as_extended(
    claim: &ResourceClaim,
    per_class: &BTreeMap<&str, u64>,
    devices: &dyn ExtendedDevices,
    now: Time,
) -> ResourceList {
    let mut used = ResourceList::new();
    for (class, count) in per_class {
        let implicit = format!("{DEVICE_CLASS_RESOURCE_PREFIX}{class}");
        for name in devices.resource_of(class).into_iter().chain([implicit]) {
            used.entry(format!("requests.{name}")).or_default().add(&whole(*count));
        }
    }
    if let Some(pod) = pod_of(claim, devices) {
        let booked = usage::pod(&pod, now);
        for (name, amount) in &mut used {
            booked.get(name).into_iter().for_each(|booked| amount.sub(booked));
        }
    }
    used.retain(|_, amount| amount.cmp_i64(0).is_gt());
    used
}

/// The pod that the scheduler made a claim for. Users can annotate claims as well: it is the one that the pod's status names,
/// or the oldest, as long as it names none.
fn pod_of(claim: &ResourceClaim, devices: &dyn ExtendedDevices) -> Option<Arc<Pod>> {
    if !is_for_extended_resources(claim) {
        return None;
    }
    let owner = controller_of(&claim.metadata).filter(|owner| owner.api_version == "v1" && owner.kind == "Pod")?;
    let pod = devices.pod(&claim.metadata.namespace, &owner.name).filter(|pod| pod.metadata.uid == owner.uid)?;
    let is_its = match &pod.status.extended_resource_claim_status {
        Some(status) => status.resource_claim_name == claim.metadata.name,
        None => {
            let others = devices.claims_of(&pod);
            let mut others = others.iter().filter(|other| {
                is_for_extended_resources(other) && other.metadata.namespace == claim.metadata.namespace
            });
            !others.any(|other| is_older(other, claim))
        }
    };
    is_its.then_some(pod)
}

/// Whether a claim was there before another, which may not be there yet.
fn is_older(one: &ResourceClaim, other: &ResourceClaim) -> bool {
    let (one, other) = (&one.metadata, &other.metadata);
    if one.name == other.name {
        return false;
    }
    let age = |created: Time| (created == Time::default(), created);
    (age(one.creation_timestamp), &one.name) < (age(other.creation_timestamp), &other.name)
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::{Container, PodExtendedResourceClaimStatus};
    use api_types::resource_v1::constants::{EXTENDED_RESOURCE_CLAIM, EXTENDED_RESOURCE_CLAIM_ANNOTATION};
    use api_types::resource_v1::{DeviceSubRequest, ExactDeviceRequest};

    use super::super::Evaluator;
    use super::*;
    use crate::owners::controller_reference;

    /// Of the classes `gpu` and `big` the first names `example.com/gpu`.
    #[derive(Default)]
    struct Known {
        pods: Vec<Arc<Pod>>,
        claims: Vec<Arc<ResourceClaim>>,
    }

    impl ExtendedDevices for Known {
        fn resource_of(&self, class: &str) -> Option<String> {
            (class == "gpu").then(|| "example.com/gpu".to_owned())
        }
        fn is_named(&self, resource: &str) -> bool {
            resource == "example.com/gpu"
        }
        fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
            let is_it = |pod: &&Arc<Pod>| pod.metadata.namespace == namespace && pod.metadata.name == name;
            self.pods.iter().find(is_it).cloned()
        }
        fn claims_of(&self, pod: &Pod) -> Vec<Arc<ResourceClaim>> {
            let is_its = |claim: &&Arc<ResourceClaim>| {
                controller_of(&claim.metadata).is_some_and(|own| own.uid == pod.metadata.uid)
            };
            self.claims.iter().filter(is_its).cloned().collect()
        }
    }

    fn exactly(class: &str, mode: &str, count: i64) -> DeviceRequest {
        let exactly = ExactDeviceRequest {
            device_class_name: class.into(),
            allocation_mode: mode.into(),
            count,
            ..ExactDeviceRequest::default()
        };
        DeviceRequest { exactly: Some(exactly), ..DeviceRequest::default() }
    }

    fn first_of(alternatives: &[(&str, &str, i64)]) -> DeviceRequest {
        let own = |(class, mode, count): &(&str, &str, i64)| DeviceSubRequest {
            device_class_name: (*class).into(),
            allocation_mode: (*mode).into(),
            count: *count,
            ..DeviceSubRequest::default()
        };
        DeviceRequest { first_available: alternatives.iter().map(own).collect(), ..DeviceRequest::default() }
    }

    fn asking(requests: Vec<DeviceRequest>) -> ResourceClaim {
        let mut claim = ResourceClaim::default();
        (claim.metadata.namespace, claim.metadata.name) = ("ns".into(), "c".into());
        claim.spec.devices.requests = requests;
        claim
    }

    fn shown(claim: &ResourceClaim, devices: Option<&dyn ExtendedDevices>) -> String {
        let at = Circumstances { now: Time::from_unix_seconds(1000), devices };
        let used = Evaluator::DeviceClaims.usage(claim, at);
        used.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn requests_count_for_the_most_that_they_may_get() {
        let mut admin = exactly("gpu", "ExactCount", 2);
        admin.exactly.as_mut().unwrap().admin_access = Some(true);
        for (name, requests, expected) in [
            ("nothing", vec![], "#"),
            ("a number", vec![exactly("gpu", "ExactCount", 3)], "# gpu=3"),
            ("all that fit", vec![exactly("gpu", "All", 0)], "# gpu=32"),
            ("a mode that nobody knows", vec![exactly("gpu", "Some", 5)], "# gpu=0"),
            ("for administrators", vec![admin], "# gpu=2"),
            (
                "several",
                vec![exactly("gpu", "ExactCount", 1), exactly("gpu", "ExactCount", 2), exactly("big", "ExactCount", 1)],
                "big=1 # gpu=3",
            ),
            (
                "the largest alternative of each class",
                vec![
                    first_of(&[("big", "ExactCount", 1), ("gpu", "ExactCount", 4), ("gpu", "ExactCount", 2)]),
                    exactly("gpu", "ExactCount", 1),
                ],
                "big=1 # gpu=5",
            ),
            ("all as an alternative", vec![first_of(&[("gpu", "ExactCount", 4), ("gpu", "All", 0)])], "# gpu=32"),
        ] {
            let used = shown(&asking(requests), None).replace(OF_CLASS, "").replace(&format!("{COUNT}=1"), "#");
            assert_eq!(used, expected, "{name}");
        }
    }

    #[test]
    fn names_concern_claims() {
        let known = Known::default();
        for (name, without, with) in [
            (COUNT, true, true),
            ("gpu.deviceclass.resource.k8s.io/devices", true, true),
            ("requests.deviceclass.resource.kubernetes.io/any", false, true),
            ("requests.example.com/gpu", false, true),
            ("requests.example.com/other", false, false),
            ("requests.cpu", false, false),
            ("example.com/gpu", false, false),
            ("count/resourceclaims", false, false),
        ] {
            let counts = |devices| Evaluator::DeviceClaims.counts(name, devices);
            assert_eq!((counts(None), counts(Some(&known))), (without, with), "{name}");
        }
    }

    fn pod(requests: &[(&str, &str)]) -> Pod {
        let mut container = Container::default();
        for (name, amount) in requests {
            container.resources.requests.insert((*name).into(), Quantity::parse(amount).unwrap());
        }
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name, pod.metadata.uid) = ("ns".into(), "p".into(), "u".into());
        pod.spec.containers.push(container);
        pod
    }

    fn made_for(pod: &Pod, mut claim: ResourceClaim) -> ResourceClaim {
        claim.metadata.annotations.insert(EXTENDED_RESOURCE_CLAIM_ANNOTATION.into(), EXTENDED_RESOURCE_CLAIM.into());
        claim.metadata.owner_references = vec![controller_reference(pod)];
        claim
    }

    const WHOLE: &str = "requests.deviceclass.resource.kubernetes.io/gpu=2 requests.example.com/gpu=2";

    #[test]
    fn a_pod_is_not_charged_twice_for_its_extended_resources() {
        let two = || asking(vec![exactly("gpu", "ExactCount", 2)]);
        let explicit = pod(&[("example.com/gpu", "2")]);
        let implicit = pod(&[("deviceclass.resource.kubernetes.io/gpu", "2")]);
        let both = pod(&[("example.com/gpu", "1"), ("deviceclass.resource.kubernetes.io/gpu", "1")]);
        let named = |name: &str| {
            let mut pod = explicit.clone();
            let resource_claim_name = name.to_owned();
            let status = PodExtendedResourceClaimStatus { resource_claim_name, ..Default::default() };
            pod.status.extended_resource_claim_status = Some(status);
            pod
        };
        let mut ended = explicit.clone();
        ended.status.phase = "Succeeded".into();
        let (of_class, of_name) = ("requests.deviceclass.resource.kubernetes.io/gpu=2", "requests.example.com/gpu=2");
        for (name, pod, expected) in [
            ("by the name of the class's own", explicit.clone(), of_class),
            ("by the name that every class has", implicit, of_name),
            ("by both", both, "requests.deviceclass.resource.kubernetes.io/gpu=1 requests.example.com/gpu=1"),
            ("by neither", self::pod(&[]), WHOLE),
            ("the one that its status names", named("c"), of_class),
            ("another than its status names", named("d"), WHOLE),
            ("one that has ended is charged for nothing", ended, WHOLE),
        ] {
            let claim = made_for(&pod, two());
            let known = Known { pods: vec![Arc::new(pod)], claims: vec![Arc::new(claim.clone())] };
            let expected = format!("{COUNT}=1 gpu{OF_CLASS}=2 {expected}");
            assert_eq!(shown(&claim, Some(&known)), expected, "{name}");
        }
        let class_without = asking(vec![exactly("big", "ExactCount", 1)]);
        let expected = format!("big{OF_CLASS}=1 {COUNT}=1 requests.deviceclass.resource.kubernetes.io/big=1");
        assert_eq!(shown(&class_without, Some(&Known::default())), expected);
    }

    #[test]
    fn only_one_claim_is_that_of_a_pod() {
        let pod = pod(&[("example.com/gpu", "2")]);
        let claim = |name: &str, created: Option<i64>| {
            let mut claim = made_for(&pod, asking(vec![exactly("gpu", "ExactCount", 2)]));
            claim.metadata.name = name.into();
            claim.metadata.creation_timestamp = created.map(Time::from_unix_seconds).unwrap_or_default();
            claim
        };
        let unmarked = |mut claim: ResourceClaim| {
            claim.metadata.annotations.clear();
            claim
        };
        let of_another = |mut claim: ResourceClaim| {
            claim.metadata.owner_references[0].uid = "v".into();
            claim
        };
        for (name, own, other, is_free) in [
            ("the older", claim("c", Some(10)), claim("b", Some(20)), true),
            ("the younger", claim("c", Some(20)), claim("b", Some(10)), false),
            ("one that comes to be", claim("", None), claim("b", Some(10)), false),
            ("beside one of another sort", claim("c", Some(20)), unmarked(claim("b", Some(10))), true),
            ("beside one of another pod", claim("c", Some(20)), of_another(claim("b", Some(10))), true),
            ("one of another pod itself", of_another(claim("c", Some(10))), claim("b", Some(20)), false),
            ("one of another sort itself", unmarked(claim("c", Some(10))), claim("b", Some(20)), false),
        ] {
            let known =
                Known { pods: vec![Arc::new(pod.clone())], claims: vec![Arc::new(other), Arc::new(own.clone())] };
            assert_eq!(!shown(&own, Some(&known)).ends_with(WHOLE), is_free, "{name}");
        }
    }
}
