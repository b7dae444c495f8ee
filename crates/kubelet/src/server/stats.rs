//! `/stats/summary` and `/metrics/resource`: what the node, its pods and their containers use.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodStatus};
use component_base::serving::{Response, text};
use http::StatusCode;
use node_api::cri::Images;
use node_api::cri::v1::{ContainerStats, FilesystemUsage};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sys::cgroups::{Pressure, Stall, Usage};
use sys::proc::Proc;

use super::figures::{self, Figures};
use super::route::json_answer;
use super::{Api, network};
use crate::eviction::{Gauge, Parts, PodUse, PodUses, Room};
use crate::node::{FileSystem, filesystem};
use crate::resources::{PodGroups, node_usage};
use crate::volumes::ClaimRoom;

/// Labels that the kubelet gives containers.
const POD_UID: &str = "io.kubernetes.pod.uid";
const CONTAINER: &str = "io.kubernetes.container.name";
/// Readings kept to compute rates from; one for each group.
const MAX_READINGS: usize = 10_000;

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    CpuAndMemory,
}

/// Where numbers come from.
pub(crate) struct Stats {
    pub(crate) node: String,
    pub(crate) root: PathBuf,
    pub(crate) groups: Arc<PodGroups>,
    pub(crate) images: Arc<dyn Images>,
    pub(crate) boot: Time,
    pub(crate) memory_capacity: u64,
    proc: Proc,
    gauge: Arc<dyn Gauge>,
    readings: Mutex<BTreeMap<String, (std::time::SystemTime, u64)>>,
}

impl Stats {
    pub(crate) fn new(
        node: &str,
        root: &Path,
        groups: Arc<PodGroups>,
        images: Arc<dyn Images>,
        boot: Time,
        memory_capacity: u64,
        gauge: Arc<dyn Gauge>,
    ) -> Self {
        let (node, root) = (node.to_owned(), root.to_owned());
        Self {
            node,
            root,
            groups,
            images,
            boot,
            memory_capacity,
            proc: Proc::system(),
            gauge,
            readings: Mutex::default(),
        }
    }

    pub(super) fn proc(&self) -> &Proc {
        &self.proc
    }

    pub(super) fn root_dir(&self) -> &Path {
        &self.root
    }

    /// Processor time used per second since the last reading, in billionths of a processor.
    fn rate(&self, group: &str, now: std::time::SystemTime, used_ns: u64) -> Option<u64> {
        let mut readings = self.readings.lock();
        if readings.len() >= MAX_READINGS {
            readings.clear();
        }
        let (before, old) = readings.insert(group.to_owned(), (now, used_ns))?;
        let elapsed = now.duration_since(before).ok()?.as_nanos();
        if elapsed == 0 {
            return None;
        }
        u64::try_from(u128::from(used_ns.saturating_sub(old)) * 1_000_000_000 / elapsed).ok()
    }
}

/// `/stats/summary`
pub(super) async fn summary(api: &Api, extent: Extent) -> Response {
    let (now, time) = (api.clock.wall(), Time::from(api.clock.wall()).to_string());
    let figures = match Figures::ask(&*api.runtime, api.source).await {
        Ok(figures) => figures,
        Err(error) => return text(StatusCode::INTERNAL_SERVER_ERROR, format!("Internal Error: {error}")),
    };
    let active = api.engine.active_pods();
    let disks = match extent {
        Extent::All => api.stats.gauge.pods(&active, Parts::All).await.unwrap_or_default(),
        Extent::CpuAndMemory => PodUses::new(),
    };
    let shared = match extent {
        Extent::All => Shared::look(api).await,
        Extent::CpuAndMemory => Shared::default(),
    };
    let by_pod = by_pod(&figures.containers);
    let mut pods = Vec::new();
    let claims = if extent == Extent::All { (api.claims)(active.clone()).await } else { Vec::new() };
    for pod in active {
        let containers = by_pod.get(pod.metadata.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        if !containers.is_empty() {
            let mut shown = pod_stats(api, &pod, (&figures, containers), now, &time, extent);
            if let Some(used) = disks.get(&pod.metadata.uid) {
                put_disk(&mut shown, used, &shared, &time);
            }
            put_claims(&mut shown, claims.iter().filter(|claim| claim.uid == pod.metadata.uid), &time);
            pods.push(shown);
        }
    }
    let root = node_usage(api.stats.groups.cgroups(), &api.stats.proc);
    let mut node = Map::new();
    node.insert("nodeName".into(), json!(api.stats.node));
    node.insert("startTime".into(), json!(api.stats.boot.to_string()));
    if let Some(usage) = root {
        put_usage(&mut node, &usage, api.stats.rate("/", now, usage.cpu_ns), &time, Some(api.stats.memory_capacity));
    }
    if let Ok(usage) = api.stats.groups.cgroups().usage(&api.stats.groups.all_pods()) {
        let mut all = Map::new();
        all.insert("name".into(), json!("pods"));
        all.insert("startTime".into(), json!(api.stats.boot.to_string()));
        put_usage(&mut all, &usage, api.stats.rate("pods", now, usage.cpu_ns), &time, None);
        node.insert("systemContainers".into(), json!([all]));
    }
    if extent == Extent::All {
        node.extend(network::summary(&network::of_node(api), &time).map(|shown| ("network".to_owned(), shown)));
        if let Ok((threads, most)) = api.stats.proc.threads() {
            node.insert("rlimit".into(), json!({"time": time, "maxpid": most, "curproc": threads}));
        }
        put_filesystems(&shared, &mut node, &time);
    }
    let mut summary = json!({"node": node, "pods": pods});
    drop_absent(&mut summary);
    json_answer(summary.to_string())
}

/// What is not known is left out. The document is as deep as it is written above.
fn drop_absent(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_absent);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_absent),
        _ => {}
    }
}

/// The file systems that pods share, and what of the runtime's is used.
#[derive(Default)]
struct Shared {
    node: Option<FileSystem>,
    image: Option<(FileSystem, Option<u64>)>,
    container: Option<(FileSystem, Option<u64>)>,
}

impl Shared {
    async fn look(api: &Api) -> Self {
        let info = api.stats.images.image_fs_info().await.unwrap_or_default();
        let read = |usage: Option<&FilesystemUsage>| {
            let usage = usage?;
            let place = usage.fs_id.as_ref().map(|id| id.mountpoint.clone()).unwrap_or_default();
            let fs = filesystem(Path::new(&place)).ok()?;
            Some((fs, usage.used_bytes.as_ref().map(|bytes| bytes.value)))
        };
        let image = read(info.image_filesystems.first());
        let own = info.container_filesystems.first().filter(|_| api.separate_disks);
        let container = read(own).or_else(|| read(info.image_filesystems.first()));
        Self { node: filesystem(&api.stats.root).ok(), image, container }
    }
}

/// Adds what a pod has on the disk: its volumes, its logs, its containers' own files, and all of its ephemeral storage.
fn put_disk(pod: &mut Value, used: &PodUse, shared: &Shared, time: &str) {
    let part = |room: Room, fs: Option<&FileSystem>| {
        let mut shown = fs.map_or_else(|| json!({}), |fs| file_system(fs, None, time));
        (shown["time"], shown["usedBytes"]) = (json!(time), json!(room.bytes));
        shown["inodesUsed"] = json!(room.inodes);
        shown
    };
    let node = shared.node.as_ref();
    let volumes = used.volumes.iter().map(|volume| {
        let mut shown = part(volume.used, node.filter(|_| !volume.in_memory));
        shown["name"] = json!(volume.name);
        shown
    });
    pod["volume"] = volumes.collect();
    pod["ephemeral-storage"] = part(used.ephemeral(), node);
    for container in pod["containers"].as_array_mut().into_iter().flatten() {
        let own = container["name"].as_str().and_then(|name| used.container(name));
        if let Some(own) = own {
            container["logs"] = part(own.logs, node);
            container["rootfs"] = part(own.layer, shared.container.as_ref().map(|(fs, _)| fs));
        }
    }
}

/// Adds the volumes of a pod that are claims.
fn put_claims<'a>(pod: &mut Value, claims: impl Iterator<Item = &'a ClaimRoom>, time: &str) {
    let mut volumes = pod["volume"].as_array().cloned().unwrap_or_default();
    for claim in claims {
        let mut shown = file_system(&claim.room, None, time);
        shown["name"] = json!(claim.volume);
        shown["pvcRef"] = json!({"name": claim.claim, "namespace": claim.namespace});
        if let Some(condition) = &claim.condition {
            shown["volumeHealthStats"] = json!({"abnormal": condition.is_abnormal});
        }
        volumes.push(shown);
    }
    if !volumes.is_empty() {
        pod["volume"] = Value::Array(volumes);
    }
}

fn put_filesystems(shared: &Shared, node: &mut Map<String, Value>, time: &str) {
    if let Some(fs) = &shared.node {
        node.insert("fs".into(), file_system(fs, None, time));
    }
    let shown = |part: &Option<(FileSystem, Option<u64>)>| part.as_ref().map(|(fs, used)| file_system(fs, *used, time));
    let (image, container) = (shown(&shared.image), shown(&shared.container));
    if image.is_some() || container.is_some() {
        node.insert("runtime".into(), json!({"imageFs": image, "containerFs": container}));
    }
}

fn file_system(fs: &FileSystem, used: Option<u64>, time: &str) -> Value {
    json!({
        "time": time, "availableBytes": fs.available, "capacityBytes": fs.capacity,
        "usedBytes": used.unwrap_or(fs.capacity.saturating_sub(fs.available)),
        "inodesFree": fs.inodes_free, "inodes": fs.inodes, "inodesUsed": fs.inodes.saturating_sub(fs.inodes_free),
    })
}

pub(super) fn by_pod(stats: &[ContainerStats]) -> BTreeMap<&str, Vec<&ContainerStats>> {
    let mut by_pod: BTreeMap<&str, Vec<&ContainerStats>> = BTreeMap::new();
    for one in stats {
        if let Some(uid) = one.attributes.as_ref().and_then(|attributes| attributes.labels.get(POD_UID)) {
            by_pod.entry(uid).or_default().push(one);
        }
    }
    by_pod
}

pub(super) fn name_of(stats: &ContainerStats) -> &str {
    let labels = stats.attributes.as_ref().map(|attributes| &attributes.labels);
    labels.and_then(|labels| labels.get(CONTAINER)).map(String::as_str).unwrap_or_default()
}

/// When a container that runs was started.
pub(super) fn started_at(status: &PodStatus, name: &str) -> Option<Time> {
    let all = status.container_statuses.iter().chain(&status.init_container_statuses);
    let mut running = all.filter(|status| status.name == name).filter_map(|status| status.state.running.as_ref());
    running.next().map(|running| running.started_at)
}

fn pod_stats(
    api: &Api,
    pod: &Pod,
    (figures, containers): (&Figures, &[&ContainerStats]),
    now: std::time::SystemTime,
    time: &str,
    extent: Extent,
) -> Value {
    let meta = &pod.metadata;
    let mut shown = Map::new();
    shown.insert("podRef".into(), json!({"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}));
    shown.insert("startTime".into(), json!(pod.status.start_time.unwrap_or_default().to_string()));
    let known = api.engine.pod_by_uid(&meta.uid);
    let pod = known.as_deref().unwrap_or(pod);
    let of_container = |one: &&ContainerStats| {
        let mut shown = container_stats(&pod.status, one, time, extent);
        match figures.are_of_runtime() {
            true => {
                figures::put_pressures(&mut shown, one.cpu.as_ref(), one.memory.as_ref(), one.io.as_ref(), time);
                figures::put_swap(&mut shown, one.swap.as_ref(), time);
            }
            false => put_pressures_of_group(api, pod, one, &mut shown, time),
        }
        Value::Object(shown)
    };
    shown.insert("containers".into(), containers.iter().map(of_container).collect());
    if figures.are_of_runtime() {
        if let Some(told) = figures.pod(&meta.uid) {
            figures::put_pod(&mut shown, told, containers, time, extent);
        }
        return Value::Object(shown);
    }
    let group = api.stats.groups.group(pod);
    if let Ok(usage) = api.stats.groups.cgroups().usage(&group) {
        put_usage(&mut shown, &usage, api.stats.rate(&meta.uid, now, usage.cpu_ns), time, None);
        shown.insert("process_stats".into(), json!({"process_count": usage.pids}));
    }
    if extent == Extent::All {
        let network = network::summary(&network::of_pod(api, pod), time);
        shown.extend(network.map(|network| ("network".to_owned(), network)));
    }
    Value::Object(shown)
}

fn container_stats(status: &PodStatus, stats: &ContainerStats, time: &str, extent: Extent) -> Map<String, Value> {
    let mut shown = Map::new();
    let name = name_of(stats);
    shown.insert("name".into(), json!(name));
    shown.insert("startTime".into(), json!(started_at(status, name).unwrap_or_default().to_string()));
    figures::put_usage(&mut shown, stats.cpu.as_ref(), stats.memory.as_ref(), time);
    if let (Extent::All, Some(layer)) = (extent, &stats.writable_layer) {
        let [used, inodes] = [&layer.used_bytes, &layer.inodes_used].map(|value| figures::number(value.as_ref()));
        shown.insert("rootfs".into(), json!({"time": time, "usedBytes": used, "inodesUsed": inodes}));
    }
    shown
}

/// How long a container's tasks waited, by its group.
fn put_pressures_of_group(api: &Api, pod: &Pod, stats: &ContainerStats, shown: &mut Map<String, Value>, time: &str) {
    let id = stats.attributes.as_ref().map(|own| own.id.as_str()).unwrap_or_default();
    let Some(usage) = super::cadvisor::usage_of(api, pod, id) else { return };
    let psi = usage.pressures;
    shown.extend(psi.io.map(|io| ("io".to_owned(), json!({"time": time, "psi": stalls(io)}))));
    for (part, of) in [("cpu", psi.cpu), ("memory", psi.memory)] {
        if let (Some(Value::Object(part)), Some(of)) = (shown.get_mut(part), of) {
            part.insert("psi".to_owned(), stalls(of));
        }
    }
}

fn put_usage(shown: &mut Map<String, Value>, usage: &Usage, rate: Option<u64>, time: &str, capacity: Option<u64>) {
    let psi = usage.pressures;
    shown.insert(
        "cpu".into(),
        json!({
            "time": time, "usageNanoCores": rate, "usageCoreNanoSeconds": usage.cpu_ns, "psi": psi.cpu.map(stalls),
        }),
    );
    shown.extend(psi.io.map(|io| ("io".to_owned(), json!({"time": time, "psi": stalls(io)}))));
    shown.insert(
        "memory".into(),
        json!({
            "time": time, "usageBytes": usage.memory_bytes, "workingSetBytes": usage.working_set_bytes,
            "rssBytes": usage.rss_bytes, "pageFaults": usage.page_faults, "majorPageFaults": usage.major_page_faults,
            "availableBytes": capacity.map(|capacity| capacity.saturating_sub(usage.working_set_bytes)),
            "psi": psi.memory.map(stalls),
        }),
    );
}

/// How long tasks waited for a resource.
fn stalls(pressure: Pressure) -> Value {
    let stall = |stall: Stall| {
        let [avg10, avg60, avg300] = stall.shares.map(|share| f64::from(share) / 100.0);
        json!({"total": stall.total_us, "avg10": avg10, "avg60": avg60, "avg300": avg300})
    };
    json!({"full": stall(pressure.full), "some": stall(pressure.some)})
}

/// `/metrics/resource`, which the cluster's metrics server reads.
pub(super) async fn resource_metrics(api: &Api) -> Response {
    let figures = Figures::ask(&*api.runtime, api.source).await;
    let mut out = Exposition::new(std::time::SystemTime::UNIX_EPOCH, api.clock.wall());
    let groups = api.stats.groups.cgroups();
    let swaps = api.stats.proc.memory().is_ok_and(|memory| memory.swap_total_bytes > 0);
    let mut swap = Swap { swaps, ..Swap::default() };
    if let Some(usage) = node_usage(groups, &api.stats.proc) {
        swap.take(Swap::NODE, "", || Some(usage.swap_bytes));
        out.family("node_cpu_usage_seconds_total", "counter", &[(String::new(), seconds(usage.cpu_ns))]);
        out.family("node_memory_working_set_bytes", "gauge", &[(String::new(), usage.working_set_bytes.to_string())]);
    }
    let (mut cpu, mut memory, mut pod_cpu, mut pod_memory) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut start = String::new();
    let failed = figures.is_err();
    let figures = figures.unwrap_or_default();
    let by_pod = by_pod(&figures.containers);
    for pod in api.engine.active_pods() {
        let (name, namespace) = (&pod.metadata.name, &pod.metadata.namespace);
        let status = api.engine.status(&pod.metadata.uid);
        for one in by_pod.get(pod.metadata.uid.as_str()).into_iter().flatten() {
            let labels = format!("{{container={:?},namespace={namespace:?},pod={name:?}}}", name_of(one));
            let id = one.attributes.as_ref().map(|attributes| attributes.id.as_str()).unwrap_or_default();
            swap.take(Swap::CONTAINER, &labels, || match figures.are_of_runtime() {
                true => figures::number(one.swap.as_ref()?.swap_usage_bytes.as_ref()),
                false => Some(super::cadvisor::usage_of(api, &pod, id)?.swap_bytes),
            });
            let used = one.cpu.as_ref().and_then(|cpu| cpu.usage_core_nano_seconds.as_ref());
            cpu.extend(used.map(|used| (labels.clone(), seconds(used.value))));
            let set = one.memory.as_ref().and_then(|memory| memory.working_set_bytes.as_ref());
            memory.extend(set.map(|set| (labels.clone(), set.value.to_string())));
            if let Some(at) = started_at(status.as_deref().unwrap_or(&pod.status), name_of(one)) {
                // This one is a time itself and carries none.
                let _ =
                    writeln!(start, "container_start_time_seconds{labels} {}", at.unix_seconds().unwrap_or_default());
            }
        }
        let labels = format!("{{namespace={namespace:?},pod={name:?}}}");
        let own = by_pod.get(pod.metadata.uid.as_str()).map(Vec::as_slice).unwrap_or_default();
        let PodTotals { cpu_ns, working_set_bytes, swap_bytes } = totals(api, &figures, &pod, own, swap.swaps);
        pod_cpu.extend(cpu_ns.map(|used| (labels.clone(), seconds(used))));
        swap.take(Swap::POD, &labels, || swap_bytes);
        pod_memory.extend(working_set_bytes.map(|set| (labels, set.to_string())));
    }
    out.family("container_cpu_usage_seconds_total", "counter", &cpu);
    out.family("container_memory_working_set_bytes", "gauge", &memory);
    if !start.is_empty() {
        let _ = write!(out.text, "# TYPE container_start_time_seconds gauge\n{start}");
    }
    out.family("pod_cpu_usage_seconds_total", "counter", &pod_cpu);
    out.family("pod_memory_working_set_bytes", "gauge", &pod_memory);
    for (name, samples) in &swap.families {
        out.family(name, "gauge", samples);
    }
    out.plain("resource_scrape_error", if failed { "1" } else { "0" });
    let mut response = text(StatusCode::OK, out.text);
    let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
    response
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
    let swap_bytes = if swaps { cgroups.usage(&group).ok().map(|usage| usage.swap_bytes) } else { None };
    PodTotals { cpu_ns: Some(usage.cpu_ns), working_set_bytes: Some(usage.working_set_bytes), swap_bytes }
}

/// Memory that was moved to disks, on machines that do that.
#[derive(Default)]
struct Swap {
    swaps: bool,
    families: BTreeMap<&'static str, Vec<Sample>>,
}

impl Swap {
    const NODE: &'static str = "node_swap_usage_bytes";
    const POD: &'static str = "pod_swap_usage_bytes";
    const CONTAINER: &'static str = "container_swap_usage_bytes";

    /// Where nothing is moved, nothing is read.
    fn take(&mut self, family: &'static str, labels: &str, bytes: impl FnOnce() -> Option<u64>) {
        if self.swaps
            && let Some(bytes) = bytes()
        {
            self.families.entry(family).or_default().push((labels.to_owned(), bytes.to_string()));
        }
    }
}

pub(super) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// Labels in braces, and a value.
pub(super) type Sample = (String, String);

/// Samples in Prometheus' text form, all read at one time.
pub(super) struct Exposition {
    pub(super) text: String,
    time_ms: u128,
}

impl Exposition {
    pub(super) fn new(epoch: std::time::SystemTime, now: std::time::SystemTime) -> Self {
        Self { text: String::new(), time_ms: now.duration_since(epoch).unwrap_or_default().as_millis() }
    }

    pub(super) fn family(&mut self, name: &str, kind: &str, samples: &[Sample]) {
        if samples.is_empty() {
            return;
        }
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(self.text, "{name}{labels} {value} {}", self.time_ms);
        }
    }

    fn plain(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.text, "# TYPE {name} gauge\n{name} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::{ContainerUse, VolumeUse};

    #[test]
    fn pressures_are_shown_where_the_kernel_tells() {
        let pressure = Pressure { some: Stall { shares: [150, 7, 10_000], total_us: 12 }, full: Stall::default() };
        let pressures = sys::cgroups::Pressures { io: Some(pressure), ..Default::default() };
        let mut shown = Map::new();
        put_usage(&mut shown, &Usage { pressures, ..Usage::default() }, None, "now", None);
        let some = json!({"total": 12, "avg10": 1.5, "avg60": 0.07, "avg300": 100.0});
        assert_eq!(shown["io"]["psi"]["some"], some);
        assert!(shown["cpu"]["psi"].is_null() && shown["memory"]["psi"].is_null());
    }

    #[test]
    fn pods_show_what_they_have_on_the_disk() {
        let room = |bytes| Room { bytes, inodes: 2 };
        let container = ContainerUse { name: "main".into(), logs: room(10), layer: room(5), ..ContainerUse::default() };
        let used = PodUse {
            containers: vec![container],
            volumes: vec![VolumeUse { name: "v".into(), used: room(100), in_memory: false }],
            other: room(1),
            ..PodUse::default()
        };
        let mut pod = json!({"containers": [{"name": "main"}, {"name": "other"}]});
        put_disk(&mut pod, &used, &Shared::default(), "now");
        assert_eq!(pod["ephemeral-storage"], json!({"time": "now", "usedBytes": 116, "inodesUsed": 8}));
        assert_eq!(pod["volume"], json!([{"time": "now", "usedBytes": 100, "inodesUsed": 2, "name": "v"}]));
        assert_eq!(pod["containers"][0]["logs"]["usedBytes"], 10);
        let fs = |capacity| FileSystem { capacity, available: 7, inodes: 50, inodes_free: 5 };
        let shared = Shared { node: Some(fs(1000)), container: Some((fs(2000), None)), ..Shared::default() };
        put_disk(&mut pod, &used, &shared, "now");
        let shown = |used: u64, capacity: u64| {
            json!({"time": "now", "usedBytes": used, "inodesUsed": 2, "availableBytes": 7, "capacityBytes": capacity,
                   "inodes": 50, "inodesFree": 5})
        };
        assert_eq!(pod["containers"][0]["logs"], shown(10, 1000));
        assert_eq!(pod["containers"][0]["rootfs"], shown(5, 2000));
        assert_eq!(pod["ephemeral-storage"]["capacityBytes"], 1000);
        assert_eq!(pod["volume"][0]["availableBytes"], 7);
        let (uid, namespace) = ("u".to_owned(), "ns".to_owned());
        let claim =
            ClaimRoom { uid, volume: "data".into(), namespace, claim: "disk".into(), room: fs(3000), condition: None };
        let condition = Some(crate::volumes::VolumeCondition { is_abnormal: true, message: "bad".into() });
        let claim = ClaimRoom { condition, ..claim };
        put_claims(&mut pod, [&claim].into_iter(), "now");
        assert_eq!(pod["volume"][1]["volumeHealthStats"], json!({"abnormal": true}));
        assert_eq!(pod["volume"][1]["pvcRef"], json!({"name": "disk", "namespace": "ns"}));
        assert_eq!((&pod["volume"][1]["name"], &pod["volume"][1]["usedBytes"]), (&json!("data"), &json!(2993)));
        assert!(pod["containers"][1].get("logs").is_none());
    }
}
