//! `/metrics/cadvisor`: what containers, pods and the machine use, in the families that dashboards know.
//!
//! From the groups of pods and containers, the counters of network interfaces and disks, and the runtime's figures where a
//! container's group is not found. All of it is read when somebody asks.

mod families;
mod reading;
mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::core_v1::Pod;
use component_base::serving::Response;
use node_api::cri::v1::ContainerStats;
use sys::cgroups::{CgroupPath, Limit, MemoryLimits};
use sys::proc::{Interface, Proc};
use sys::topology::Topology;

use super::exposition::{Exposition, seconds};
use super::stats::{by_pod, name_of, started_at};
use super::{Api, Source, network, runtime_metrics};
use crate::resources::PodGroups;
use families::FAMILIES;
use reading::{DiskReading, Reading};

/// Groups of classes of pods, below that of all pods, by a part of their names.
const CLASSES: [&str; 2] = ["burstable", "besteffort"];

pub(super) async fn answer(api: &Api) -> Response {
    let mut out = Exposition::new(FAMILIES);
    of_machine(api, &mut out);
    let mut more = String::new();
    match api.source {
        Source::Runtime => more = runtime_metrics::text(&*api.runtime).await,
        Source::Groups => of_groups(api, &mut out).await,
    }
    out.answer(api.clock.wall(), &more)
}

/// Something that has a group, and what is known of it otherwise.
struct Subject {
    labels: String,
    /// `None` for a container whose group is not known.
    group: Option<CgroupPath>,
    /// Seconds since 1970.
    started: Option<i64>,
    interfaces: Vec<Interface>,
    stats: Option<ContainerStats>,
    memory_limit: u64,
}

impl Subject {
    /// A group of the node's, with nobody's labels.
    fn of_node(api: &Api, group: CgroupPath) -> Self {
        let (labels, started) =
            (labels(&group.to_string(), "", "", &Pod::default(), ""), api.stats.boot.unix_seconds());
        Self { labels, group: Some(group), started, interfaces: Vec::new(), stats: None, memory_limit: 0 }
    }
}

/// Families of the node, its pods and their containers.
async fn of_groups(api: &Api, out: &mut Exposition) {
    of_version(out);
    let listed = api.runtime.list_container_stats(None).await;
    out.put("container_scrape_error", "", i32::from(listed.is_err()));
    let stats = listed.unwrap_or_default();
    let mut subjects = of_node(api);
    let by_pod = by_pod(&stats);
    for pod in api.engine.active_pods() {
        let pod = api.engine.pod_by_uid(&pod.metadata.uid).unwrap_or(pod);
        let containers = by_pod.get(pod.metadata.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        put_pod(api, &mut subjects, &pod, containers);
    }
    let Some(read) = Read::now(api, &subjects).await else { return };
    let now = api.clock.wall().duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    for (subject, reading) in subjects.iter().zip(&read.groups) {
        put(out, subject, reading.as_ref(), &read.device_names, now);
    }
    let machine = Subject::of_node(api, CgroupPath::default());
    read.disks.iter().for_each(|disk| samples::put_disk(out, &machine.labels, disk));
}

/// What was read for a scrape.
struct Read {
    groups: Vec<Option<Reading>>,
    device_names: BTreeMap<(u32, u32), String>,
    disks: Vec<DiskReading>,
}

impl Read {
    async fn now(api: &Api, subjects: &[Subject]) -> Option<Self> {
        let (groups, proc) = (Arc::clone(&api.stats.groups), api.stats.proc().clone());
        let paths: Vec<Option<CgroupPath>> = subjects.iter().map(|subject| subject.group.clone()).collect();
        let read = move || {
            let one = |path: Option<CgroupPath>| reading::read(groups.cgroups(), &proc, &path?);
            let groups: Vec<Option<Reading>> = paths.into_iter().map(one).collect();
            let device_names = reading::device_names(&proc, groups.iter().flatten());
            Self { groups, device_names, disks: reading::disks(&proc) }
        };
        tokio::task::spawn_blocking(read).await.ok()
    }
}

/// The node as a whole, all pods together, and each class of them.
fn of_node(api: &Api) -> Vec<Subject> {
    let root = Subject { interfaces: network::of_node(api), ..Subject::of_node(api, CgroupPath::default()) };
    let all = api.stats.groups.all_pods();
    let below = api.stats.groups.cgroups().children(&all).unwrap_or_default();
    let classes = below.iter().filter(|name| CLASSES.iter().any(|class| name.contains(class)));
    let classes: Vec<CgroupPath> = classes.filter_map(|name| all.child(name)).collect();
    let rest = [all].into_iter().chain(classes).map(|group| Subject::of_node(api, group));
    [root].into_iter().chain(rest).collect()
}

/// A pod and its containers.
fn put_pod(api: &Api, subjects: &mut Vec<Subject>, pod: &Pod, containers: &[&ContainerStats]) {
    let group = api.stats.groups.group(pod);
    subjects.push(Subject {
        labels: labels(&group.to_string(), "", "", pod, ""),
        started: pod.status.start_time.and_then(|time| time.unix_seconds()),
        interfaces: network::of_pod(api, pod),
        group: Some(group),
        stats: None,
        memory_limit: 0,
    });
    for one in containers {
        let id = one.attributes.as_ref().map(|attributes| attributes.id.as_str()).unwrap_or_default();
        let name = name_of(one);
        let image = pod.status.container_statuses.iter().find(|status| status.name == name);
        let image = image.map(|status| status.image.as_str()).unwrap_or_default();
        let limit = pod.spec.containers.iter().find(|container| container.name == name);
        let limit = limit.and_then(|container| container.resources.limits.get("memory"));
        let group = container_group(&api.stats.groups, pod, id);
        subjects.push(Subject {
            labels: labels(&group.as_ref().map_or_else(String::new, ToString::to_string), id, image, pod, name),
            group,
            started: started_at(&pod.status, name).and_then(|time| time.unix_seconds()),
            interfaces: Vec::new(),
            stats: Some((*one).clone()),
            memory_limit: limit.map_or(0, |limit| u64::try_from(limit.value()).unwrap_or_default()),
        });
    }
}

fn put(
    out: &mut Exposition,
    subject: &Subject,
    reading: Option<&Reading>,
    devices: &BTreeMap<(u32, u32), String>,
    now: u64,
) {
    let labels = &subject.labels;
    match (reading, &subject.stats) {
        (Some(reading), _) => samples::put_group(out, labels, reading, devices),
        (None, Some(stats)) => put_told(out, labels, stats, subject.memory_limit),
        (None, None) => return,
    }
    let layer = subject.stats.as_ref().and_then(|stats| stats.writable_layer.as_ref()?.used_bytes.as_ref());
    if let Some(used) = layer {
        out.put("container_fs_usage_bytes", &with(labels, "device", ""), used.value);
    }
    if let Some(started) = subject.started {
        out.put("container_start_time_seconds", labels, started);
    }
    samples::put_interfaces(out, labels, &subject.interfaces);
    out.put("container_last_seen", labels, now);
}

/// What the runtime tells of a container.
fn put_told(out: &mut Exposition, labels: &str, stats: &ContainerStats, memory_limit: u64) {
    if let Some(used) = stats.cpu.as_ref().and_then(|cpu| cpu.usage_core_nano_seconds.as_ref()) {
        out.put("container_cpu_usage_seconds_total", &with(labels, "cpu", "total"), seconds(used.value));
    }
    if let Some(memory) = &stats.memory {
        for (name, value) in [
            ("container_memory_usage_bytes", &memory.usage_bytes),
            ("container_memory_working_set_bytes", &memory.working_set_bytes),
            ("container_memory_rss", &memory.rss_bytes),
        ] {
            if let Some(value) = value {
                out.put(name, labels, value.value);
            }
        }
        let faults = [&memory.page_faults, &memory.major_page_faults].map(|value| value.map(|value| value.value));
        samples::put_faults(out, labels, faults[0], faults[1]);
    }
    let none = Limit::To(0);
    let limits = MemoryLimits { bytes: Limit::To(memory_limit), swap_bytes: none, reservation_bytes: none };
    samples::put_limits(out, labels, None, Some(limits));
}

fn of_machine(api: &Api, out: &mut Exposition) {
    let proc = api.stats.proc();
    let labels = format!(
        "{{boot_id={:?},machine_id={:?},system_uuid={:?}}}",
        proc.boot_id().unwrap_or_default(),
        proc.machine_id(),
        proc.system_uuid()
    );
    let (cores, sockets) = api.stats.layout(|| cores_and_sockets(&Topology::system().unwrap_or_default()));
    let cpus = proc.cpus().unwrap_or_default();
    out.put("machine_cpu_cores", &labels, cpus);
    // A kernel that does not tell how its processors are put together has one to a core.
    out.put("machine_cpu_physical_cores", &labels, if cores == 0 { cpus } else { cores });
    out.put("machine_cpu_sockets", &labels, sockets.max(1));
    let memory = proc.memory();
    out.put("machine_scrape_error", "", i32::from(memory.is_err()));
    if let Ok(memory) = memory {
        out.put("machine_memory_bytes", &labels, memory.total_bytes);
        out.put("machine_swap_bytes", &labels, memory.swap_total_bytes);
    }
    // Memory that outlives the power is known to upstream by a library that its builds do without.
    out.put("machine_nvm_avg_power_budget_watts", &labels, 0);
    for mode in ["app_direct_mode", "memory_mode"] {
        out.put("machine_nvm_capacity", &with(&labels, "mode", mode), 0);
    }
}

fn cores_and_sockets(machine: &Topology) -> (usize, usize) {
    let processors = machine.processors.values();
    let cores: std::collections::BTreeSet<u32> = processors.clone().map(|processor| processor.core).collect();
    let sockets: std::collections::BTreeSet<u32> = processors.map(|processor| processor.socket).collect();
    (cores.len(), sockets.len())
}

fn of_version(out: &mut Exposition) {
    let proc = Proc::system();
    let (kernel, version) = (proc.kernel_version().unwrap_or_default(), component_base::version::git_version());
    let system = proc.os_release().remove("PRETTY_NAME").unwrap_or_default();
    let labels = format!(
        "{{cadvisorRevision=\"\",cadvisorVersion={version:?},dockerVersion=\"\",kernelVersion={kernel:?},osVersion={system:?}}}"
    );
    out.put("cadvisor_version_info", &labels, 1);
}

/// The group that the runtime made for a container: by its id, under systemd as a scope.
pub(super) fn container_group(groups: &PodGroups, pod: &Pod, id: &str) -> Option<CgroupPath> {
    let group = groups.group(pod);
    let scope = group.child(&format!("cri-containerd-{id}.scope"));
    scope.filter(|scope| groups.cgroups().exists(scope)).or_else(|| group.child(id))
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
    use sys::topology::Processor;

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
    fn threads_share_cores_and_cores_sockets() {
        let processor = |core, socket| Processor { core, socket, node: 0, cache: 0 };
        let processors = [(0, processor(0, 0)), (1, processor(1, 0)), (2, processor(0, 0)), (3, processor(3, 1))];
        let machine = Topology { processors: processors.into(), ..Topology::default() };
        assert_eq!(cores_and_sockets(&machine), (3, 2));
        assert_eq!(cores_and_sockets(&Topology::default()), (0, 0));
    }

    #[test]
    fn a_container_without_a_group_tells_what_the_runtime_knows() {
        use node_api::cri::v1::{MemoryUsage, UInt64Value};
        let value = |value: u64| Some(UInt64Value { value });
        let memory = MemoryUsage { working_set_bytes: value(5), page_faults: value(6), ..MemoryUsage::default() };
        let subject = Subject {
            labels: "{a=\"1\"}".into(),
            group: None,
            started: Some(7),
            interfaces: Vec::new(),
            stats: Some(ContainerStats { memory: Some(memory), ..ContainerStats::default() }),
            memory_limit: 100,
        };
        let mut out = Exposition::new(FAMILIES);
        put(&mut out, &subject, None, &BTreeMap::new(), 9);
        for (name, expected) in [
            ("container_memory_working_set_bytes", Some("5")),
            ("container_memory_failures_total", Some("6")),
            ("container_spec_memory_limit_bytes", Some("100")),
            ("container_start_time_seconds", Some("7")),
            ("container_last_seen", Some("9")),
            ("container_memory_rss", None),
        ] {
            assert_eq!(out.of(name).first().map(|(_, value)| value.as_str()), expected, "{name}");
        }
        let mut none = Exposition::new(FAMILIES);
        put(&mut none, &Subject { stats: None, ..subject }, None, &BTreeMap::new(), 9);
        assert!(none.of("container_last_seen").is_empty(), "its group is gone");
    }
}
