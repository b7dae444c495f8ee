//! The figures of the process itself, read from `/proc/self` when `/metrics` is asked for.

use std::path::{Path, PathBuf};

use prometheus::core::{Collector, Desc as PrometheusDesc, Opts};
use prometheus::proto::{Gauge, Metric, MetricFamily, MetricType};

use super::{Desc, Stability};

/// Stands for all of them where families are counted, disabled or hidden.
pub(super) const DESC: Desc = Desc::new("process_collector", "Figures of the process.", Stability::Alpha);

/// Ticks per second of the times in `/proc`; a constant of Linux' interface (`USER_HZ`).
const TICKS: f64 = 100.0;

const FAMILIES: &[(&str, &str, MetricType)] = &[
    ("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", MetricType::COUNTER),
    ("process_max_fds", "Maximum number of open file descriptors.", MetricType::GAUGE),
    ("process_open_fds", "Number of open file descriptors.", MetricType::GAUGE),
    ("process_resident_memory_bytes", "Resident memory size in bytes.", MetricType::GAUGE),
    ("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", MetricType::GAUGE),
    ("process_virtual_memory_bytes", "Virtual memory size in bytes.", MetricType::GAUGE),
    ("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", MetricType::GAUGE),
];

pub(super) struct ProcessCollector {
    descs: Vec<PrometheusDesc>,
    proc: PathBuf,
}

impl ProcessCollector {
    pub(super) fn new() -> Self {
        use prometheus::core::Describer as _;
        let descs = FAMILIES.iter().filter_map(|(name, help, _)| Opts::new(*name, *help).describe().ok()).collect();
        Self { descs, proc: PathBuf::from("/proc") }
    }

    fn value(&self, name: &str) -> Option<f64> {
        let own = self.proc.join("self");
        match name {
            "process_cpu_seconds_total" => Some((stat(&own, 13)? + stat(&own, 14)?) / TICKS),
            "process_open_fds" => {
                let open = std::fs::read_dir(own.join("fd")).ok()?.count();
                Some(f64::from(u32::try_from(open).unwrap_or(u32::MAX)))
            }
            "process_max_fds" => limit(&own, "Max open files"),
            "process_virtual_memory_max_bytes" => limit(&own, "Max address space"),
            "process_resident_memory_bytes" => status_kib(&own, "VmRSS:").map(|kib| kib * 1024.0),
            "process_virtual_memory_bytes" => status_kib(&own, "VmSize:").map(|kib| kib * 1024.0),
            "process_start_time_seconds" => Some(boot_time(&self.proc)? + stat(&own, 21)? / TICKS),
            _ => None,
        }
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&PrometheusDesc> {
        self.descs.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let families = FAMILIES.iter().filter_map(|(name, help, kind)| {
            let value = self.value(name)?;
            let mut metric = Metric::default();
            if *kind == MetricType::COUNTER {
                let mut counter = prometheus::proto::Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            } else {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
            let mut family = MetricFamily::default();
            family.set_name((*name).to_owned());
            family.set_help((*help).to_owned());
            family.set_field_type(*kind);
            family.set_metric(vec![metric]);
            Some(family)
        });
        families.collect()
    }
}

/// A field of `stat`, counted from 0. The second one, the program's name in brackets, may hold anything, so counting
/// starts after its end.
fn stat(own: &Path, field: usize) -> Option<f64> {
    let text = std::fs::read_to_string(own.join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(field.checked_sub(2)?)?.parse().ok()
}

fn status_kib(own: &Path, key: &str) -> Option<f64> {
    let text = std::fs::read_to_string(own.join("status")).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The soft limit; an unlimited one shows as the largest number, as upstream's does.
fn limit(own: &Path, key: &str) -> Option<f64> {
    let text = std::fs::read_to_string(own.join("limits")).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(1.844_674_407_370_955_2e19),
        number => number.parse().ok(),
    }
}

fn boot_time(proc: &Path) -> Option<f64> {
    let text = std::fs::read_to_string(proc.join("stat")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}
