//! Values that stand for a feature, and what its gate must say for them.

use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use component_base::Gates;
use component_base::flags::{Errors, Invalid};

use super::gates;

/// `cpuCFSQuotaPeriod` and `crashLoopBackOff.maxContainerRestartPeriod` where nobody asks for others, in nanoseconds.
const QUOTA_PERIOD: i64 = 100 * 1_000_000;
const RESTART_PERIOD: i64 = 300 * 1_000_000_000;

/// `memoryReservationPolicy` where memory is kept.
pub(super) const TIERED: &str = "TieredReservation";

/// Everything that asks for a feature whose gate is off. What asks for just what there is without it may stand.
///
/// # Errors
/// All of it, in upstream's words.
pub(crate) fn check(config: &KubeletConfiguration, set: &Gates) -> Result<(), Invalid> {
    let mut errors = Errors::new();
    let period = config.cpu_cfs_quota_period.unwrap_or_default();
    errors.check(
        set.enabled(gates::QUOTA_PERIOD) || period.nanos() == QUOTA_PERIOD,
        format!(
            "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {period} requires feature gate \
             CustomCPUCFSQuotaPeriod"
        ),
    );
    let longest = config.crash_loop_back_off.max_container_restart_period;
    errors.check(
        set.enabled(gates::CRASH_BACK_OFF_MAX) || longest.is_none_or(|longest| longest.nanos() == RESTART_PERIOD),
        "invalid configuration: FeatureGate KubeletCrashLoopBackOffMax not enabled, \
         CrashLoopBackOff.MaxContainerRestartPeriod must not be set",
    );
    let policy = &config.memory_reservation_policy;
    errors.check(
        set.enabled(gates::MEMORY_QOS) || policy != TIERED,
        format!("invalid configuration: memoryReservationPolicy {policy} requires feature gate MemoryQoS"),
    );
    errors.ok(reserved_percent(config));
    errors.check(
        set.enabled(gates::QOS_RESERVED) || config.qos_reserved.is_empty(),
        "invalid configuration: qosReserved (--qos-reserved) requires feature gate QOSReserved",
    );
    errors.into_result()
}

/// Why `qosReserved` says nothing, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReservedError {
    #[error("cannot reserve {0:?} resource")]
    Resource(String),
    #[error("failed to parse percentage {text:?} for \"memory\" resource: {why}")]
    Percentage { text: String, why: String },
}

/// How much of the memory that pods ask for lower classes leave alone; none where nothing is said.
pub(super) fn reserved_percent(config: &KubeletConfiguration) -> Result<Option<i64>, ReservedError> {
    let mut percent = None;
    for (name, text) in &config.qos_reserved {
        if name != "memory" {
            return Err(ReservedError::Resource(name.clone()));
        }
        let failed = |why: String| ReservedError::Percentage { text: text.clone(), why };
        let number = text.strip_suffix('%').ok_or_else(|| failed(format!("percentage expected, got '{text}'")))?;
        let number: i64 = number.parse().map_err(|_| failed(format!("invalid number in percentage '{text}'")))?;
        if !(0..=100).contains(&number) {
            return Err(failed("percentage must be between 0 and 100".to_owned()));
        }
        percent = Some(number);
    }
    Ok(percent)
}

#[cfg(test)]
mod tests {
    use api_machinery::time::GoDuration;
    use component_base::Feature;

    use super::*;

    fn config() -> KubeletConfiguration {
        let mut config = KubeletConfiguration::default();
        api_machinery::defaults::fill(&mut config);
        config
    }

    #[test]
    fn what_a_gate_is_for_is_refused_without_it() {
        type Ask = fn(&mut KubeletConfiguration);
        let cases: [(Feature, Ask, &str); 4] = [
            (
                gates::QUOTA_PERIOD,
                |config| config.cpu_cfs_quota_period = Some(GoDuration::parse("5ms").unwrap()),
                "cpuCFSQuotaPeriod (--cpu-cfs-quota-period) 5ms requires feature gate CustomCPUCFSQuotaPeriod",
            ),
            (
                gates::CRASH_BACK_OFF_MAX,
                |config| {
                    config.crash_loop_back_off.max_container_restart_period = Some(GoDuration::parse("1m").unwrap());
                },
                "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not",
            ),
            (
                gates::MEMORY_QOS,
                |config| config.memory_reservation_policy = TIERED.to_owned(),
                "memoryReservationPolicy TieredReservation requires feature gate MemoryQoS",
            ),
            (
                gates::QOS_RESERVED,
                |config| drop(config.qos_reserved.insert("memory".into(), "50%".into())),
                "qosReserved (--qos-reserved) requires feature gate QOSReserved",
            ),
        ];
        for (gate, ask, expected) in cases {
            let off = Gates::default().with(gate, false);
            assert!(check(&config(), &off).is_ok(), "{gate:?}: what there is anyway");
            let mut asked = config();
            ask(&mut asked);
            let error = check(&asked, &off).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(check(&asked, &Gates::default().with(gate, true)).is_ok(), "{gate:?}");
        }
    }

    #[test]
    fn only_shares_of_memory_are_kept_from_lower_classes() {
        let cases = [
            ("memory", "50%", Ok(Some(50))),
            ("memory", "0%", Ok(Some(0))),
            ("cpu", "50%", Err("cannot reserve \"cpu\" resource")),
            ("memory", "50", Err("failed to parse percentage \"50\" for \"memory\" resource: percentage expected")),
            ("memory", "101%", Err("percentage must be between 0 and 100")),
            ("memory", "x%", Err("invalid number in percentage 'x%'")),
        ];
        for (name, text, expected) in cases {
            let mut config = config();
            config.qos_reserved.insert(name.into(), text.into());
            match (reserved_percent(&config), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (found, _) => panic!("{name} {text}: {found:?}"),
            }
        }
    }
}
