//! What a pod asks for: the effective requests and limits over its containers.
//!
//! Regular containers and sidecars add up; ordinary init containers run one after another beside the sidecars that
//! started before them, so each resource needs the larger of the two. Pod-level amounts replace the sums, overhead
//! comes on top (KEP-753, KEP-2837, KEP-688).

mod resized;

use api_machinery::quantity::Quantity;
use api_types::core_v1::{Container, NodeAllocatableResourceClaimStatus, Pod, PodSpec, ResourceList};
pub use resized::container_requests;

use crate::pod_state::is_sidecar;

/// The pod's effective requests.
#[must_use]
pub fn requests(pod: &Pod) -> ResourceList {
    requests_with(pod, &ResourceList::new())
}

/// The pod's effective requests, and what its claims give it beside them: within what it asks for as a whole (KEP-5517).
#[must_use]
pub fn requests_with(pod: &Pod, claimed: &ResourceList) -> ResourceList {
    effective(
        &pod.spec,
        |container| container.resources.requests.clone(),
        |spec| spec.resources.as_ref().map(|resources| &resources.requests),
        claimed,
    )
}

/// The pod's requests as they are booked while containers of it are being resized: see [`container_requests`] (KEP-1287).
#[must_use]
pub fn booked_requests(pod: &Pod) -> ResourceList {
    effective(
        &pod.spec,
        |container| resized::container_requests(pod, container),
        |spec| spec.resources.as_ref().map(|resources| &resources.requests),
        &ResourceList::new(),
    )
}

/// The pod's limits as they are booked while containers of it are being resized (KEP-1287).
#[must_use]
pub fn booked_limits(pod: &Pod) -> ResourceList {
    effective(
        &pod.spec,
        |container| resized::container_limits(pod, container),
        |spec| spec.resources.as_ref().map(|resources| &resources.limits),
        &ResourceList::new(),
    )
}

/// What claims give a pod of that which nodes have anyway, each once, whoever of its containers uses it (KEP-5517).
#[must_use]
pub fn claimed(statuses: &[NodeAllocatableResourceClaimStatus]) -> ResourceList {
    let mut total = ResourceList::new();
    statuses.iter().for_each(|own| add(&mut total, &own.resources));
    total
}

/// The pod's effective limits.
#[must_use]
pub fn limits(pod: &Pod) -> ResourceList {
    effective(
        &pod.spec,
        |container| container.resources.limits.clone(),
        |spec| spec.resources.as_ref().map(|resources| &resources.limits),
        &ResourceList::new(),
    )
}

/// The sum rule over any amounts of a container, such as requests with defaults filled in.
#[must_use]
pub fn aggregate(spec: &PodSpec, amounts: impl Fn(&Container) -> ResourceList) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &spec.containers {
        add(&mut total, &amounts(container));
    }
    let (mut sidecars, mut peak) = (ResourceList::new(), ResourceList::new());
    for container in &spec.init_containers {
        let own = amounts(container);
        if is_sidecar(container) {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            let mut candidate = own;
            add(&mut candidate, &sidecars);
            raise(&mut peak, &candidate);
        }
    }
    raise(&mut total, &peak);
    total
}

fn effective(
    spec: &PodSpec,
    of_container: impl Fn(&Container) -> ResourceList,
    of_pod: impl Fn(&PodSpec) -> Option<&ResourceList>,
    beside: &ResourceList,
) -> ResourceList {
    let mut total = aggregate(spec, of_container);
    add(&mut total, beside);
    for (name, amount) in of_pod(spec).into_iter().flatten().filter(|(name, _)| is_pod_level(name)) {
        total.insert(name.clone(), amount.clone());
    }
    add(&mut total, &spec.overhead);
    total
}

/// The pod as it counts where nothing can be asked for as a whole (gate `PodLevelResources` off); nothing where that makes
/// no difference.
#[must_use]
pub fn without_pod_level(pod: &Pod) -> Option<Pod> {
    pod.spec.resources.as_ref()?;
    let mut plain = pod.clone();
    plain.spec.resources = None;
    Some(plain)
}

/// Whether a resource may be set for the pod as a whole.
#[must_use]
pub fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// Adds amounts, resource by resource.
pub fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, amount) in more {
        total.entry(name.clone()).or_default().add(amount);
    }
}

/// What is left of amounts, resource by resource; nothing where as much is taken.
#[must_use]
pub fn less(total: &ResourceList, taken: &ResourceList) -> ResourceList {
    let mut left = total.clone();
    for (name, amount) in taken {
        if let Some(own) = left.get_mut(name) {
            own.sub(amount);
        }
    }
    left.retain(|_, amount| *amount > Quantity::default());
    left
}

/// Raises amounts to those of `floor` where they are lower.
pub fn raise(total: &mut ResourceList, floor: &ResourceList) {
    for (name, amount) in floor {
        let own = total.entry(name.clone()).or_insert_with(|| amount.clone());
        if *own < *amount {
            own.clone_from(amount);
        }
    }
}

/// An amount, zero where it is missing.
#[must_use]
pub fn amount(list: &ResourceList, name: &str) -> Quantity {
    list.get(name).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(cpu: &str, sidecar: bool) -> Container {
        let mut container = Container::default();
        container.resources.requests.insert("cpu".into(), Quantity::parse(cpu).unwrap());
        container.restart_policy = sidecar.then(|| "Always".into());
        container
    }

    fn cpu_of(init: &[Container], main: &[Container], overhead: &str) -> String {
        let mut pod = Pod::default();
        pod.spec.init_containers = init.to_vec();
        pod.spec.containers = main.to_vec();
        if !overhead.is_empty() {
            pod.spec.overhead.insert("cpu".into(), Quantity::parse(overhead).unwrap());
        }
        amount(&requests(&pod), "cpu").to_string()
    }

    #[test]
    fn a_pod_counts_as_a_whole_unless_that_is_left_out() {
        let mut pod = Pod::default();
        pod.spec.containers = vec![container("1", false)];
        assert_eq!(without_pod_level(&pod).map(|_| ()), None);
        let quantity = Quantity::parse("3").unwrap();
        pod.spec.resources.get_or_insert_default().requests.insert("cpu".into(), quantity);
        let cpu = |pod: &Pod| amount(&requests(pod), "cpu").to_string();
        assert_eq!((cpu(&pod), without_pod_level(&pod).map(|plain| cpu(&plain))), ("3".into(), Some("1".into())));
    }

    #[test]
    fn claims_give_more_within_what_the_pod_has_as_a_whole() {
        let quantity = |text: &str| Quantity::parse(text).unwrap();
        let given = |cpu: &str| NodeAllocatableResourceClaimStatus {
            resources: [("cpu".to_owned(), quantity(cpu)), ("hugepages-2Mi".to_owned(), quantity("2Mi"))].into(),
            ..NodeAllocatableResourceClaimStatus::default()
        };
        let mut pod = Pod::default();
        pod.spec.containers = vec![container("1", false)];
        pod.spec.init_containers = vec![container("3", false)];
        pod.spec.overhead.insert("cpu".into(), quantity("50m"));
        let shown = |pod: &Pod, statuses: &[NodeAllocatableResourceClaimStatus]| {
            let all = requests_with(pod, &claimed(statuses));
            ["cpu", "hugepages-2Mi"].map(|name| amount(&all, name).to_string())
        };
        assert_eq!(shown(&pod, &[]), ["3050m", "0"]);
        assert_eq!(shown(&pod, &[given("4"), given("500m")]), ["7550m", "4Mi"]);
        pod.spec.resources.get_or_insert_default().requests.insert("cpu".into(), quantity("8"));
        assert_eq!(shown(&pod, &[given("4")]), ["8050m", "2Mi"]);
    }

    #[test]
    fn init_containers_peak_and_sidecars_add() {
        let main = [container("100m", false), container("200m", false)];
        for (init, overhead, expected) in [
            (vec![], "", "300m"),
            (vec![container("1", false)], "", "1"),
            (vec![container("100m", true)], "", "400m"),
            (vec![container("100m", true), container("1", false)], "", "1100m"),
            (vec![container("1", false), container("100m", true)], "", "1"),
            (vec![], "50m", "350m"),
        ] {
            assert_eq!(cpu_of(&init, &main, overhead), expected);
        }
    }
}
