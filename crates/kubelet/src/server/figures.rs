//! What pods and their containers use, by the runtime's word.
//!
//! Of containers it is always asked; of pods as a whole only with the gate `PodAndContainerStatsFromCRI`
//! (<https://kep.k8s.io/2371>). Otherwise, and where the runtime cannot tell, control groups are read.

use std::collections::BTreeMap;

use node_api::cri::v1::{
    ContainerStats, CpuUsage, IoUsage, LinuxPodSandboxStats, MemoryUsage, NetworkInterfaceUsage, NetworkUsage,
    PodSandboxStats, PsiData, PsiStats, SwapUsage, UInt64Value,
};
use node_api::cri::{Code, CriError, Runtime};
use serde_json::{Map, Value, json};

use super::stats::Extent;

/// Whom figures of pods as a whole are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Groups,
    Runtime,
}

/// All figures of one moment.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) containers: Vec<ContainerStats>,
    /// By uid; none where control groups are to be read.
    pods: Option<BTreeMap<String, LinuxPodSandboxStats>>,
}

impl Figures {
    /// # Errors
    /// The runtime does not answer.
    pub(super) async fn ask(runtime: &dyn Runtime, source: Source) -> Result<Self, CriError> {
        if source == Source::Runtime {
            match runtime.list_pod_sandbox_stats(None).await {
                Ok(stats) => return Ok(Self::of_sandboxes(stats)),
                Err(error @ CriError::Rpc { code: Code::Unimplemented, .. }) => {
                    tracing::warn!(
                        %error,
                        "The container runtime cannot tell what pods use (gate PodAndContainerStatsFromCRI); control \
                         groups are read instead"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self { containers: runtime.list_container_stats(None).await?, pods: None })
    }

    /// Of several sandboxes of a pod the last one counts.
    fn of_sandboxes(stats: Vec<PodSandboxStats>) -> Self {
        let mut latest: BTreeMap<String, (u32, LinuxPodSandboxStats)> = BTreeMap::new();
        for one in stats {
            let Some(meta) = one.attributes.and_then(|attributes| attributes.metadata) else { continue };
            let Some(linux) = one.linux else { continue };
            if latest.get(&meta.uid).is_none_or(|(attempt, _)| *attempt <= meta.attempt) {
                latest.insert(meta.uid, (meta.attempt, linux));
            }
        }
        let mut figures = Self::default();
        let pods = latest.into_iter().map(|(uid, (_, mut linux))| {
            figures.containers.append(&mut linux.containers);
            (uid, linux)
        });
        figures.pods = Some(pods.collect());
        figures
    }

    /// Whether control groups are left alone.
    pub(super) fn are_of_runtime(&self) -> bool {
        self.pods.is_some()
    }

    /// What a pod as a whole uses, where the runtime has told.
    pub(super) fn pod(&self, uid: &str) -> Option<&LinuxPodSandboxStats> {
        self.pods.as_ref()?.get(uid)
    }
}

/// What a pod as a whole uses, in the form of `/stats/summary`. Memory on disks is that of its containers together, of which
/// alone the runtime tells.
pub(super) fn put_pod(
    shown: &mut Map<String, Value>,
    pod: &LinuxPodSandboxStats,
    containers: &[&ContainerStats],
    time: &str,
    extent: Extent,
) {
    put_usage(shown, pod.cpu.as_ref(), pod.memory.as_ref(), time);
    put_pressures(shown, pod.cpu.as_ref(), pod.memory.as_ref(), pod.io.as_ref(), time);
    let swaps = || containers.iter().filter_map(|one| one.swap.as_ref());
    if swaps().next().is_some() {
        let sum = |of: fn(&SwapUsage) -> Option<&UInt64Value>| {
            swaps().filter_map(of).fold(0u64, |all, own| all.saturating_add(own.value))
        };
        let available = sum(|own| own.swap_available_bytes.as_ref());
        let usage = sum(|own| own.swap_usage_bytes.as_ref());
        let swap = json!({"time": time, "swapAvailableBytes": available, "swapUsageBytes": usage});
        shown.insert("swap".into(), swap);
    }
    if let Some(process) = &pod.process {
        shown.insert("process_stats".into(), json!({"process_count": number(process.process_count.as_ref())}));
    }
    if let (Extent::All, Some(usage)) = (extent, &pod.network) {
        shown.insert("network".into(), network(usage, time));
    }
}

/// Processor time and memory.
pub(super) fn put_usage(
    shown: &mut Map<String, Value>,
    cpu: Option<&CpuUsage>,
    memory: Option<&MemoryUsage>,
    time: &str,
) {
    if let Some(cpu) = cpu {
        let used = json!({
            "time": time, "usageNanoCores": number(cpu.usage_nano_cores.as_ref()),
            "usageCoreNanoSeconds": number(cpu.usage_core_nano_seconds.as_ref()),
        });
        shown.insert("cpu".into(), used);
    }
    if let Some(memory) = memory {
        let used = json!({
            "time": time, "workingSetBytes": number(memory.working_set_bytes.as_ref()),
            "usageBytes": number(memory.usage_bytes.as_ref()), "rssBytes": number(memory.rss_bytes.as_ref()),
            "availableBytes": number(memory.available_bytes.as_ref()),
            "pageFaults": number(memory.page_faults.as_ref()),
            "majorPageFaults": number(memory.major_page_faults.as_ref()),
        });
        shown.insert("memory".into(), used);
    }
}

/// How long tasks waited, where the runtime tells.
pub(super) fn put_pressures(
    shown: &mut Map<String, Value>,
    cpu: Option<&CpuUsage>,
    memory: Option<&MemoryUsage>,
    io: Option<&IoUsage>,
    time: &str,
) {
    let parts = [("cpu", cpu.and_then(|own| own.psi.as_ref())), ("memory", memory.and_then(|own| own.psi.as_ref()))];
    for (part, psi) in parts {
        if let (Some(Value::Object(part)), Some(psi)) = (shown.get_mut(part), psi) {
            part.insert("psi".to_owned(), stalls(psi));
        }
    }
    if let Some(psi) = io.and_then(|own| own.psi.as_ref()) {
        shown.insert("io".into(), json!({"time": time, "psi": stalls(psi)}));
    }
}

/// What a container has moved to disks.
pub(super) fn put_swap(shown: &mut Map<String, Value>, swap: Option<&SwapUsage>, time: &str) {
    if let Some(swap) = swap {
        let used = json!({
            "time": time, "swapAvailableBytes": number(swap.swap_available_bytes.as_ref()),
            "swapUsageBytes": number(swap.swap_usage_bytes.as_ref()),
        });
        shown.insert("swap".into(), used);
    }
}

fn stalls(psi: &PsiStats) -> Value {
    let stall = |own: Option<&PsiData>| {
        let own = own.copied().unwrap_or_default();
        json!({"total": own.total, "avg10": own.avg10, "avg60": own.avg60, "avg300": own.avg300})
    };
    json!({"full": stall(psi.full.as_ref()), "some": stall(psi.some.as_ref())})
}

fn network(usage: &NetworkUsage, time: &str) -> Value {
    let one = |own: &NetworkInterfaceUsage| {
        json!({
            "name": own.name, "rxBytes": number(own.rx_bytes.as_ref()), "rxErrors": number(own.rx_errors.as_ref()),
            "txBytes": number(own.tx_bytes.as_ref()), "txErrors": number(own.tx_errors.as_ref()),
        })
    };
    let mut shown = usage.default_interface.as_ref().map_or_else(|| json!({"name": ""}), one);
    shown["time"] = json!(time);
    shown["interfaces"] = usage.interfaces.iter().map(one).collect();
    shown
}

/// A number that may be missing.
pub(super) fn number(value: Option<&UInt64Value>) -> Option<u64> {
    value.map(|value| value.value)
}

#[cfg(test)]
mod tests {
    use base::{SystemClock, TaskGroup};
    use node_api::cri::fake::FakeRuntime;
    use node_api::cri::v1::{PodSandboxAttributes, PodSandboxMetadata, ProcessUsage};

    use super::*;

    fn sandbox(uid: &str, attempt: u32, linux: Option<LinuxPodSandboxStats>) -> PodSandboxStats {
        let metadata = PodSandboxMetadata { uid: uid.into(), attempt, ..PodSandboxMetadata::default() };
        let attributes = PodSandboxAttributes { metadata: Some(metadata), ..PodSandboxAttributes::default() };
        PodSandboxStats { attributes: Some(attributes), linux, windows: None }
    }

    fn value(value: u64) -> Option<UInt64Value> {
        Some(UInt64Value { value })
    }

    fn using(bytes: u64) -> LinuxPodSandboxStats {
        let memory = MemoryUsage { working_set_bytes: value(bytes), ..MemoryUsage::default() };
        let swap = SwapUsage { swap_usage_bytes: value(bytes), swap_available_bytes: value(1), timestamp: 0 };
        let one = ContainerStats { memory: Some(memory), swap: Some(swap), ..ContainerStats::default() };
        LinuxPodSandboxStats { memory: Some(memory), containers: vec![one; 2], ..LinuxPodSandboxStats::default() }
    }

    #[test]
    fn the_last_sandbox_of_a_pod_counts() {
        let nameless = PodSandboxStats { attributes: None, ..sandbox("", 0, Some(using(9))) };
        let stats =
            vec![sandbox("a", 1, Some(using(2))), sandbox("a", 0, Some(using(1))), sandbox("b", 0, None), nameless];
        let figures = Figures::of_sandboxes(stats);
        let used = |uid| figures.pod(uid).and_then(|pod| number(pod.memory?.working_set_bytes.as_ref()));
        assert_eq!((used("a"), used("b"), used("")), (Some(2), None, None));
        assert!(figures.are_of_runtime() && figures.containers.len() == 2);
    }

    #[tokio::test]
    async fn groups_are_read_where_the_runtime_cannot_tell() {
        let runtime = FakeRuntime::new(SystemClock::shared(), &TaskGroup::new("runtime"));
        let asked = |source| {
            let runtime = runtime.clone();
            async move { Figures::ask(&runtime, source).await.map(|figures| figures.are_of_runtime()) }
        };
        assert!(!asked(Source::Groups).await.unwrap() && asked(Source::Runtime).await.unwrap());
        let failed = |code| CriError::rpc("list_podsandbox_stats", code, "no");
        runtime.fail_next("list_podsandbox_stats", failed(Code::Unimplemented));
        assert!(!asked(Source::Runtime).await.unwrap());
        runtime.fail_next("list_podsandbox_stats", failed(Code::Unavailable));
        assert!(asked(Source::Runtime).await.is_err());
    }

    #[test]
    fn a_pod_shows_what_the_runtime_tells() {
        let data = PsiData { total: 7, avg10: 1.5, ..PsiData::default() };
        let psi = Some(PsiStats { full: None, some: Some(data) });
        let eth0 = NetworkInterfaceUsage { name: "eth0".into(), rx_bytes: value(5), ..Default::default() };
        let pod = LinuxPodSandboxStats {
            cpu: Some(CpuUsage { usage_core_nano_seconds: value(3), psi, ..CpuUsage::default() }),
            network: Some(NetworkUsage {
                default_interface: Some(eth0.clone()),
                interfaces: vec![eth0],
                ..NetworkUsage::default()
            }),
            process: Some(ProcessUsage { process_count: value(4), timestamp: 0 }),
            io: Some(IoUsage { psi, timestamp: 0 }),
            ..using(6)
        };
        let containers: Vec<&ContainerStats> = pod.containers.iter().collect();
        let mut shown = Map::new();
        put_pod(&mut shown, &pod, &containers, "now", Extent::All);
        assert_eq!(
            (&shown["cpu"]["usageCoreNanoSeconds"], &shown["memory"]["workingSetBytes"]),
            (&json!(3), &json!(6))
        );
        assert_eq!(shown["cpu"]["psi"]["some"], json!({"total": 7, "avg10": 1.5, "avg60": 0.0, "avg300": 0.0}));
        assert_eq!((&shown["io"]["psi"]["some"]["total"], shown["memory"].get("psi")), (&json!(7), None));
        assert_eq!(shown["swap"], json!({"time": "now", "swapAvailableBytes": 2, "swapUsageBytes": 12}));
        assert_eq!(
            (&shown["network"]["rxBytes"], &shown["network"]["interfaces"][0]["name"]),
            (&json!(5), &json!("eth0"))
        );
        assert_eq!(shown["process_stats"], json!({"process_count": 4}));
        let mut less = Map::new();
        put_pod(&mut less, &pod, &[], "now", Extent::CpuAndMemory);
        assert!(!less.contains_key("network") && !less.contains_key("swap"));
    }
}
