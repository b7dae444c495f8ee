//! `/stats/summary`: what the node, its pods and their containers use.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodStatus};
use component_base::serving::{Response, text};
use http::StatusCode;
use kubelet_pods::runtime::labels;
use node_api::cri::v1::{ContainerStats, FilesystemUsage, UInt64Value};
use node_api::cri::{CriError, Images};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sys::cgroups::{CgroupPath, Limit, Pressure, Stall, Usage};
use sys::proc::Proc;

use super::figures::{self, Figures};
use super::resource::{self, Swap};
use super::route::json_answer;
use super::{Api, container_use, network};
use crate::eviction::{Gauge, Parts, PodUse, PodUses, Room};
use crate::node::{FileSystem, filesystem};
use crate::resources::{PodGroups, node_usage};
use crate::volumes::ClaimRoom;

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
    /// Cores and sockets of the machine, once somebody has asked.
    layout: OnceLock<(usize, usize)>,
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
            layout: OnceLock::new(),
        }
    }

    pub(super) fn proc(&self) -> &Proc {
        &self.proc
    }

    /// Cores and sockets of the machine, which are counted once.
    pub(super) fn layout(&self, count: impl FnOnce() -> (usize, usize)) -> (usize, usize) {
        *self.layout.get_or_init(count)
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
    let figures = match figures_of(api, extent, now).await {
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
        let most = api.stats.proc.memory().unwrap_or_default().swap_total_bytes;
        put_swap(&mut node, Swap::of_group(usage.swap_bytes, Limit::To(most)), &time);
    }
    let all_pods = api.stats.groups.all_pods();
    if let Ok(usage) = api.stats.groups.cgroups().usage(&all_pods) {
        let mut all = Map::new();
        all.insert("name".into(), json!("pods"));
        all.insert("startTime".into(), json!(api.stats.boot.to_string()));
        put_usage(&mut all, &usage, api.stats.rate("pods", now, usage.cpu_ns), &time, None);
        put_swap_of_group(api, &all_pods, &usage, &mut all, &time);
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

/// All that the runtime tells, or what is asked for alone, which groups tell as well.
async fn figures_of(api: &Api, extent: Extent, now: std::time::SystemTime) -> Result<Figures, CriError> {
    if extent == Extent::All {
        return Figures::ask(&*api.runtime, api.source).await;
    }
    let mut figures = container_use::figures(api, container_use::whole).await?;
    if figures.are_of_runtime() {
        return Ok(figures);
    }
    for one in &mut figures.containers {
        let id = one.attributes.as_ref().map(|attributes| attributes.id.as_str()).unwrap_or_default();
        let Some(cpu) = one.cpu.as_mut().filter(|cpu| cpu.usage_nano_cores.is_none()) else { continue };
        let rate = figures::number(cpu.usage_core_nano_seconds.as_ref()).and_then(|used| api.stats.rate(id, now, used));
        cpu.usage_nano_cores = rate.map(|value| UInt64Value { value });
    }
    Ok(figures)
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
        if let Some(uid) = one.attributes.as_ref().and_then(|attributes| attributes.labels.get(labels::POD_UID)) {
            by_pod.entry(uid).or_default().push(one);
        }
    }
    by_pod
}

pub(super) fn name_of(stats: &ContainerStats) -> &str {
    let own = stats.attributes.as_ref().map(|attributes| &attributes.labels);
    own.and_then(|own| own.get(labels::CONTAINER_NAME)).map(String::as_str).unwrap_or_default()
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
            false => {
                put_pressures_of_group(api, pod, one, &mut shown, time);
                put_swap(&mut shown, resource::swap_of(api, pod, one, swaps(api)), time);
            }
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
        put_swap_of_group(api, &group, &usage, &mut shown, time);
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
    let Some(group) = super::cadvisor::container_group(&api.stats.groups, pod, id) else { return };
    let Ok(usage) = api.stats.groups.cgroups().usage(&group) else { return };
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

/// Whether the machine moves memory to disks.
fn swaps(api: &Api) -> bool {
    api.stats.proc.memory().is_ok_and(|memory| memory.swap_total_bytes > 0)
}

/// What a group has moved to disks, and may move still.
fn put_swap_of_group(api: &Api, group: &CgroupPath, usage: &Usage, shown: &mut Map<String, Value>, time: &str) {
    if let Some(memory) = api.stats.groups.cgroups().details(group).memory {
        put_swap(shown, Swap::of_group(usage.swap_bytes, memory.swap_bytes), time);
    }
}

/// Absent where nothing is known.
fn put_swap(shown: &mut Map<String, Value>, swap: Swap, time: &str) {
    if swap != Swap::default() {
        let shown_swap = json!({"time": time, "swapAvailableBytes": swap.available, "swapUsageBytes": swap.usage});
        shown.insert("swap".into(), shown_swap);
    }
}

/// How long tasks waited for a resource.
fn stalls(pressure: Pressure) -> Value {
    let stall = |stall: Stall| {
        let [avg10, avg60, avg300] = stall.shares.map(|share| f64::from(share) / 100.0);
        json!({"total": stall.total_us, "avg10": avg10, "avg60": avg60, "avg300": avg300})
    };
    json!({"full": stall(pressure.full), "some": stall(pressure.some)})
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
    fn swap_is_shown_with_what_is_left_of_it() {
        for (swap, expected) in [
            (Swap::default(), Value::Null),
            (Swap::of_group(0, Limit::To(0)), json!({"time": "now", "swapUsageBytes": 0, "swapAvailableBytes": 0})),
            (Swap::of_group(7, Limit::To(10)), json!({"time": "now", "swapUsageBytes": 7, "swapAvailableBytes": 3})),
            (Swap::of_group(7, Limit::Unlimited), json!({"time": "now", "swapUsageBytes": 7})),
        ] {
            let mut shown = Map::new();
            put_swap(&mut shown, swap, "now");
            let mut shown = shown.remove("swap").unwrap_or_default();
            drop_absent(&mut shown);
            assert_eq!(shown, expected, "{swap:?}");
        }
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
