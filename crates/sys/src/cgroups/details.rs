//! What a group may use, and figures that only those ask for who look at a machine in full.
//!
//! A group of version 2 tells less of its memory than one of version 1; what it does not tell is 0, as cAdvisor shows it.

use std::collections::BTreeMap;
use std::path::Path;

use super::Limit;
use super::hierarchy::{keyed, number, read};
use super::v1::V1;
use super::{CgroupPath, v2};

/// A limit of version 1 that is none is the largest number of whole pages.
const UNLIMITED: u64 = 1 << 62;
const READ: &str = "Read";
const WRITE: &str = "Write";
/// Kinds of requests to devices that version 1 tells apart.
const OPERATIONS: [&str; 6] = [READ, WRITE, "Sync", "Async", "Discard", "Total"];

/// Limits and figures of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// `None` where the controller is not there, as in the root of version 2.
    pub cpu: Option<CpuShare>,
    pub memory: Option<MemoryLimits>,
    /// Parts of [`super::Usage::cache_bytes`].
    pub mapped_file_bytes: u64,
    pub active_file_bytes: u64,
    pub inactive_file_bytes: u64,
    /// Version 1 only.
    pub kernel_bytes: u64,
    pub max_usage_bytes: u64,
    /// How often memory was at its limit; version 1 only.
    pub limit_hits: u64,
    pub threads: u64,
    /// 0 for as many as there can be.
    pub threads_max: u64,
    /// The processes in the group itself.
    pub processes: Vec<u32>,
    pub devices: Vec<DeviceUse>,
}

/// What a group gets of the processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuShare {
    /// Relative weight on version 1's scale, 1024 per processor.
    pub shares: u64,
    /// Microseconds of CPU time per period, where they are limited.
    pub quota_us: Option<u64>,
    pub period_us: u64,
}

/// What a group gets of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    pub bytes: Limit,
    /// Of what is moved to disks; under version 1 of that and memory together.
    pub swap_bytes: Limit,
    /// From here on memory is reclaimed.
    pub reservation_bytes: Limit,
}

/// What went from and to a block device, by the kind of request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceUse {
    pub major: u32,
    pub minor: u32,
    pub bytes: BTreeMap<&'static str, u64>,
    pub requests: BTreeMap<&'static str, u64>,
}

pub(super) fn of_v2(directory: &Path) -> Details {
    let text = |name: &str| read(&directory.join(name)).ok();
    let stat = text("memory.stat").unwrap_or_default();
    Details {
        cpu: text("cpu.weight").map(|weight| cpu_share(&weight, &text("cpu.max").unwrap_or_default())),
        memory: text("memory.max").map(|bytes| MemoryLimits {
            bytes: limit(&bytes),
            swap_bytes: limit(&text("memory.swap.max").unwrap_or_default()),
            reservation_bytes: limit(&text("memory.high").unwrap_or_default()),
        }),
        mapped_file_bytes: keyed(&stat, "file_mapped"),
        active_file_bytes: keyed(&stat, "active_file"),
        inactive_file_bytes: keyed(&stat, "inactive_file"),
        max_usage_bytes: number(&directory.join("memory.peak")),
        threads: number(&directory.join("pids.current")),
        threads_max: number(&directory.join("pids.max")),
        processes: processes(directory),
        devices: devices_of_v2(&text("io.stat").unwrap_or_default()),
        ..Details::default()
    }
}

pub(super) fn of_v1(v1: &V1, group: &CgroupPath) -> Details {
    let directory = |controller: &str| Some(v1.hierarchy(controller)?.directory(group));
    let mut details = Details::default();
    if let Some(cpu) = directory("cpu") {
        let value = |name: &str| number(&cpu.join(name));
        let (shares, period_us) = (value("cpu.shares"), value("cpu.cfs_period_us"));
        // -1 where there is none, which is no number here.
        let quota_us = Some(value("cpu.cfs_quota_us")).filter(|quota| *quota > 0);
        details.cpu = Some(CpuShare { shares, quota_us, period_us });
        details.processes = processes(&cpu);
    }
    if let Some(memory) = directory("memory") {
        let value = |name: &str| number(&memory.join(name));
        let limit = |name: &str| read(&memory.join(name)).map_or(Limit::To(0), |text| limit(&text));
        details.memory = Some(MemoryLimits {
            bytes: limit("memory.limit_in_bytes"),
            swap_bytes: limit("memory.memsw.limit_in_bytes"),
            reservation_bytes: limit("memory.soft_limit_in_bytes"),
        });
        let stat = read(&memory.join("memory.stat")).unwrap_or_default();
        details.mapped_file_bytes = keyed(&stat, "total_mapped_file");
        details.active_file_bytes = keyed(&stat, "total_active_file");
        details.inactive_file_bytes = keyed(&stat, "total_inactive_file");
        details.kernel_bytes = value("memory.kmem.usage_in_bytes");
        details.max_usage_bytes = value("memory.max_usage_in_bytes");
        details.limit_hits = value("memory.failcnt");
    }
    if let Some(pids) = directory("pids") {
        details.threads = number(&pids.join("pids.current"));
        details.threads_max = number(&pids.join("pids.max"));
    }
    if let Some(blkio) = directory("blkio") {
        let text = |name: &str| read(&blkio.join(name)).unwrap_or_default();
        let bytes = text("blkio.throttle.io_service_bytes_recursive");
        details.devices = devices_of_v1(&bytes, &text("blkio.throttle.io_serviced_recursive"));
    }
    details
}

/// A number, or `max`; what is not there is 0.
fn limit(text: &str) -> Limit {
    match text.trim() {
        "max" => Limit::Unlimited,
        text => match text.parse::<u64>() {
            Ok(value) if value > UNLIMITED => Limit::Unlimited,
            Ok(value) => Limit::To(value),
            Err(_) => Limit::To(0),
        },
    }
}

/// `cpu.max` is a quota, or `max`, and a period.
fn cpu_share(weight: &str, max: &str) -> CpuShare {
    let mut parts = max.split_whitespace().map(|part| part.parse::<u64>().ok());
    let quota_us = parts.next().flatten();
    let period_us = parts.next().flatten().unwrap_or_default();
    let shares = weight.trim().parse().map_or(0, v2::shares);
    CpuShare { shares, quota_us, period_us }
}

fn processes(directory: &Path) -> Vec<u32> {
    let text = read(&directory.join("cgroup.procs")).unwrap_or_default();
    // 0 stands for a process of another namespace.
    text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid != 0).collect()
}

/// `major:minor`.
fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Lines such as `8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6`.
fn devices_of_v2(text: &str) -> Vec<DeviceUse> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (major, minor) = device(words.next()?)?;
        let mut used = DeviceUse { major, minor, ..DeviceUse::default() };
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let Ok(value) = value.parse() else { continue };
            match name {
                "rbytes" => drop(used.bytes.insert(READ, value)),
                "wbytes" => drop(used.bytes.insert(WRITE, value)),
                "rios" => drop(used.requests.insert(READ, value)),
                "wios" => drop(used.requests.insert(WRITE, value)),
                _ => {}
            }
        }
        // A device that was never used has its number alone.
        Some(used).filter(|used| !used.bytes.is_empty() || !used.requests.is_empty())
    };
    text.lines().filter_map(line).collect()
}

/// Lines such as `8:0 Read 123`, and a last one without a device.
fn devices_of_v1(bytes: &str, requests: &str) -> Vec<DeviceUse> {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let device = device(words.next()?)?;
        let name = words.next()?;
        let operation = OPERATIONS.into_iter().find(|known| *known == name)?;
        Some((device, operation, words.next()?.parse::<u64>().ok()?))
    };
    let mut devices: BTreeMap<(u32, u32), DeviceUse> = BTreeMap::new();
    for (is_bytes, text) in [(true, bytes), (false, requests)] {
        for ((major, minor), operation, value) in text.lines().filter_map(line) {
            let used =
                devices.entry((major, minor)).or_insert_with(|| DeviceUse { major, minor, ..DeviceUse::default() });
            let counts = if is_bytes { &mut used.bytes } else { &mut used.requests };
            counts.insert(operation, value);
        }
    }
    devices.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Cgroups as _, LinuxCgroups};
    use super::*;

    fn laid_out(files: &[(&str, &str)]) -> (tempfile::TempDir, LinuxCgroups) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let cgroups = LinuxCgroups::at(root.path());
        (root, cgroups)
    }

    fn device_use(numbers: (u32, u32), bytes: &[(&'static str, u64)], requests: &[(&'static str, u64)]) -> DeviceUse {
        let (major, minor) = numbers;
        DeviceUse { major, minor, bytes: bytes.iter().copied().collect(), requests: requests.iter().copied().collect() }
    }

    #[test]
    fn a_group_of_version_2_tells_its_limits_and_figures() {
        let (_root, cgroups) = laid_out(&[
            ("cgroup.controllers", "cpu memory pids io\n"),
            ("pod/cpu.weight", "39\n"),
            ("pod/cpu.max", "50000 100000\n"),
            ("pod/memory.max", "1000\n"),
            ("pod/memory.high", "max\n"),
            ("pod/memory.swap.max", "0\n"),
            ("pod/memory.peak", "900\n"),
            ("pod/memory.stat", "anon 1\nfile_mapped 2\nactive_file 3\ninactive_file 4\n"),
            ("pod/pids.current", "7\n"),
            ("pod/pids.max", "max\n"),
            ("pod/cgroup.procs", "12\n0\n34\n"),
            ("pod/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n7:1 \nodd\n"),
            ("pod/child/cgroup.procs", "99\n"),
        ]);
        let expected = Details {
            cpu: Some(CpuShare { shares: 998, quota_us: Some(50_000), period_us: 100_000 }),
            memory: Some(MemoryLimits {
                bytes: Limit::To(1000),
                swap_bytes: Limit::To(0),
                reservation_bytes: Limit::Unlimited,
            }),
            mapped_file_bytes: 2,
            active_file_bytes: 3,
            inactive_file_bytes: 4,
            max_usage_bytes: 900,
            threads: 7,
            processes: vec![12, 34],
            devices: vec![device_use((8, 0), &[("Read", 1), ("Write", 2)], &[("Read", 3), ("Write", 4)])],
            ..Details::default()
        };
        assert_eq!(cgroups.details(&CgroupPath::new("pod").unwrap()), expected);
        let root = cgroups.details(&CgroupPath::new("").unwrap());
        assert_eq!((root.cpu, root.memory), (None, None), "the root is not limited");
    }

    #[test]
    fn a_group_of_version_1_tells_its_limits_and_figures() {
        let (_root, cgroups) = laid_out(&[
            ("cpu/cgroup.procs", ""),
            ("cpu/pod/cgroup.procs", "12\n"),
            ("cpu/pod/cpu.shares", "512\n"),
            ("cpu/pod/cpu.cfs_quota_us", "-1\n"),
            ("cpu/pod/cpu.cfs_period_us", "100000\n"),
            ("memory/cgroup.procs", ""),
            ("memory/pod/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/pod/memory.memsw.limit_in_bytes", "2000\n"),
            ("memory/pod/memory.soft_limit_in_bytes", "10\n"),
            ("memory/pod/memory.kmem.usage_in_bytes", "5\n"),
            ("memory/pod/memory.max_usage_in_bytes", "6\n"),
            ("memory/pod/memory.failcnt", "7\n"),
            (
                "memory/pod/memory.stat",
                "mapped_file 0\ntotal_mapped_file 2\ntotal_active_file 3\ntotal_inactive_file 4\n",
            ),
            ("pids/cgroup.procs", ""),
            ("pids/pod/pids.current", "8\n"),
            ("pids/pod/pids.max", "100\n"),
            ("blkio/cgroup.procs", ""),
            ("blkio/pod/blkio.throttle.io_service_bytes_recursive", "8:0 Read 1\n8:0 Total 1\n8:0 Odd 9\nTotal 1\n"),
            ("blkio/pod/blkio.throttle.io_serviced_recursive", "8:0 Read 2\n8:16 Write 3\n"),
        ]);
        let expected = Details {
            cpu: Some(CpuShare { shares: 512, quota_us: None, period_us: 100_000 }),
            memory: Some(MemoryLimits {
                bytes: Limit::Unlimited,
                swap_bytes: Limit::To(2000),
                reservation_bytes: Limit::To(10),
            }),
            mapped_file_bytes: 2,
            active_file_bytes: 3,
            inactive_file_bytes: 4,
            kernel_bytes: 5,
            max_usage_bytes: 6,
            limit_hits: 7,
            threads: 8,
            threads_max: 100,
            processes: vec![12],
            devices: vec![
                device_use((8, 0), &[("Read", 1), ("Total", 1)], &[("Read", 2)]),
                device_use((8, 16), &[], &[("Write", 3)]),
            ],
        };
        assert_eq!(cgroups.details(&CgroupPath::new("pod").unwrap()), expected);
    }
}
