//! `/metrics/cadvisor`: what containers, pods and the machine use, in the families that dashboards know.
//!
//! From the runtime's figures, the groups of pods and containers, and the counters of network interfaces. Families about
//! devices and tasks are left out.

use std::collections::BTreeMap;

use api_types::core_v1::Pod;
use component_base::serving::{Response, text};
use http::{HeaderValue, StatusCode, header};
use node_api::cri::v1::{ContainerStats, UInt64Value};
use sys::cgroups::{CgroupPath, Pressures, Usage};
use sys::proc::{Interface, Proc};

use super::stats::{Exposition, Sample, by_pod, name_of, seconds, started_at};
use super::{Api, Source, network, runtime_metrics};
use crate::resources::node_usage;

/// Samples by family.
#[derive(Default)]
struct Families(BTreeMap<&'static str, Vec<Sample>>);

impl Families {
    fn put(&mut self, name: &'static str, labels: &str, value: String) {
        self.0.entry(name).or_default().push((labels.to_owned(), value));
    }

    fn bytes(&mut self, name: &'static str, labels: &str, value: Option<&UInt64Value>) {
        if let Some(value) = value {
            self.put(name, labels, value.value.to_string());
        }
    }

    fn of_group(&mut self, labels: &str, usage: &Usage) {
        self.put("container_cpu_usage_seconds_total", &with(labels, "cpu", "total"), seconds(usage.cpu_ns));
        self.put("container_memory_usage_bytes", labels, usage.memory_bytes.to_string());
        self.put("container_memory_working_set_bytes", labels, usage.working_set_bytes.to_string());
        self.put("container_memory_rss", labels, usage.rss_bytes.to_string());
        self.put("container_processes", labels, usage.pids.to_string());
        self.beyond_runtime(labels, usage);
    }

    /// What only a group tells.
    fn beyond_runtime(&mut self, labels: &str, usage: &Usage) {
        self.put("container_cpu_user_seconds_total", labels, seconds(usage.user_ns));
        self.put("container_cpu_system_seconds_total", labels, seconds(usage.system_ns));
        self.put("container_memory_cache", labels, usage.cache_bytes.to_string());
        self.put("container_memory_swap", labels, usage.swap_bytes.to_string());
        self.put("container_oom_events_total", labels, usage.oom_kills.to_string());
        self.of_pressures(labels, &usage.pressures);
        let throttling = &usage.throttling;
        if throttling.periods > 0 {
            self.put("container_cpu_cfs_periods_total", labels, throttling.periods.to_string());
            self.put("container_cpu_cfs_throttled_periods_total", labels, throttling.throttled_periods.to_string());
            self.put("container_cpu_cfs_throttled_seconds_total", labels, seconds(throttling.throttled_ns));
        }
    }

    /// How long something waited, and how long everything did.
    fn of_pressures(&mut self, labels: &str, pressures: &Pressures) {
        let all = [(pressures.cpu, &CPU_PRESSURE), (pressures.memory, &MEMORY_PRESSURE), (pressures.io, &IO_PRESSURE)];
        for (pressure, [waiting, stalled]) in all {
            let Some(pressure) = pressure else { continue };
            self.put(waiting, labels, seconds(pressure.some.total_us.saturating_mul(1000)));
            self.put(stalled, labels, seconds(pressure.full.total_us.saturating_mul(1000)));
        }
    }

    fn of_interfaces(&mut self, labels: &str, interfaces: &[Interface]) {
        for interface in interfaces {
            let own = with(labels, "interface", &interface.name);
            let ways = [(&interface.received, &RECEIVED), (&interface.sent, &SENT)];
            for (counts, names) in ways {
                let values = [counts.bytes, counts.packets, counts.errors, counts.dropped];
                for (name, value) in names.iter().zip(values) {
                    self.put(name, &own, value.to_string());
                }
            }
        }
    }
}

/// Families of pressures: some waited, all waited.
const CPU_PRESSURE: [&str; 2] =
    ["container_pressure_cpu_waiting_seconds_total", "container_pressure_cpu_stalled_seconds_total"];
const MEMORY_PRESSURE: [&str; 2] =
    ["container_pressure_memory_waiting_seconds_total", "container_pressure_memory_stalled_seconds_total"];
const IO_PRESSURE: [&str; 2] =
    ["container_pressure_io_waiting_seconds_total", "container_pressure_io_stalled_seconds_total"];

/// Families of what went through interfaces: bytes, packets, errors and what was dropped.
const RECEIVED: [&str; 4] = [
    "container_network_receive_bytes_total",
    "container_network_receive_packets_total",
    "container_network_receive_errors_total",
    "container_network_receive_packets_dropped_total",
];
const SENT: [&str; 4] = [
    "container_network_transmit_bytes_total",
    "container_network_transmit_packets_total",
    "container_network_transmit_errors_total",
    "container_network_transmit_packets_dropped_total",
];

pub(super) async fn answer(api: &Api) -> Response {
    let mut families = Families::default();
    of_machine(&mut families);
    if api.source == Source::Runtime {
        return exposition(api, &families, &runtime_metrics::text(&*api.runtime).await);
    }
    of_groups(api, &mut families).await;
    exposition(api, &families, "")
}

/// Families of the node, its pods and their containers.
async fn of_groups(api: &Api, families: &mut Families) {
    let stats = api.runtime.list_container_stats(None).await.unwrap_or_default();
    of_node(api, families);
    let by_pod = by_pod(&stats);
    let now = api.clock.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for pod in api.engine.active_pods() {
        let pod = api.engine.pod_by_uid(&pod.metadata.uid).unwrap_or(pod);
        let group = api.stats.groups.group(&pod);
        if let Ok(usage) = api.stats.groups.cgroups().usage(&group) {
            families.of_group(&labels(&group.to_string(), "", "", &pod, ""), &usage);
        }
        families.of_interfaces(&labels(&group.to_string(), "", "", &pod, ""), &network::of_pod(api, &pod));
        for one in by_pod.get(pod.metadata.uid.as_str()).into_iter().flatten() {
            of_container(api, families, &group, &pod, one, now);
        }
    }
}

/// Families, and more of them as text.
fn exposition(api: &Api, families: &Families, more: &str) -> Response {
    let mut out = Exposition::new(std::time::SystemTime::UNIX_EPOCH, api.clock.wall());
    for (name, samples) in &families.0 {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        out.family(name, kind, samples);
    }
    out.text.push_str(more);
    let mut response = text(StatusCode::OK, out.text);
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn of_machine(families: &mut Families) {
    let proc = Proc::system();
    let machine = format!(
        "{{boot_id={:?},machine_id={:?},system_uuid={:?}}}",
        proc.boot_id().unwrap_or_default(),
        proc.machine_id(),
        proc.system_uuid()
    );
    families.put("machine_cpu_cores", &machine, proc.cpus().unwrap_or_default().to_string());
    if let Ok(memory) = proc.memory() {
        families.put("machine_memory_bytes", &machine, memory.total_bytes.to_string());
        families.put("machine_swap_bytes", &machine, memory.swap_total_bytes.to_string());
    }
}

/// The node as a whole, and all pods together.
fn of_node(api: &Api, families: &mut Families) {
    let (proc, cgroups) = (Proc::system(), api.stats.groups.cgroups());
    let kernel = proc.kernel_version().unwrap_or_default();
    let version = component_base::version::git_version();
    let labels_ = format!("{{cadvisorRevision=\"\",cadvisorVersion={version:?},kernelVersion={kernel:?}}}");
    families.put("cadvisor_version_info", &labels_, "1".to_owned());
    let nobody = Pod::default();
    if let Some(usage) = node_usage(cgroups, &proc) {
        families.of_group(&labels("/", "", "", &nobody, ""), &usage);
    }
    families.of_interfaces(&labels("/", "", "", &nobody, ""), &network::of_node(api));
    let all = api.stats.groups.all_pods();
    if let Ok(usage) = cgroups.usage(&all) {
        families.of_group(&labels(&all.to_string(), "", "", &nobody, ""), &usage);
    }
}

fn of_container(api: &Api, families: &mut Families, group: &CgroupPath, pod: &Pod, stats: &ContainerStats, now: u64) {
    let id = stats.attributes.as_ref().map(|attributes| attributes.id.clone()).unwrap_or_default();
    let name = name_of(stats);
    let image = pod.status.container_statuses.iter().find(|status| status.name == name);
    let image = image.map(|status| status.image.as_str()).unwrap_or_default();
    let group = group_of(api, group, &id);
    let own = labels(&group.as_ref().map_or_else(String::new, ToString::to_string), &id, image, pod, name);
    if let Some(usage) = group.and_then(|group| api.stats.groups.cgroups().usage(&group).ok()) {
        families.beyond_runtime(&own, &usage);
    }
    if let Some(used) = stats.cpu.as_ref().and_then(|cpu| cpu.usage_core_nano_seconds.as_ref()) {
        families.put("container_cpu_usage_seconds_total", &with(&own, "cpu", "total"), seconds(used.value));
    }
    if let Some(memory) = &stats.memory {
        families.bytes("container_memory_usage_bytes", &own, memory.usage_bytes.as_ref());
        families.bytes("container_memory_working_set_bytes", &own, memory.working_set_bytes.as_ref());
        families.bytes("container_memory_rss", &own, memory.rss_bytes.as_ref());
        for (kind, value) in [("pgfault", &memory.page_faults), ("pgmajfault", &memory.major_page_faults)] {
            let own = with(&with(&own, "failure_type", kind), "scope", "container");
            families.bytes("container_memory_failures_total", &own, value.as_ref());
        }
    }
    if let Some(layer) = &stats.writable_layer {
        families.bytes("container_fs_usage_bytes", &with(&own, "device", ""), layer.used_bytes.as_ref());
    }
    if let Some(started) = started_at(&pod.status, name) {
        families.put("container_start_time_seconds", &own, started.unix_seconds().unwrap_or_default().to_string());
    }
    families.put("container_last_seen", &own, now.to_string());
    let limit = pod.spec.containers.iter().find(|container| container.name == name);
    let limit = limit.and_then(|container| container.resources.limits.get("memory")).map_or(0, |limit| limit.value());
    families.put("container_spec_memory_limit_bytes", &own, limit.to_string());
}

/// The group that the runtime made for a container: by its id, under systemd as a scope.
fn group_of(api: &Api, pod: &CgroupPath, id: &str) -> Option<CgroupPath> {
    let scope = pod.child(&format!("cri-containerd-{id}.scope"));
    scope.filter(|scope| api.stats.groups.cgroups().exists(scope)).or_else(|| pod.child(id))
}

/// What a container of a pod uses, by its group.
pub(super) fn usage_of(api: &Api, pod: &Pod, id: &str) -> Option<Usage> {
    let group = group_of(api, &api.stats.groups.group(pod), id)?;
    api.stats.groups.cgroups().usage(&group).ok()
}

/// The labels that all families of containers have.
fn labels(group: &str, id: &str, image: &str, pod: &Pod, container: &str) -> String {
    let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
    format!("{{container={container:?},id={group:?},image={image:?},name={id:?},namespace={namespace:?},pod={name:?}}}")
}

/// Labels with one more.
fn with(labels: &str, name: &str, value: &str) -> String {
    format!("{},{name}={value:?}}}", labels.trim_end_matches('}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_upstreams() {
        let mut pod = Pod::default();
        pod.metadata.name = "web".into();
        pod.metadata.namespace = "ns".into();
        let own = labels("/kubepods/podu", "abc", "app:1", &pod, "main");
        let expected =
            "{container=\"main\",id=\"/kubepods/podu\",image=\"app:1\",name=\"abc\",namespace=\"ns\",pod=\"web\"";
        assert_eq!(own, format!("{expected}}}"));
        assert_eq!(with(&own, "cpu", "total"), format!("{expected},cpu=\"total\"}}"));
    }

    #[test]
    fn groups_and_interfaces_become_samples() {
        use sys::cgroups::Throttling;
        use sys::proc::Counts;

        let mut families = Families::default();
        let mut usage = Usage { cache_bytes: 7, oom_kills: 2, ..Usage::default() };
        families.beyond_runtime("{a=\"1\"}", &usage);
        assert!(!families.0.contains_key("container_cpu_cfs_periods_total"), "nothing is limited");
        assert_eq!(families.0["container_memory_cache"], [("{a=\"1\"}".to_owned(), "7".to_owned())]);
        assert_eq!(families.0["container_oom_events_total"][0].1, "2");
        usage.throttling = Throttling { periods: 3, throttled_periods: 2, throttled_ns: 1_500_000_000 };
        families.beyond_runtime("{a=\"1\"}", &usage);
        assert_eq!(families.0["container_cpu_cfs_throttled_seconds_total"][0].1, "1.500000000");

        assert!(!families.0.contains_key("container_pressure_cpu_waiting_seconds_total"), "the kernel does not tell");
        let stall = |total_us| sys::cgroups::Stall { total_us, ..Default::default() };
        let cpu = Some(sys::cgroups::Pressure { some: stall(2_500_000), full: stall(500_000) });
        families.of_pressures("{a=\"1\"}", &Pressures { cpu, ..Pressures::default() });
        assert_eq!(families.0["container_pressure_cpu_waiting_seconds_total"][0].1, "2.500000000");
        assert_eq!(families.0["container_pressure_cpu_stalled_seconds_total"][0].1, "0.500000000");
        let counts = |bytes, dropped| Counts { bytes, packets: 0, errors: 0, dropped };
        let eth0 = Interface { name: "eth0".into(), received: counts(5, 1), sent: counts(6, 2) };
        families.of_interfaces("{a=\"1\"}", &[eth0]);
        let sample = |value: &str| [("{a=\"1\",interface=\"eth0\"}".to_owned(), value.to_owned())];
        assert_eq!(families.0["container_network_receive_bytes_total"], sample("5"));
        assert_eq!(families.0["container_network_transmit_packets_dropped_total"], sample("2"));
    }
}
