//! Control groups as systemd's units: what a slice is asked to be, as properties. Pure, but for the trait through which
//! systemd is asked.

use async_trait::async_trait;
use sys::cgroups::{CgroupPath, Limit, Limits, Version, cpu_weight};

/// systemd's word for no limit.
const INFINITY: u64 = u64::MAX;
/// The period where nobody asks for another, in microseconds.
const DEFAULT_PERIOD_US: u64 = 100_000;
/// systemd keeps quotas in whole percent; what it would cut off is rounded up instead.
const QUOTA_STEP_US: u64 = 10_000;
const SECOND_US: u64 = 1_000_000;
/// From this version of systemd on, the period of a quota can be set.
const PERIOD_SINCE: u32 = 242;
/// The slice above all others.
const TOP: &str = "-.slice";

/// A property's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    Number(u64),
    Text(String),
    Names(Vec<String>),
}

/// A property of a unit.
pub(super) type Property = (&'static str, Value);

/// Why systemd did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum UnitError {
    /// It cannot be reached.
    #[error("systemd cannot be reached over D-Bus: {0}")]
    Bus(String),
    /// It refuses.
    #[error("systemd refuses to {action} {unit}: {why}")]
    Refused { action: &'static str, unit: String, why: String },
    /// It began and did not end well.
    #[error("the job to {action} {unit} ended as {result:?}")]
    Job { action: &'static str, unit: String, result: String },
}

/// systemd's units.
#[async_trait]
pub trait Units: Send + Sync + 'static {
    /// systemd's version.
    fn version(&self) -> u32;

    /// Starts a transient unit and waits until it is there. One that is there already keeps its properties.
    async fn start(&self, unit: &str, properties: Vec<Property>) -> Result<Started, UnitError>;

    /// Sets properties of a unit, until the machine is started anew.
    async fn set(&self, unit: &str, properties: Vec<Property>) -> Result<(), UnitError>;

    /// Stops a unit with everything in it, and waits for that. One that is gone is fine.
    async fn stop(&self, unit: &str) -> Result<(), UnitError>;
}

/// What came of starting a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Started {
    Now,
    Before,
}

/// The slice that a group is, by its path; none for the root.
pub(super) fn unit_of(group: &CgroupPath) -> Option<String> {
    group.relative().file_name().and_then(|name| name.to_str()).map(ToOwned::to_owned)
}

/// What every slice is asked to be.
pub(super) fn of_slice(group: &CgroupPath) -> Vec<Property> {
    let name = unit_of(group).unwrap_or_default();
    let above = group.relative().parent().and_then(|above| above.file_name()).and_then(|name| name.to_str());
    vec![
        ("Description", Value::Text(format!("Kubernetes pods {}", name.trim_end_matches(".slice")))),
        // A slice is inside another by its name; it only has to want it.
        ("Wants", Value::Names(vec![above.unwrap_or(TOP).to_owned()])),
        ("DefaultDependencies", Value::Flag(false)),
        ("CPUAccounting", Value::Flag(true)),
        ("MemoryAccounting", Value::Flag(true)),
        ("TasksAccounting", Value::Flag(true)),
    ]
}

/// Limits as properties.
pub(super) fn of_limits(limits: &Limits, version: Version, systemd: u32) -> Vec<Property> {
    let mut out = Vec::new();
    let mut put = |name, value| out.push((name, Value::Number(value)));
    let amount = |limit| match limit {
        Limit::Unlimited => INFINITY,
        Limit::To(value) => value,
    };
    if let Some(shares) = limits.cpu_shares {
        match version {
            Version::V1 => put("CPUShares", shares),
            Version::V2 => put("CPUWeight", cpu_weight(shares)),
        }
    }
    if let Some(quota) = limits.cpu_quota_us {
        let period = limits.cpu_period_us.unwrap_or(DEFAULT_PERIOD_US).max(1);
        let per_second = match quota {
            Limit::Unlimited => INFINITY,
            Limit::To(quota) => quota.saturating_mul(SECOND_US).div_ceil(period).next_multiple_of(QUOTA_STEP_US),
        };
        if systemd >= PERIOD_SINCE {
            put("CPUQuotaPeriodUSec", period);
        }
        put("CPUQuotaPerSecUSec", per_second);
    }
    if let Some(limit) = limits.memory_bytes {
        put(if version == Version::V1 { "MemoryLimit" } else { "MemoryMax" }, amount(limit));
    }
    if let (Some(bytes), Version::V2) = (limits.memory_min_bytes, version) {
        put("MemoryMin", bytes);
    }
    if let (Some(bytes), Version::V2) = (limits.memory_low_bytes, version) {
        put("MemoryLow", bytes);
    }
    if let Some(limit) = limits.pids {
        put("TasksMax", amount(limit));
    }
    out
}

/// The limits that systemd knows nothing of.
pub(super) fn beside(limits: &Limits) -> Limits {
    Limits {
        huge_pages_bytes: limits.huge_pages_bytes.clone(),
        cpuset_cpus: limits.cpuset_cpus.clone(),
        cpuset_mems: limits.cpuset_mems.clone(),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_properties() {
        let limits = Limits {
            cpu_shares: Some(1024),
            cpu_quota_us: Some(Limit::To(12_345)),
            cpu_period_us: Some(100_000),
            memory_bytes: Some(Limit::To(1 << 20)),
            memory_min_bytes: Some(0),
            memory_low_bytes: Some(1 << 19),
            pids: Some(Limit::Unlimited),
            huge_pages_bytes: [("2MB".to_owned(), 1)].into(),
            ..Limits::default()
        };
        let numbers = |version, systemd| -> Vec<(&str, u64)> {
            let number = |(name, value)| match value {
                Value::Number(number) => (name, number),
                other => panic!("{name} {other:?}"),
            };
            of_limits(&limits, version, systemd).into_iter().map(number).collect()
        };
        assert_eq!(
            numbers(Version::V2, 252),
            [
                ("CPUWeight", 39),
                ("CPUQuotaPeriodUSec", 100_000),
                ("CPUQuotaPerSecUSec", 130_000),
                ("MemoryMax", 1 << 20),
                ("MemoryMin", 0),
                ("MemoryLow", 1 << 19),
                ("TasksMax", u64::MAX)
            ]
        );
        assert_eq!(
            numbers(Version::V1, 241),
            [("CPUShares", 1024), ("CPUQuotaPerSecUSec", 130_000), ("MemoryLimit", 1 << 20), ("TasksMax", u64::MAX)]
        );
        assert_eq!(beside(&limits), Limits { huge_pages_bytes: limits.huge_pages_bytes.clone(), ..Limits::default() });
        assert!(of_limits(&Limits::default(), Version::V2, 252).is_empty());
    }

    #[test]
    fn slices_name_the_one_above() {
        let wants = |text: &str| {
            let group = CgroupPath::new(text).unwrap();
            of_slice(&group).into_iter().find_map(|(name, value)| (name == "Wants").then_some(value)).unwrap()
        };
        let names = |name: &str| Value::Names(vec![name.to_owned()]);
        assert_eq!(wants("/kubepods.slice"), names("-.slice"));
        assert_eq!(wants("/kubepods.slice/kubepods-poda.slice"), names("kubepods.slice"));
        let pod = CgroupPath::new("/kubepods.slice/kubepods-poda.slice").unwrap();
        assert_eq!(unit_of(&pod).as_deref(), Some("kubepods-poda.slice"));
        assert_eq!(unit_of(&CgroupPath::new("/").unwrap()), None);
    }
}
