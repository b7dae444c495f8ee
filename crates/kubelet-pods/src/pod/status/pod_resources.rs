//! What a pod as a whole has been given, and what is in force of that (gate `InPlacePodLevelResourcesVerticalScaling`,
//! KEP-5419). Shown of every pod, whether it says itself what its containers may have together or not.

use api_types::core_v1::constants::pod_phase;
use api_types::core_v1::{Pod, PodStatus, ResourceRequirements};
use component_helpers::pod_requests;
use kubelet_node::resources::is_bounded;

use super::Inputs;

/// What the pod's control group holds it to, which is all that is told of one that runs.
const OF_GROUP: [&str; 2] = ["cpu", "memory"];

pub(super) fn show(inputs: &Inputs<'_>, out: &mut PodStatus) {
    let pod = inputs.pod;
    out.allocated_resources = pod_requests::requests(pod);
    out.resources = Some(if out.phase == pod_phase::RUNNING {
        in_force(&with_actuated(inputs))
    } else {
        ResourceRequirements {
            requests: pod_requests::requests(pod),
            limits: pod_requests::limits(pod),
            ..ResourceRequirements::default()
        }
    });
}

/// The pod with what it and its containers were given last.
fn with_actuated(inputs: &Inputs<'_>) -> Pod {
    let mut pod = Pod::default();
    pod.spec = inputs.pod.spec.clone();
    for container in pod.spec.init_containers.iter_mut().chain(&mut pod.spec.containers) {
        if let Some(given) = (inputs.actuated)(&container.name) {
            container.resources = given;
        }
    }
    if let Some(own) = &mut pod.spec.resources {
        *own = (inputs.actuated)("").unwrap_or_else(|| own.clone());
    }
    pod
}

fn in_force(pod: &Pod) -> ResourceRequirements {
    let mut out = pod.spec.resources.clone().unwrap_or_default();
    let (requests, limits) = (pod_requests::requests(pod), pod_requests::limits(pod));
    for kind in OF_GROUP {
        if let Some(amount) = requests.get(kind).filter(|amount| amount.sign() > 0) {
            out.requests.insert(kind.to_owned(), amount.clone());
        }
        if let Some(amount) = limits.get(kind).filter(|_| is_bounded(pod, kind)) {
            out.limits.insert(kind.to_owned(), amount.clone());
        }
    }
    out
}
