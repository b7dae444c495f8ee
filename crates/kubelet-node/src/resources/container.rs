//! The limits of one container, as the runtime is told them.

use std::collections::{BTreeMap, HashMap};

use api_types::core_v1::{Container, Pod};
use component_helpers::{pod_requests, qos};
use node_api::cri::v1;
use sys::cgroups::Version;

use super::MemoryQos;
use super::swap::SwapBehavior;
use super::{cpu, oom};

/// What of the node's configuration limits depend on.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerLimits {
    /// `cpuCFSQuota`.
    pub cpu_quota: bool,
    /// `cpuCFSQuotaPeriod` in microseconds.
    pub cpu_period_us: i64,
    pub version: Version,
    /// Whether swap is counted, so that it can be denied.
    pub swap_accounting: bool,
    pub swap: SwapBehavior,
    /// `singleProcessOOMKill`.
    pub single_process_oom_kill: bool,
    /// The machine's huge page sizes in the kernel's words (`2MB`).
    pub huge_pages: Vec<String>,
    /// The machine's memory.
    pub memory_capacity: i64,
    /// Gate `MemoryQoS`.
    pub memory_qos: Option<MemoryQos>,
}

impl ContainerLimits {
    /// The limits of a container.
    pub fn of(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources {
        let (requests, limits) = (&container.resources.requests, &container.resources.limits);
        let request =
            requests.get("cpu").or_else(|| limits.get("cpu")).map_or(0, api_machinery::quantity::Quantity::milli_value);
        let of_pod = |name: &str| pod.spec.resources.as_ref().and_then(|all| all.limits.get(name));
        let memory =
            limits.get("memory").or_else(|| of_pod("memory")).map_or(0, api_machinery::quantity::Quantity::value);
        let mut resources = v1::LinuxContainerResources {
            cpu_shares: cpu::shares(request),
            memory_limit_in_bytes: memory,
            oom_score_adj: oom::score_adj(pod, container, self.memory_capacity),
            hugepage_limits: self.huge_page_limits(pod, container),
            unified: self.unified(pod, container, memory),
            ..v1::LinuxContainerResources::default()
        };
        if self.cpu_quota {
            let limit = pod_requests::amount(limits, "cpu").milli_value();
            resources.cpu_period = self.cpu_period_us;
            resources.cpu_quota = cpu::quota_us(limit, self.cpu_period_us);
        }
        if self.version == Version::V1 && self.swap_accounting {
            // Memory and swap together may be as much as memory alone: no swap.
            resources.memory_swap_limit_in_bytes = memory;
        }
        resources
    }

    fn unified(&self, pod: &Pod, container: &Container, memory_limit: i64) -> HashMap<String, String> {
        let mut unified = HashMap::new();
        if self.version == Version::V2 {
            if !self.single_process_oom_kill {
                unified.insert("memory.oom.group".to_owned(), "1".to_owned());
            }
            if self.swap_accounting {
                let bytes = self.swap.limit(pod, container, self.memory_capacity);
                unified.insert("memory.swap.max".to_owned(), bytes.to_string());
            }
            if let Some(memory) = &self.memory_qos {
                let request = pod_requests::amount(&container.resources.requests, "memory").value();
                unified.extend(memory.of(qos::class_of(pod), request, memory_limit));
            }
        }
        unified
    }

    fn huge_page_limits(&self, pod: &Pod, container: &Container) -> Vec<v1::HugepageLimit> {
        let of_pod = pod.spec.resources.as_ref().map(|all| &all.limits);
        let asked: BTreeMap<String, u64> = of_pod
            .into_iter()
            .chain([&container.resources.limits])
            .flat_map(|limits| limits.iter())
            .filter_map(|(name, amount)| {
                let size = kernel_size(name.strip_prefix("hugepages-")?)?;
                Some((size, u64::try_from(amount.value()).unwrap_or_default()))
            })
            .collect();
        let limit = |size: &String| v1::HugepageLimit {
            page_size: size.clone(),
            limit: asked.get(size).copied().unwrap_or_default(),
        };
        self.huge_pages.iter().map(limit).collect()
    }
}

/// A page size in the kernel's words: `2Mi` is `2MB`, `1Gi` is `1GB`.
pub fn kernel_size(size: &str) -> Option<String> {
    let bytes = u64::try_from(api_machinery::quantity::Quantity::parse(size).ok()?.value()).ok()?;
    Some(size_name(bytes))
}

/// A number of bytes in the kernel's words, in the largest unit that fits.
pub fn size_name(bytes: u64) -> String {
    let units = [(1u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")];
    for (unit, name) in units {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;

    use super::super::MemoryReservation;
    use super::*;

    fn limits(version: Version) -> ContainerLimits {
        ContainerLimits {
            cpu_quota: true,
            cpu_period_us: 100_000,
            version,
            swap_accounting: true,
            swap: SwapBehavior::NoSwap,
            single_process_oom_kill: false,
            huge_pages: vec!["2MB".into()],
            memory_capacity: 1 << 30,
            memory_qos: None,
        }
    }

    fn container(requests: &[(&str, &str)], maxima: &[(&str, &str)]) -> Container {
        let mut container = Container::default();
        let list = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), Quantity::parse(text).unwrap())).collect()
        };
        container.resources.requests = list(requests);
        container.resources.limits = list(maxima);
        container
    }

    #[test]
    fn requests_and_limits_are_translated() {
        let pod = Pod::default();
        let cases = [
            (container(&[], &[]), (2, 0, 0)),
            (container(&[("cpu", "250m")], &[("cpu", "500m"), ("memory", "64Mi")]), (256, 50_000, 67_108_864)),
            (container(&[], &[("cpu", "1")]), (1024, 100_000, 0)),
            (container(&[("cpu", "0")], &[("cpu", "1")]), (2, 100_000, 0)),
        ];
        for (container, expected) in cases {
            let made = limits(Version::V2).of(&pod, &container);
            assert_eq!((made.cpu_shares, made.cpu_quota, made.memory_limit_in_bytes), expected);
            assert_eq!(made.unified.get("memory.oom.group").map(String::as_str), Some("1"));
            assert_eq!(made.hugepage_limits.len(), 1);
        }
        let v1 = limits(Version::V1).of(&pod, &container(&[], &[("memory", "64Mi"), ("hugepages-2Mi", "4Mi")]));
        assert_eq!((v1.memory_swap_limit_in_bytes, v1.unified.len()), (67_108_864, 0));
        assert_eq!(v1.hugepage_limits[0].limit, 4 << 20);
        let mut pod = Pod::default();
        let half = container(&[("memory", "512Mi")], &[]);
        pod.spec.containers = vec![half.clone()];
        let swap =
            |swap| ContainerLimits { swap, ..limits(Version::V2) }.of(&pod, &half).unified["memory.swap.max"].clone();
        let limited = SwapBehavior::Limited { swap_bytes: 1 << 20 };
        assert_eq!((swap(SwapBehavior::NoSwap), swap(limited)), ("0".to_owned(), "524288".to_owned()));
        let free = ContainerLimits { cpu_quota: false, ..limits(Version::V1) };
        assert_eq!(free.of(&pod, &container(&[], &[("cpu", "1")])).cpu_quota, 0);
    }

    #[test]
    fn memory_is_slowed_down_where_that_is_on_and_the_machine_can() {
        let pod = Pod::default();
        let half = container(&[("memory", "1Mi")], &[("memory", "2Mi")]);
        let reservation = MemoryReservation::Tiered;
        let qos = MemoryQos { throttling_factor: 0.5, allocatable_bytes: 1 << 30, reservation };
        let high = |memory_qos, version| {
            let limits = ContainerLimits { memory_qos, ..limits(version) };
            limits.of(&pod, &half).unified.get("memory.high").cloned()
        };
        assert_eq!(high(Some(qos), Version::V2).as_deref(), Some("1572864"));
        assert_eq!((high(None, Version::V2), high(Some(qos), Version::V1)), (None, None));
        // The pod's limit is the container's where that has none.
        let mut pod = Pod::default();
        let limits_of_pod = half.resources.limits.clone();
        pod.spec.resources =
            Some(api_types::core_v1::ResourceRequirements { limits: limits_of_pod, ..Default::default() });
        let bare = container(&[("memory", "1Mi")], &[]);
        let limits = ContainerLimits { memory_qos: Some(qos), ..limits(Version::V2) };
        let files = limits.of(&pod, &bare).unified;
        assert_eq!((files["memory.high"].as_str(), files["memory.low"].as_str()), ("1572864", "1048576"));
    }

    #[test]
    fn sizes_have_the_kernels_names() {
        let cases = [("2Mi", "2MB"), ("1Gi", "1GB"), ("64Ki", "64KB"), ("1536Mi", "1536MB")];
        for (size, expected) in cases {
            assert_eq!(kernel_size(size).as_deref(), Some(expected));
        }
        assert_eq!(kernel_size("x"), None);
    }
}
