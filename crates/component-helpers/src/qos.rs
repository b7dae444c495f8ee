//! The quality-of-service class of a pod.

use std::collections::BTreeMap;

use api_machinery::quantity::Quantity;
use api_types::core_v1::constants::pod_qos_class;
use api_types::core_v1::{Pod, ResourceList};

/// The class computed from the spec: `Guaranteed`, `Burstable` or `BestEffort`. Only cpu and memory count; pod-level
/// resources, where set, decide alone (KEP-2837).
#[must_use]
pub fn class_of(pod: &Pod) -> &'static str {
    let spec = &pod.spec;
    let containers: Vec<(&ResourceList, &ResourceList)> = match &spec.resources {
        Some(all) => vec![(&all.requests, &all.limits)],
        None => spec
            .containers
            .iter()
            .chain(&spec.init_containers)
            .map(|container| (&container.resources.requests, &container.resources.limits))
            .collect(),
    };
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut all_limited = true;
    for (own_requests, own_limits) in containers {
        sum(&mut requests, own_requests);
        let limited = sum(&mut limits, own_limits);
        all_limited &= limited == 2;
    }
    if requests.is_empty() && limits.is_empty() {
        return pod_qos_class::BEST_EFFORT;
    }
    if all_limited
        && requests.iter().all(|(name, amount)| limits.get(name) == Some(amount))
        && requests.len() == limits.len()
    {
        return pod_qos_class::GUARANTEED;
    }
    pod_qos_class::BURSTABLE
}

/// Adds the positive amounts of cpu and memory; says how many there were.
fn sum<'a>(total: &mut BTreeMap<&'a str, Quantity>, list: &'a ResourceList) -> usize {
    let counted = list.iter().filter(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && amount.sign() > 0);
    let mut count = 0;
    for (name, amount) in counted {
        total.entry(name).or_default().add(amount);
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;

    use super::*;

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
    }

    #[test]
    fn classes() {
        let full = [("cpu", "1"), ("memory", "1Gi")];
        for (requests, limits, expected) in [
            (list(&[]), list(&[]), "BestEffort"),
            (list(&full), list(&full), "Guaranteed"),
            (list(&full), list(&[("cpu", "2"), ("memory", "1Gi")]), "Burstable"),
            (list(&[("cpu", "1")]), list(&[]), "Burstable"),
            (list(&[("cpu", "1")]), list(&[("cpu", "1")]), "Burstable"),
            (list(&[("example.com/gpu", "1")]), list(&[("example.com/gpu", "1")]), "BestEffort"),
            (list(&[("cpu", "0")]), list(&[]), "BestEffort"),
        ] {
            let mut container = Container::default();
            container.resources.requests = requests;
            container.resources.limits = limits;
            let mut pod = Pod::default();
            pod.spec.containers.push(container);
            assert_eq!(class_of(&pod), expected, "{pod:?}");
        }
    }

    #[test]
    fn amounts_of_the_pod_decide_alone() {
        let full = [("cpu", "1"), ("memory", "1Gi")];
        for (requests, limits, expected) in [
            // Stating nothing is stating that nothing is asked for.
            (list(&[]), list(&[]), "BestEffort"),
            (list(&full), list(&full), "Guaranteed"),
            (list(&[("cpu", "1")]), list(&[("cpu", "1")]), "Burstable"),
        ] {
            let mut container = Container::default();
            container.resources.requests = list(&[("cpu", "1")]);
            let mut pod = Pod::default();
            pod.spec.containers.push(container);
            let resources = pod.spec.resources.get_or_insert_default();
            (resources.requests, resources.limits) = (requests, limits);
            assert_eq!(class_of(&pod), expected, "{pod:?}");
        }
    }
}
