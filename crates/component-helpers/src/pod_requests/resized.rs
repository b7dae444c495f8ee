//! What containers take up while they are being resized (KEP-1287): until less is in force, it is not there for others.

use api_types::core_v1::constants::pod_condition_type::POD_RESIZE_PENDING;
use api_types::core_v1::constants::pod_resize_status::INFEASIBLE;
use api_types::core_v1::{Container, ContainerStatus, Pod, ResourceList, ResourceRequirements};

use super::raise;
use crate::conditions;
use crate::pod_state::is_sidecar;

/// The requests of a container of the pod: while a resize is under way, the largest of what is wanted, promised and in force.
/// What is wanted does not count where there can never be so much.
#[must_use]
pub fn container_requests(pod: &Pod, container: &Container) -> ResourceList {
    let wanted = &container.resources.requests;
    let Some((status, in_force)) = in_force(pod, container) else { return wanted.clone() };
    let mut most = in_force.requests.clone();
    raise(&mut most, &status.allocated_resources);
    if !is_infeasible(pod) {
        raise(&mut most, wanted);
    }
    most
}

/// The same of its limits, of which none is promised.
pub(super) fn container_limits(pod: &Pod, container: &Container) -> ResourceList {
    let wanted = &container.resources.limits;
    let Some((_, in_force)) = in_force(pod, container) else { return wanted.clone() };
    let mut most = in_force.limits.clone();
    if !is_infeasible(pod) {
        raise(&mut most, wanted);
    }
    most
}

/// What is in force, with the status that says so; ordinary init containers always go by their spec.
fn in_force<'a>(pod: &'a Pod, container: &Container) -> Option<(&'a ContainerStatus, &'a ResourceRequirements)> {
    let init = pod.spec.init_containers.iter().any(|other| other.name == container.name);
    let statuses = match (init, is_sidecar(container)) {
        (false, _) => &pod.status.container_statuses,
        (true, true) => &pod.status.init_container_statuses,
        (true, false) => return None,
    };
    let status = statuses.iter().find(|status| status.name == container.name)?;
    status.resources.as_ref().map(|resources| (status, resources))
}

/// Whether the node will never have room for what is wanted.
fn is_infeasible(pod: &Pod) -> bool {
    conditions::find(&pod.status.conditions, POD_RESIZE_PENDING).is_some_and(|pending| pending.reason == INFEASIBLE)
}
