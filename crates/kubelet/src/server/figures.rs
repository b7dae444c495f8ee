//! What pods and their containers use, by the runtime's word, in the form of `/stats/summary`.

use node_api::cri::v1::{
    ContainerStats, CpuUsage, IoUsage, LinuxPodSandboxStats, MemoryUsage, NetworkInterfaceUsage, NetworkUsage, PsiData,
    PsiStats, SwapUsage, UInt64Value,
};
use serde_json::{Map, Value, json};

pub(crate) use kubelet_pods::runtime::figures::{Figures, Source};

use super::stats::Extent;

/// What a pod as a whole uses. Memory on disks is that of its containers together, of which
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
    use node_api::cri::v1::ProcessUsage;

    use super::*;

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
