//! What values must be, whoever set them.

use std::path::{Component, Path};

use api_machinery::field_path::Path as FieldPath;
use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use client::ContentType;
use component_base::flags::{Errors, Invalid};
use kubelet_pods::check_sysctl_pattern;

use super::gated::TIERED;
use crate::objects::Strategy;
use crate::resource_managers;
use crate::resources::thresholds::{self, Maps};
use crate::resources::{CgroupNames, Driver, reserve};
use crate::runtime::image_name::ImageName;
use crate::traces;

/// `memorySwap.swapBehavior`: containers have a share of the machine's swap.
pub(crate) const LIMITED_SWAP: &str = "LimitedSwap";

/// `userNamespaces.idsPerPod` is a multiple of this.
const IDS_UNIT: i64 = 65_536;

/// How objects travel to and from the API server.
pub(crate) fn content_type(name: &str) -> Option<ContentType> {
    match name {
        "" | "application/vnd.kubernetes.protobuf" => Some(ContentType::Protobuf),
        "application/json" => Some(ContentType::Json),
        _ => None,
    }
}

/// Everything that is wrong.
pub(super) fn check(config: &KubeletConfiguration) -> Result<(), Invalid> {
    let mut errors = Errors::new();
    numbers(config, &mut errors);
    memory(config, &mut errors);
    durations(config, &mut errors);
    names(config, &mut errors);
    for text in config.allowed_unsafe_sysctls.iter().filter_map(|pattern| check_sysctl_pattern(pattern).err()) {
        errors.push(text);
    }
    reservations(config, &mut errors);
    pulled_images(config, &mut errors);
    errors.into_result()
}

fn numbers(config: &KubeletConfiguration, errors: &mut Errors) {
    let mut between = |field: &str, flag: &str, value: i64, low: i64, high: i64| {
        let text =
            format!("invalid configuration: {field} (--{flag}) {value} must be between {low} and {high}, inclusive");
        errors.check((low..=high).contains(&value), text);
    };
    let high = i64::from(config.image_gc_high_threshold_percent.unwrap_or_default());
    let low = i64::from(config.image_gc_low_threshold_percent.unwrap_or_default());
    between("port", "port", config.port.into(), 1, 65535);
    between("readOnlyPort", "read-only-port", config.read_only_port.into(), 0, 65535);
    between("healthzPort", "healthz-port", config.healthz_port.unwrap_or_default().into(), 0, 65535);
    between("imageGCHighThresholdPercent", "image-gc-high-threshold", high, 0, 100);
    between("imageGCLowThresholdPercent", "image-gc-low-threshold", low, 0, 100);
    between("oomScoreAdj", "oom-score-adj", config.oom_score_adj.unwrap_or_default().into(), -1000, 1000);
    between(
        "containerLogMaxFiles",
        "container-log-max-files",
        config.container_log_max_files.unwrap_or_default().into(),
        2,
        i32::MAX.into(),
    );
    between("nodeLeaseDurationSeconds", "", config.node_lease_duration_seconds.into(), 1, i32::MAX.into());
    between(
        "nodeStatusMaxImages",
        "node-status-max-images",
        config.node_status_max_images.unwrap_or_default().into(),
        -1,
        i32::MAX.into(),
    );
    let mut at_least_zero = |field: &str, value: i64| between(field, "", value, 0, i64::MAX);
    at_least_zero("maxPods", config.max_pods.into());
    at_least_zero("podsPerCore", config.pods_per_core.into());
    at_least_zero("maxOpenFiles", config.max_open_files);
    at_least_zero("registryPullQPS", config.registry_pull_qps.unwrap_or_default().into());
    at_least_zero("registryBurst", config.registry_burst.into());
    at_least_zero("eventRecordQPS", config.event_record_qps.unwrap_or_default().into());
    at_least_zero("eventBurst", config.event_burst.into());
    at_least_zero("kubeAPIBurst", config.kube_api_burst.into());
    at_least_zero("evictionMaxPodGracePeriod", config.eviction_max_pod_grace_period.into());
    let (served, queried) = (config.enable_system_log_handler != Some(false), config.enable_system_log_query);
    errors.check(
        served || queried != Some(true),
        "invalid configuration: enableSystemLogHandler is required for enableSystemLogQuery",
    );
    let ids = config.user_namespaces.as_ref().and_then(|users| users.ids_per_pod).unwrap_or(IDS_UNIT);
    errors.check(
        ids > 0 && ids % IDS_UNIT == 0 && ids < 1 << 32,
        format!(
            "invalid configuration: userNamespaces.idsPerPod {ids} must be a multiple of {IDS_UNIT} and less than 2^32"
        ),
    );
    errors.check(
        low < high,
        format!(
            "invalid configuration: imageGCLowThresholdPercent (--image-gc-low-threshold) {low} must be less than \
             imageGCHighThresholdPercent (--image-gc-high-threshold) {high}"
        ),
    );
    let (serial, parallel) = (config.serialize_image_pulls != Some(false), config.max_parallel_image_pulls);
    errors.check(
        !(serial && parallel.is_some_and(|pulls| pulls > 1)),
        "invalid configuration: maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) set to false",
    );
    errors.check(
        parallel.is_none_or(|pulls| pulls > 0),
        "invalid configuration: maxParallelImagePulls must be a positive number",
    );
    errors.check(!config.run_once, "invalid configuration: runOnce (--runOnce) true is not supported");
}

fn memory(config: &KubeletConfiguration, errors: &mut Errors) {
    let policy = config.memory_reservation_policy.as_str();
    errors.check(
        ["", "None", TIERED].contains(&policy),
        format!("invalid configuration: memoryReservationPolicy {policy:?} must be one of [\"None\", {TIERED:?}]"),
    );
    let Some(factor) = config.memory_throttling_factor else { return };
    errors.check(
        factor > 0.0 && factor <= 1.0,
        format!(
            "invalid configuration: memoryThrottlingFactor {factor} must be greater than 0 and less than or equal to 1.0"
        ),
    );
}

fn pulled_images(config: &KubeletConfiguration, errors: &mut Errors) {
    const LISTED: &str = "NeverVerifyAllowlistedImages";
    let (policy, listed) =
        (&config.image_pull_credentials_verification_policy, &config.preloaded_images_verification_allowlist);
    let known = ["", "NeverVerify", "NeverVerifyPreloadedImages", LISTED, "AlwaysVerify"];
    errors.check(
        known.contains(&policy.as_str()),
        format!("invalid configuration: unknown imagePullCredentialsVerificationPolicy: {policy:?}"),
    );
    errors.check(
        listed.is_empty() || policy == LISTED,
        format!(
            "invalid configuration: can't set preloadedImagesVerificationAllowlist if \
             imagePullCredentialsVerificationPolicy is not {LISTED:?}"
        ),
    );
    for fault in listed.iter().filter_map(|own| allowlist_fault(own)) {
        errors.push(format!("invalid configuration: preloadedImagesVerificationAllowlist: {fault}"));
    }
}

/// What is wrong with an entry of the list: it is a whole name without tag and digest, or all below a prefix.
fn allowlist_fault(pattern: &str) -> Option<String> {
    if pattern != pattern.trim() {
        return Some(format!("leading/trailing spaces are not allowed: {pattern}"));
    }
    if pattern.is_empty() {
        return Some(format!("the supplied pattern is too short: {pattern}"));
    }
    let prefix = pattern.strip_suffix("/*");
    if prefix.unwrap_or(pattern).contains('*') {
        return Some(format!("not a valid wildcard pattern, only patterns ending with '/*' are allowed: {pattern}"));
    }
    if let Some(prefix) = prefix {
        return prefix.is_empty().then(|| "at least registry hostname is required".to_owned());
    }
    match ImageName::parse(pattern) {
        Err(error) => Some(format!("failed to parse as an image name: {error}")),
        Ok(name) if name.full_repository() == pattern => None,
        Ok(_) => Some(format!("neither tag nor digest is accepted in an image reference: {pattern}")),
    }
}

fn durations(config: &KubeletConfiguration, errors: &mut Errors) {
    const MILLISECOND: i64 = 1_000_000;
    const SECOND: i64 = 1_000 * MILLISECOND;
    let period = config.cpu_cfs_quota_period.unwrap_or_default().nanos();
    errors.check(
        (MILLISECOND..=SECOND).contains(&period),
        "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) must be between 1ms and 1sec, inclusive",
    );
    let age = config.image_maximum_gc_age.nanos();
    errors.check(
        age == 0 || age > config.image_minimum_gc_age.nanos(),
        "invalid configuration: imageMaximumGCAge must be greater than imageMinimumGCAge",
    );
    let interval = config.container_log_monitor_interval.unwrap_or_default().nanos();
    errors.check(
        interval >= 3 * SECOND,
        "invalid configuration: containerLogMonitorInterval must be a positive time duration greater than or equal to 3s",
    );
    if let Some(longest) = config.crash_loop_back_off.max_container_restart_period {
        errors.check(
            (SECOND..=300 * SECOND).contains(&longest.nanos()),
            "invalid configuration: CrashLoopBackOff.MaxContainerRestartPeriod must be between 1s and 300s",
        );
    }
    let (all, critical) = (config.shutdown_grace_period, config.shutdown_grace_period_critical_pods);
    errors.check(
        all.nanos() >= critical.nanos(),
        format!(
            "invalid configuration: shutdownGracePeriod {all} must be >= shutdownGracePeriodCriticalPods {critical}"
        ),
    );
    for (field, value) in [("shutdownGracePeriod", all), ("shutdownGracePeriodCriticalPods", critical)] {
        errors.check(
            value.is_zero() || value.nanos() >= SECOND,
            format!("invalid configuration: {field} {value} must be either zero or otherwise >= 1 sec"),
        );
    }
    errors.check(
        config.shutdown_grace_period_by_pod_priority.is_empty() || (all.is_zero() && critical.is_zero()),
        "invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time",
    );
    let positive = [
        ("syncFrequency", config.sync_frequency),
        ("fileCheckFrequency", config.file_check_frequency),
        ("httpCheckFrequency", config.http_check_frequency),
        ("nodeStatusUpdateFrequency", config.node_status_update_frequency),
        ("nodeStatusReportFrequency", config.node_status_report_frequency),
        ("runtimeRequestTimeout", config.runtime_request_timeout),
        ("cpuManagerReconcilePeriod", config.cpu_manager_reconcile_period),
    ];
    for (field, value) in positive {
        errors.check(value.nanos() > 0, format!("invalid configuration: {field} {value} must be positive"));
    }
}

fn names(config: &KubeletConfiguration, errors: &mut Errors) {
    errors.check(
        content_type(&config.content_type).is_some(),
        format!(
            "invalid configuration: contentType (--kube-api-content-type) {:?} is not supported by this kubelet",
            config.content_type
        ),
    );
    errors.check(
        matches!(config.hairpin_mode.as_str(), "" | "promiscuous-bridge" | "hairpin-veth" | "none"),
        format!(
            "invalid configuration: option {:?} specified for hairpinMode (--hairpin-mode). Valid options are \"none\", \
             \"hairpin-veth\" or \"promiscuous-bridge\"",
            config.hairpin_mode
        ),
    );
    errors.check(
        Driver::from_name(&config.cgroup_driver).is_some(),
        format!("unrecognized cgroup driver {:?}, must be cgroupfs or systemd", config.cgroup_driver),
    );
    errors.check(
        CgroupNames::new(Driver::Cgroupfs, &config.cgroup_root).is_some(),
        format!("invalid configuration: cgroupRoot (--cgroup-root) {:?} must not climb", config.cgroup_root),
    );
    let strategy = &config.config_map_and_secret_change_detection_strategy;
    errors.check(
        Strategy::from_name(strategy).is_some(),
        format!(
            "invalid configuration: configMapAndSecretChangeDetectionStrategy {strategy:?} must be one of Get, Cache, Watch"
        ),
    );
    let swap = config.memory_swap.swap_behavior.as_str();
    errors.check(
        matches!(swap, "" | "NoSwap" | LIMITED_SWAP),
        format!(
            "invalid configuration: memorySwap.swapBehavior {swap:?} must be one of: \"\", \"LimitedSwap\" or \"NoSwap\""
        ),
    );
    match config.authorization.mode.as_str() {
        "Webhook" | "AlwaysAllow" => {}
        "" => errors.push("no authorization mode specified"),
        mode => errors.push(format!("unknown authorization mode {mode}")),
    }
    let log_dir = Path::new(&config.pod_logs_dir);
    let plain = log_dir.is_absolute() && log_dir.components().all(|part| part != Component::ParentDir);
    errors.check(
        plain && config.pod_logs_dir.is_ascii(),
        format!(
            "invalid configuration: podLogsDir {:?} must be an absolute, normalized ASCII path",
            config.pod_logs_dir
        ),
    );
    for address in [&config.address, &config.healthz_bind_address].into_iter().chain(&config.cluster_dns) {
        errors.check(
            address.parse::<std::net::IpAddr>().is_ok(),
            format!("invalid configuration: {address:?} must be an IP address"),
        );
    }
    errors.check(
        !config.container_runtime_endpoint.is_empty(),
        "invalid configuration: the containerRuntimeEndpoint was not specified or empty",
    );
    if let Some(tracing) = &config.tracing
        && let Err(problems) = traces::settings(tracing).problems(Some(&FieldPath::new("tracing"))).into_result()
    {
        errors.push(format!("invalid configuration: {problems}"));
    }
    errors.check(
        config.tls_cert_file.is_empty() == config.tls_private_key_file.is_empty(),
        "tlsCertFile and tlsPrivateKeyFile must be specified together",
    );
}

fn reservations(config: &KubeletConfiguration, errors: &mut Errors) {
    let maps = Maps {
        hard: &config.eviction_hard,
        soft: &config.eviction_soft,
        grace: &config.eviction_soft_grace_period,
        reclaim: &config.eviction_minimum_reclaim,
    };
    errors.ok(thresholds::parse(&maps));
    errors.ok(reserve::parse(&config.kube_reserved));
    errors.ok(reserve::parse(&config.system_reserved));
    errors.ok(resource_managers::reserved_cpus(&config.reserved_system_cpus));
    for what in &config.enforce_node_allocatable {
        match what.as_str() {
            "pods" => errors.check(
                config.cgroups_per_qos != Some(false),
                "invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) [pods] is not allowed \
                 without cgroupsPerQOS (--cgroups-per-qos)",
            ),
            "none" => errors.check(
                config.enforce_node_allocatable.len() == 1,
                "invalid configuration: enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional \
                 enforcements when none is specified",
            ),
            "system-reserved" | "kube-reserved" | "system-reserved-compressible" | "kube-reserved-compressible" => {
                errors.push(format!("enforceNodeAllocatable {what:?} is not supported by this kubelet"));
            }
            other => errors.push(format!(
                "invalid configuration: option {other:?} specified for enforceNodeAllocatable (--enforce-node-allocatable). \
                 Valid options are \"pods\", \"system-reserved\", \"kube-reserved\", \"system-reserved-compressible\", \
                 \"kube-reserved-compressible\" or \"none\""
            )),
        }
    }
}
