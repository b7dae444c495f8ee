//! What an evicted pod is told, in upstream's words. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use api_machinery::quantity::{Format, Quantity};
use api_types::core_v1::{Container, Pod};
use component_helpers::pod_requests;

use super::usage::{Observation, PodUse};
use crate::resources::thresholds::{Signal, Threshold};

/// A message and what the event carries beside it.
pub(super) struct EvictionMessage {
    pub(super) message: String,
    pub(super) annotations: BTreeMap<String, String>,
}

/// Why a pod goes when `threshold` is met.
pub(super) fn of(
    pod: &Pod,
    used: Option<&PodUse>,
    threshold: &Threshold,
    seen: Option<&Observation>,
) -> EvictionMessage {
    let resource = threshold.signal.resource();
    let mut message = format!("The node was low on resource: {resource}. ");
    let mut annotations = BTreeMap::from([("starved_resource".to_owned(), resource.to_owned())]);
    if let Some(seen) = seen {
        let (limit, available) = (threshold.amount.of(seen.capacity), seen.available);
        let shown = |value: i64| Quantity::from_value(value, format_of(threshold.signal));
        let _ = write!(message, "Threshold quantity: {}, available: {}. ", shown(limit), shown(available));
    }
    let (mut names, mut amounts) = (Vec::new(), Vec::new());
    if let (Some(own), true) = (&pod.spec.resources, resource == "memory") {
        let request = pod_requests::amount(&own.requests, resource);
        let usage = bytes(used.and_then(|used| used.memory_bytes).unwrap_or_default());
        if usage > request {
            let name = &pod.metadata.name;
            let _ = write!(
                message,
                "Pod {name} was using {usage}, request is {request}, has larger consumption of {resource}. "
            );
            annotations.insert("offending_pod".to_owned(), name.clone());
            annotations.insert("offending_pod_usage".to_owned(), usage.to_string());
        }
    }
    for container in pod.spec.containers.iter().chain(&pod.spec.init_containers) {
        let Some((usage, request)) = over(container, used, resource) else { continue };
        let name = &container.name;
        let _ = write!(
            message,
            "Container {name} was using {usage}, request is {request}, has larger consumption of {resource}. "
        );
        names.push(name.clone());
        amounts.push(usage.to_string());
    }
    if !names.is_empty() {
        annotations.insert("offending_containers".to_owned(), names.join(","));
        annotations.insert("offending_containers_usage".to_owned(), amounts.join(","));
    }
    EvictionMessage { message, annotations }
}

/// Use and request of a container that uses more than it asked for.
fn over(container: &Container, used: Option<&PodUse>, resource: &str) -> Option<(Quantity, Quantity)> {
    let used = used?.container(&container.name)?;
    let usage = match resource {
        "memory" => used.memory_bytes,
        "ephemeral-storage" => used.logs.bytes.saturating_add(used.layer.bytes),
        _ => return None,
    };
    let (usage, request) = (bytes(usage), pod_requests::amount(&container.resources.requests, resource));
    (usage > request).then_some((usage, request))
}

fn bytes(value: u64) -> Quantity {
    Quantity::from_value(i64::try_from(value).unwrap_or(i64::MAX), Format::BinarySi)
}

/// Inodes and processes are counted in tens, the rest in binary units.
fn format_of(signal: Signal) -> Format {
    match signal.resource() {
        "inodes" | "pids" => Format::DecimalSi,
        _ => Format::BinarySi,
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::super::usage::{ContainerUse, Room};
    use super::*;
    use crate::resources::thresholds::Amount;

    #[test]
    fn messages_name_what_is_short_and_who_took_it() {
        let mut pod = Pod::default();
        for (name, memory) in [("one", "64Mi"), ("two", "1Gi")] {
            let mut container = Container { name: name.into(), ..Container::default() };
            container.resources.requests.insert("memory".into(), Quantity::parse(memory).unwrap());
            pod.spec.containers.push(container);
        }
        let container = |name: &str| ContainerUse {
            name: name.into(),
            memory_bytes: 128 << 20,
            layer: Room { bytes: 1000, inodes: 1 },
            logs: Room { bytes: 24, inodes: 1 },
        };
        let used = PodUse { containers: vec![container("one"), container("two")], ..PodUse::default() };
        let seen = |capacity, available| Observation { available, capacity, at: SystemTime::UNIX_EPOCH };
        let cases = [
            (
                Threshold::hard(Signal::MemoryAvailable, Amount::Bytes(100 << 20)),
                seen(1 << 30, 90 << 20),
                "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container one was \
                 using 128Mi, request is 64Mi, has larger consumption of memory. ",
                "one",
            ),
            (
                Threshold::hard(Signal::NodefsAvailable, Amount::Percent(10.0)),
                seen(10240, 512),
                "The node was low on resource: ephemeral-storage. Threshold quantity: 1Ki, available: 512. Container \
                 one was using 1Ki, request is 0, has larger consumption of ephemeral-storage. Container two was using \
                 1Ki, request is 0, has larger consumption of ephemeral-storage. ",
                "one,two",
            ),
            (
                Threshold::hard(Signal::PidAvailable, Amount::Bytes(2000)),
                seen(32768, 1500),
                "The node was low on resource: pids. Threshold quantity: 2k, available: 1500. ",
                "",
            ),
        ];
        for (threshold, seen, expected, offending) in cases {
            let made = of(&pod, Some(&used), &threshold, Some(&seen));
            assert_eq!(made.message, expected);
            assert_eq!(made.annotations["starved_resource"], threshold.signal.resource());
            let found = made.annotations.get("offending_containers").map_or("", String::as_str);
            assert_eq!(found, offending);
        }
    }
}
