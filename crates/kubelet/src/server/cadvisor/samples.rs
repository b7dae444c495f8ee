//! What was read of a group or a disk, as samples.

use std::collections::BTreeMap;

use sys::cgroups::{CpuShare, DeviceUse, Limit, MemoryLimits, Pressures, Usage};
use sys::proc::{Disk, Interface};

use super::reading::{DiskReading, Reading};
use super::with;
use crate::server::exposition::{Exposition, seconds};

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

/// States of tasks, which upstream counts only with a reader of the load that it never turns on.
const TASK_STATES: [&str; 5] = ["iowaiting", "running", "sleeping", "stopped", "uninterruptible"];

/// All of a group.
pub(super) fn put_group(out: &mut Exposition, labels: &str, reading: &Reading, devices: &BTreeMap<(u32, u32), String>) {
    let Reading { usage, details, open, open_files_limit } = reading;
    put_cpu(out, labels, usage, details.cpu.is_some_and(|cpu| cpu.quota_us.is_some()));
    put_memory(out, labels, reading);
    put_pressures(out, labels, &usage.pressures);
    for device in &details.devices {
        let name = devices.get(&(device.major, device.minor)).map(String::as_str).unwrap_or_default();
        put_device(out, labels, device, name);
    }
    out.put("container_processes", labels, details.processes.len());
    out.put("container_threads", labels, details.threads);
    out.put("container_threads_max", labels, details.threads_max);
    out.put("container_file_descriptors", labels, open.files);
    out.put("container_sockets", labels, open.sockets);
    if let Some(limit) = open_files_limit {
        out.put("container_ulimits_soft", &with(labels, "ulimit", "max_open_files"), limit);
    }
    out.put("container_oom_events_total", labels, usage.oom_kills);
    put_limits(out, labels, details.cpu, details.memory);
}

fn put_cpu(out: &mut Exposition, labels: &str, usage: &Usage, is_limited: bool) {
    if usage.cpu_ns > 0 {
        out.put("container_cpu_usage_seconds_total", &with(labels, "cpu", "total"), seconds(usage.cpu_ns));
    }
    out.put("container_cpu_user_seconds_total", labels, seconds(usage.user_ns));
    out.put("container_cpu_system_seconds_total", labels, seconds(usage.system_ns));
    if is_limited {
        let throttling = &usage.throttling;
        out.put("container_cpu_cfs_periods_total", labels, throttling.periods);
        out.put("container_cpu_cfs_throttled_periods_total", labels, throttling.throttled_periods);
        out.put("container_cpu_cfs_throttled_seconds_total", labels, seconds(throttling.throttled_ns));
    }
    out.put("container_cpu_load_average_10s", labels, 0);
    out.put("container_cpu_load_d_average_10s", labels, 0);
    for state in TASK_STATES {
        out.put("container_tasks_state", &with(labels, "state", state), 0);
    }
}

fn put_memory(out: &mut Exposition, labels: &str, reading: &Reading) {
    let Reading { usage, details, .. } = reading;
    out.put("container_memory_usage_bytes", labels, usage.memory_bytes);
    out.put("container_memory_working_set_bytes", labels, usage.working_set_bytes);
    out.put("container_memory_rss", labels, usage.rss_bytes);
    out.put("container_memory_cache", labels, usage.cache_bytes);
    out.put("container_memory_swap", labels, usage.swap_bytes);
    out.put("container_memory_mapped_file", labels, details.mapped_file_bytes);
    out.put("container_memory_total_active_file_bytes", labels, details.active_file_bytes);
    out.put("container_memory_total_inactive_file_bytes", labels, details.inactive_file_bytes);
    out.put("container_memory_kernel_usage", labels, details.kernel_bytes);
    out.put("container_memory_max_usage_bytes", labels, details.max_usage_bytes);
    out.put("container_memory_failcnt", labels, details.limit_hits);
    put_faults(out, labels, Some(usage.page_faults), Some(usage.major_page_faults));
}

/// The kernel counts those of groups below, too, so that both scopes are the same.
pub(super) fn put_faults(out: &mut Exposition, labels: &str, all: Option<u64>, major: Option<u64>) {
    for (kind, value) in [("pgfault", all), ("pgmajfault", major)] {
        let Some(value) = value else { continue };
        for scope in ["container", "hierarchy"] {
            let own = with(&with(labels, "failure_type", kind), "scope", scope);
            out.put("container_memory_failures_total", &own, value);
        }
    }
}

/// How long something waited, and how long everything did.
fn put_pressures(out: &mut Exposition, labels: &str, pressures: &Pressures) {
    let all = [(pressures.cpu, &CPU_PRESSURE), (pressures.memory, &MEMORY_PRESSURE), (pressures.io, &IO_PRESSURE)];
    for (pressure, [waiting, stalled]) in all {
        let Some(pressure) = pressure else { continue };
        out.put(waiting, labels, seconds(pressure.some.total_us.saturating_mul(1000)));
        out.put(stalled, labels, seconds(pressure.full.total_us.saturating_mul(1000)));
    }
}

fn put_device(out: &mut Exposition, labels: &str, used: &DeviceUse, name: &str) {
    let own = with(labels, "device", name);
    let ways = [
        ("Read", "container_fs_reads_bytes_total", "container_fs_reads_total"),
        ("Write", "container_fs_writes_bytes_total", "container_fs_writes_total"),
    ];
    for (operation, bytes, requests) in ways {
        // Devices without a name share their labels.
        out.put_new(bytes, &own, used.bytes.get(operation).copied().unwrap_or_default());
        out.put_new(requests, &own, used.requests.get(operation).copied().unwrap_or_default());
    }
    for (operation, value) in &used.bytes {
        let own = with(&with(&own, "major", &used.major.to_string()), "minor", &used.minor.to_string());
        out.put("container_blkio_device_usage_total", &with(&own, "operation", operation), value);
    }
}

/// What a group may use. 0 stands for no limit.
pub(super) fn put_limits(out: &mut Exposition, labels: &str, cpu: Option<CpuShare>, memory: Option<MemoryLimits>) {
    if let Some(CpuShare { shares, quota_us, period_us }) = cpu {
        out.put("container_spec_cpu_period", labels, period_us);
        out.put("container_spec_cpu_shares", labels, shares);
        if let Some(quota) = quota_us {
            out.put("container_spec_cpu_quota", labels, quota);
        }
    }
    let shown = |limit| match limit {
        Limit::To(bytes) => bytes,
        Limit::Unlimited => 0,
    };
    if let Some(MemoryLimits { bytes, swap_bytes, reservation_bytes }) = memory {
        out.put("container_spec_memory_limit_bytes", labels, shown(bytes));
        out.put("container_spec_memory_swap_limit_bytes", labels, shown(swap_bytes));
        out.put("container_spec_memory_reservation_limit_bytes", labels, shown(reservation_bytes));
    }
}

/// A file system of the machine, and the disk that it lies on. What the root group used of the same device is told already.
pub(super) fn put_disk(out: &mut Exposition, labels: &str, reading: &DiskReading) {
    let own = with(labels, "device", &reading.device);
    let room = &reading.room;
    out.put("container_fs_limit_bytes", &own, room.capacity);
    out.put("container_fs_usage_bytes", &own, room.capacity.saturating_sub(room.available));
    out.put("container_fs_inodes_total", &own, room.inodes);
    out.put("container_fs_inodes_free", &own, room.inodes_free);
    let Some(disk) = reading.disk else { return };
    let Disk { reads, reads_merged, sectors_read, writes, writes_merged, sectors_written, .. } = disk;
    out.put_new("container_fs_reads_total", &own, reads);
    out.put_new("container_fs_writes_total", &own, writes);
    out.put("container_fs_reads_merged_total", &own, reads_merged);
    out.put("container_fs_writes_merged_total", &own, writes_merged);
    out.put("container_fs_sector_reads_total", &own, sectors_read);
    out.put("container_fs_sector_writes_total", &own, sectors_written);
    out.put("container_fs_io_current", &own, disk.in_progress);
    for (name, ms) in [
        ("container_fs_read_seconds_total", disk.read_ms),
        ("container_fs_write_seconds_total", disk.write_ms),
        ("container_fs_io_time_seconds_total", disk.busy_ms),
        ("container_fs_io_time_weighted_seconds_total", disk.weighted_ms),
    ] {
        out.put(name, &own, seconds(ms.saturating_mul(1_000_000)));
    }
}

pub(super) fn put_interfaces(out: &mut Exposition, labels: &str, interfaces: &[Interface]) {
    for interface in interfaces {
        let own = with(labels, "interface", &interface.name);
        let ways = [(&interface.received, &RECEIVED), (&interface.sent, &SENT)];
        for (counts, names) in ways {
            let values = [counts.bytes, counts.packets, counts.errors, counts.dropped];
            for (name, value) in names.iter().zip(values) {
                out.put(name, &own, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sys::cgroups::{Details, Pressure, Stall, Throttling};
    use sys::proc::{Counts, Descriptors};

    use super::super::families::FAMILIES;
    use super::*;
    use crate::node::FileSystem;

    const L: &str = "{a=\"1\"}";

    fn put(reading: &Reading) -> Exposition {
        let mut out = Exposition::new(FAMILIES);
        put_group(&mut out, L, reading, &[((8, 0), "/dev/sda".to_owned())].into());
        out
    }

    /// The samples of a family, without the labels that all have.
    fn of(out: &Exposition, name: &str) -> Vec<String> {
        let samples = out.of(name).iter();
        samples.map(|(labels, value)| format!("{} {value}", labels.replace("a=\"1\",", "").replace(L, ""))).collect()
    }

    #[test]
    fn a_group_tells_all_that_upstream_shows() {
        let device = DeviceUse {
            major: 8,
            minor: 0,
            bytes: [("Read", 10), ("Write", 20)].into(),
            requests: [("Read", 1)].into(),
        };
        let details = Details {
            cpu: Some(CpuShare { shares: 512, quota_us: Some(50_000), period_us: 100_000 }),
            memory: Some(MemoryLimits {
                bytes: Limit::To(1000),
                swap_bytes: Limit::Unlimited,
                reservation_bytes: Limit::To(5),
            }),
            mapped_file_bytes: 2,
            active_file_bytes: 3,
            inactive_file_bytes: 4,
            threads: 9,
            threads_max: 100,
            processes: vec![12, 34],
            devices: vec![device.clone(), DeviceUse { major: 9, ..device.clone() }, DeviceUse { minor: 9, ..device }],
            ..Details::default()
        };
        let throttling = Throttling { periods: 3, throttled_periods: 2, throttled_ns: 1_500_000_000 };
        let usage = Usage { cache_bytes: 7, oom_kills: 2, pids: 9, page_faults: 6, throttling, ..Usage::default() };
        let open = Descriptors { files: 30, sockets: 4 };
        let out = put(&Reading { usage, details, open, open_files_limit: Some(1024) });
        let expected: [(&str, &[&str]); 18] = [
            ("container_cpu_cfs_throttled_seconds_total", &[" 1.500000000"]),
            ("container_memory_cache", &[" 7"]),
            ("container_memory_mapped_file", &[" 2"]),
            ("container_memory_total_active_file_bytes", &[" 3"]),
            ("container_memory_total_inactive_file_bytes", &[" 4"]),
            ("container_oom_events_total", &[" 2"]),
            ("container_processes", &[" 2"]),
            ("container_threads", &[" 9"]),
            ("container_threads_max", &[" 100"]),
            ("container_file_descriptors", &[" 30"]),
            ("container_sockets", &[" 4"]),
            ("container_ulimits_soft", &["{ulimit=\"max_open_files\"} 1024"]),
            ("container_spec_cpu_quota", &[" 50000"]),
            ("container_spec_cpu_shares", &[" 512"]),
            ("container_spec_memory_limit_bytes", &[" 1000"]),
            ("container_spec_memory_swap_limit_bytes", &[" 0"]),
            ("container_fs_reads_bytes_total", &["{device=\"/dev/sda\"} 10", "{device=\"\"} 10"]),
            ("container_fs_writes_total", &["{device=\"/dev/sda\"} 0", "{device=\"\"} 0"]),
        ];
        for (name, samples) in expected {
            assert_eq!(of(&out, name), samples, "{name}");
        }
        let faults = of(&out, "container_memory_failures_total");
        assert_eq!(
            faults[..2],
            ["{failure_type=\"pgfault\",scope=\"container\"} 6", "{failure_type=\"pgfault\",scope=\"hierarchy\"} 6"]
        );
        let devices = of(&out, "container_blkio_device_usage_total");
        assert_eq!(devices[1], "{device=\"/dev/sda\",major=\"8\",minor=\"0\",operation=\"Write\"} 20");
        assert_eq!(devices.len(), 6);
        assert_eq!(of(&out, "container_tasks_state").len(), 5);
    }

    #[test]
    fn what_is_not_limited_or_not_told_is_left_out() {
        let out = put(&Reading::default());
        let absent = [
            "container_cpu_cfs_periods_total",
            "container_spec_cpu_period",
            "container_spec_memory_limit_bytes",
            "container_ulimits_soft",
            "container_pressure_cpu_waiting_seconds_total",
            "container_cpu_usage_seconds_total",
        ];
        for name in absent {
            assert!(out.of(name).is_empty(), "{name}");
        }
        let stall = |total_us| Stall { total_us, ..Stall::default() };
        let cpu = Some(Pressure { some: stall(2_500_000), full: stall(500_000) });
        let pressures = Pressures { cpu, ..Pressures::default() };
        let out = put(&Reading { usage: Usage { pressures, ..Usage::default() }, ..Reading::default() });
        assert_eq!(of(&out, "container_pressure_cpu_waiting_seconds_total"), [" 2.500000000"]);
        assert_eq!(of(&out, "container_pressure_cpu_stalled_seconds_total"), [" 0.500000000"]);
    }

    #[test]
    fn disks_and_interfaces_become_samples() {
        let mut out = Exposition::new(FAMILIES);
        let disk = Disk {
            major: 8,
            minor: 1,
            reads: 1,
            reads_merged: 2,
            sectors_read: 3,
            read_ms: 1500,
            writes: 5,
            writes_merged: 6,
            sectors_written: 7,
            write_ms: 8,
            in_progress: 9,
            busy_ms: 10,
            weighted_ms: 11,
        };
        let room = FileSystem { capacity: 100, available: 40, inodes: 10, inodes_free: 3 };
        out.put("container_fs_reads_total", "{a=\"1\",device=\"/dev/sda1\"}", 77);
        put_disk(&mut out, L, &DiskReading { device: "/dev/sda1".into(), room, disk: Some(disk) });
        for (name, value) in [
            ("container_fs_usage_bytes", "60"),
            ("container_fs_inodes_free", "3"),
            ("container_fs_reads_total", "77"),
            ("container_fs_writes_total", "5"),
            ("container_fs_read_seconds_total", "1.500000000"),
            ("container_fs_io_current", "9"),
        ] {
            assert_eq!(of(&out, name), [format!("{{device=\"/dev/sda1\"}} {value}")], "{name}");
        }
        let counts = |bytes, dropped| Counts { bytes, packets: 0, errors: 0, dropped };
        let eth0 = Interface { name: "eth0".into(), received: counts(5, 1), sent: counts(6, 2) };
        put_interfaces(&mut out, L, &[eth0]);
        assert_eq!(of(&out, "container_network_receive_bytes_total"), ["{interface=\"eth0\"} 5"]);
        assert_eq!(of(&out, "container_network_transmit_packets_dropped_total"), ["{interface=\"eth0\"} 2"]);
    }
}
