//! `/metrics/resource`: what the node, its pods and their containers use, which the cluster's metrics server reads.

use api_types::core_v1::Pod;
use component_base::serving::Response;
use node_api::cri::v1::ContainerStats;
use sys::cgroups::Limit;

use super::exposition::{Exposition, Family, counter, fact, gauge, seconds};
use super::figures::{self, Figures};
use super::stats::{by_pod, name_of, started_at};
use super::{Api, cadvisor, container_use};
use crate::resources::node_usage;

/// Upstream's families, with its texts: what reads them is told by them how far a name may be relied on.
const FAMILIES: [Family; 12] = [
    counter(
        "container_cpu_usage_seconds_total",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
    ),
    gauge("container_memory_working_set_bytes", "[STABLE] Current working set of the container in bytes"),
    fact("container_start_time_seconds", "[STABLE] Start time of the container since unix epoch in seconds"),
    gauge(
        "container_swap_limit_bytes",
        "[ALPHA] Current amount of the container swap limit in bytes. Reported only on non-windows systems",
    ),
    gauge(
        "container_swap_usage_bytes",
        "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows systems",
    ),
    counter("node_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the node in core-seconds"),
    gauge("node_memory_working_set_bytes", "[STABLE] Current working set of the node in bytes"),
    gauge(
        "node_swap_usage_bytes",
        "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems",
    ),
    counter("pod_cpu_usage_seconds_total", "[STABLE] Cumulative cpu time consumed by the pod in core-seconds"),
    gauge("pod_memory_working_set_bytes", "[STABLE] Current working set of the pod in bytes"),
    gauge(
        "pod_swap_usage_bytes",
        "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows systems",
    ),
    fact("resource_scrape_error", "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"),
];

pub(super) async fn answer(api: &Api) -> Response {
    let mut out = Exposition::new(&FAMILIES);
    match container_use::figures(api, container_use::brief).await {
        Ok(figures) => of_node(api, &figures, &mut out),
        Err(error) => {
            tracing::error!(%error, "Error getting summary for resourceMetric prometheus endpoint");
            out.put("resource_scrape_error", "", 1);
        }
    }
    out.answer(api.clock.wall(), "")
}

fn of_node(api: &Api, figures: &Figures, out: &mut Exposition) {
    out.put("resource_scrape_error", "", 0);
    if let Some(usage) = node_usage(api.stats.groups.cgroups(), api.stats.proc()) {
        out.put("node_cpu_usage_seconds_total", "", seconds(usage.cpu_ns));
        out.put("node_memory_working_set_bytes", "", usage.working_set_bytes);
        out.put("node_swap_usage_bytes", "", usage.swap_bytes);
    }
    let swaps = api.stats.proc().memory().is_ok_and(|memory| memory.swap_total_bytes > 0);
    let by_pod = by_pod(&figures.containers);
    for pod in api.engine.active_pods() {
        let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
        let own = by_pod.get(pod.metadata.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        let status = api.engine.status(&pod.metadata.uid);
        for one in own {
            let labels = format!("{{container={:?},namespace={namespace:?},pod={name:?}}}", name_of(one));
            of_container(out, &labels, one);
            put_swap(out, &labels, swap_of(api, &pod, one, swaps));
            if let Some(at) = started_at(status.as_deref().unwrap_or(&pod.status), name_of(one)) {
                out.put("container_start_time_seconds", &labels, at.unix_seconds().unwrap_or_default());
            }
        }
        let totals = totals(api, figures, &pod, own, swaps);
        of_pod(out, &format!("{{namespace={namespace:?},pod={name:?}}}"), &totals);
    }
}

fn of_container(out: &mut Exposition, labels: &str, one: &ContainerStats) {
    if let Some(used) = one.cpu.as_ref().and_then(|cpu| cpu.usage_core_nano_seconds.as_ref()) {
        out.put("container_cpu_usage_seconds_total", labels, seconds(used.value));
    }
    if let Some(set) = one.memory.as_ref().and_then(|memory| memory.working_set_bytes.as_ref()) {
        out.put("container_memory_working_set_bytes", labels, set.value);
    }
}

fn of_pod(out: &mut Exposition, labels: &str, totals: &PodTotals) {
    if let Some(used) = totals.cpu_ns {
        out.put("pod_cpu_usage_seconds_total", labels, seconds(used));
    }
    if let Some(set) = totals.working_set_bytes {
        out.put("pod_memory_working_set_bytes", labels, set);
    }
    if let Some(moved) = totals.swap_bytes {
        out.put("pod_swap_usage_bytes", labels, moved);
    }
}

/// Memory that was moved to disks, and how much more may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Swap {
    pub(super) usage: Option<u64>,
    /// `None` without a limit.
    pub(super) available: Option<u64>,
}

impl Swap {
    /// What a group says of itself.
    pub(super) fn of_group(usage: u64, limit: Limit) -> Self {
        let available = match limit {
            Limit::Unlimited => None,
            Limit::To(limit) => Some(limit.saturating_sub(usage)),
        };
        Self { usage: Some(usage), available }
    }
}

fn put_swap(out: &mut Exposition, labels: &str, swap: Swap) {
    if let Some(usage) = swap.usage {
        out.put("container_swap_usage_bytes", labels, usage);
    }
    if let Some(available) = swap.available {
        out.put("container_swap_limit_bytes", labels, available.saturating_add(swap.usage.unwrap_or_default()));
    }
}

/// By the runtime's word, or, on machines that move memory to disks, by that of the container's group.
pub(super) fn swap_of(api: &Api, pod: &Pod, one: &ContainerStats, swaps: bool) -> Swap {
    if let Some(told) = &one.swap {
        let [usage, available] = [&told.swap_usage_bytes, &told.swap_available_bytes];
        return Swap { usage: figures::number(usage.as_ref()), available: figures::number(available.as_ref()) };
    }
    let id = one.attributes.as_ref().map(|attributes| attributes.id.as_str()).unwrap_or_default();
    let group = if swaps { cadvisor::container_group(&api.stats.groups, pod, id) } else { None };
    let Some(group) = group else { return Swap::default() };
    let cgroups = api.stats.groups.cgroups();
    let (usage, memory) = (cgroups.usage(&group).ok(), cgroups.details(&group).memory);
    usage.zip(memory).map(|(usage, memory)| Swap::of_group(usage.swap_bytes, memory.swap_bytes)).unwrap_or_default()
}

/// What a pod as a whole uses, as far as it is known.
#[derive(Default)]
struct PodTotals {
    cpu_ns: Option<u64>,
    working_set_bytes: Option<u64>,
    swap_bytes: Option<u64>,
}

/// Memory on disks is looked at only where there is any.
fn totals(api: &Api, figures: &Figures, pod: &Pod, containers: &[&ContainerStats], swaps: bool) -> PodTotals {
    if figures.are_of_runtime() {
        let Some(told) = figures.pod(&pod.metadata.uid) else { return PodTotals::default() };
        let swap = |one: &&ContainerStats| figures::number(one.swap.as_ref()?.swap_usage_bytes.as_ref());
        let moved: Vec<u64> = containers.iter().filter_map(swap).collect();
        return PodTotals {
            cpu_ns: told.cpu.as_ref().and_then(|cpu| figures::number(cpu.usage_core_nano_seconds.as_ref())),
            working_set_bytes: told.memory.as_ref().and_then(|own| figures::number(own.working_set_bytes.as_ref())),
            swap_bytes: (!moved.is_empty()).then(|| moved.into_iter().fold(0, u64::saturating_add)),
        };
    }
    let (cgroups, group) = (api.stats.groups.cgroups(), api.stats.groups.group(pod));
    let Ok(usage) = cgroups.cpu_and_memory(&group) else { return PodTotals::default() };
    let swap_bytes = if swaps { cgroups.usage(&group).ok().map(|usage| usage.swap_bytes) } else { Some(0) };
    PodTotals { cpu_ns: Some(usage.cpu_ns), working_set_bytes: Some(usage.working_set_bytes), swap_bytes }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_are_upstreams() {
        let facts = test_facts::facts("metrics.json");
        let own = serde_json::json!([{"component": "kubelet", "endpoint": "/metrics/resource"}]);
        let metrics = facts["metrics"].as_array().unwrap().iter().filter(|metric| metric["components"] == own);
        let expected: BTreeSet<(String, String)> = metrics
            .map(|metric| [&metric["name"], &metric["stability"]].map(|text| text.as_str().unwrap().to_owned()).into())
            // Upstream hides it.
            .filter(|(name, _): &(String, String)| name != "scrape_error")
            .collect();
        let stability = |family: &Family| family.help.trim_start_matches('[').split(']').next().unwrap().to_owned();
        let served: BTreeSet<_> = FAMILIES.iter().map(|family| (family.name.to_owned(), stability(family))).collect();
        assert_eq!(served, expected);
    }

    #[test]
    fn swap_is_limited_by_usage_and_what_is_left() {
        for (limit, available, shown) in [
            (Limit::To(100), Some(70), Some("100")),
            (Limit::To(0), Some(0), Some("30")),
            (Limit::Unlimited, None, None),
        ] {
            let swap = Swap::of_group(30, limit);
            assert_eq!(swap, Swap { usage: Some(30), available });
            let mut out = Exposition::new(&FAMILIES);
            put_swap(&mut out, "", swap);
            assert_eq!(out.of("container_swap_limit_bytes").first().map(|(_, value)| value.as_str()), shown);
            assert_eq!(out.of("container_swap_usage_bytes")[0].1, "30");
        }
    }
}
