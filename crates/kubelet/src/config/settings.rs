//! The configuration taken apart for those who work by it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use api_machinery::quantity::{Format, Quantity, QuantityError};
use api_machinery::time::GoDuration;
use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use component_base::flags::{Errors, Invalid, Options};
use component_base::{Feature, Gates};
use component_helpers::node_labels::{DOMAINS_OF_KUBELETS, OF_KUBELETS};
use component_helpers::taints::Comparing;

use super::gated::{self, TIERED};
use super::gates;
use crate::dns::Dns;
use crate::eviction::EvictionSettings;
use crate::interfaces::{ExclusiveResizes, PodSettings, PullVerification};
use crate::node::{DeclaredFeatures, Facts, NodeSettings};
use crate::objects::Strategy;
use crate::resource_managers;
use crate::resources::MemoryReservation;
use crate::resources::reserve::{self, ReserveError};
use crate::resources::thresholds::{self, Maps, Threshold, ThresholdError};
use crate::resources::{CgroupNames, CgroupSettings, Driver};

/// Where the links of the old log layout are.
const CONTAINER_LOGS: &str = "/var/log/containers";
/// What each part of the kubelet is told.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) config: KubeletConfiguration,
    pub(crate) pods: PodSettings,
    pub(crate) node: NodeSettings,
    pub(crate) dns: Dns,
    pub(crate) eviction: EvictionSettings,
    pub(crate) strategy: Strategy,
    /// What says which programs have credentials for registries, and where they are.
    pub(crate) credential_providers: Option<(PathBuf, PathBuf)>,
    pub(crate) cert_dir: PathBuf,
    /// `memoryThrottlingFactor`, where the gate `MemoryQoS` is on.
    pub(crate) throttling_factor: Option<f64>,
    /// `memoryReservationPolicy`, where the gate `MemoryQoS` is on.
    pub(crate) memory_reservation: MemoryReservation,
    /// How much of the memory that pods ask for lower classes leave alone (`qosReserved`), where the gate `QOSReserved` is
    /// on.
    pub(crate) reserved_percent: Option<i64>,
    /// Gate `KubeletInUserNamespace` (KEP-2033): what only those outside of its namespace may do is left undone.
    pub(crate) in_user_namespace: bool,
    /// Gate `AllowDNSOnlyNodeCSR`.
    pub(crate) dns_only_certificates: bool,
    pub(crate) kubeconfig: String,
    pub(crate) bootstrap_kubeconfig: String,
}

/// Takes the configuration apart.
///
/// # Errors
/// What is wrong with flags that are no fields.
pub(crate) fn plan(options: &Options, config: KubeletConfiguration, os_hostname: &str) -> Result<Plan, Invalid> {
    let mut errors = Errors::new();
    let hostname = match options.string("hostname-override").trim() {
        "" => os_hostname.trim().to_ascii_lowercase(),
        given => given.to_ascii_lowercase(),
    };
    errors.check(!hostname.is_empty(), "empty hostname is invalid");
    let external_cloud = options.string("cloud-provider") == "external";
    let node_ips = errors.ok(node_ips(options.string("node-ip"))).unwrap_or_default();
    let labels = options.map("node-labels");
    errors.ok(check_labels(&labels));
    let thresholds = errors.ok(thresholds_of(&config)).unwrap_or_default();
    let reservations = errors.ok(reservations_of(&config, &thresholds)).unwrap_or_default();
    let root_dir = PathBuf::from(options.string("root-dir"));
    let node = NodeSettings {
        name: hostname.clone(),
        hostname,
        labels,
        taints: config.register_with_taints.clone(),
        provider_id: config.provider_id.clone(),
        node_ips,
        external_cloud,
        register: config.register_node != Some(false),
        port: config.port,
        max_pods: config.max_pods.into(),
        pods_per_core: config.pods_per_core.into(),
        max_images: config.node_status_max_images.unwrap_or_default(),
        controller_attaches: config.enable_controller_attach_detach != Some(false),
        update_frequency: config.node_status_update_frequency.to_std(),
        report_frequency: config.node_status_report_frequency.to_std(),
        lease_seconds: config.node_lease_duration_seconds,
        root_dir: root_dir.clone(),
        declared_features: DeclaredFeatures::default(),
        gives_up_where_forbidden: false,
        reservations,
    };
    let dns = Dns {
        servers: config.cluster_dns.iter().filter_map(|server| server.parse().ok()).collect(),
        domain: config.cluster_domain.clone(),
        resolver_file: config.resolv_conf.clone().filter(|path| !path.is_empty()).map(PathBuf::from),
    };
    let eviction = EvictionSettings {
        thresholds,
        max_pod_grace: config.eviction_max_pod_grace_period.into(),
        hold: config.eviction_pressure_transition_period.to_std(),
        pods_are_limited: config.enforce_node_allocatable.iter().any(|what| what == "pods"),
    };
    let credential_providers = errors.ok(credential_providers(options)).flatten();
    let pods = pod_settings(options, &config, &node.name, root_dir, &mut errors);
    errors.into_result()?;
    Ok(Plan {
        pods,
        node,
        dns,
        eviction,
        strategy: Strategy::from_name(&config.config_map_and_secret_change_detection_strategy)
            .unwrap_or(Strategy::Watch),
        credential_providers,
        cert_dir: options.string("cert-dir").into(),
        throttling_factor: None,
        memory_reservation: MemoryReservation::None,
        reserved_percent: None,
        in_user_namespace: false,
        dns_only_certificates: false,
        kubeconfig: options.string("kubeconfig").to_owned(),
        bootstrap_kubeconfig: options.string("bootstrap-kubeconfig").to_owned(),
        config,
    })
}

fn pod_settings(
    options: &Options,
    config: &KubeletConfiguration,
    node_name: &str,
    root_dir: PathBuf,
    errors: &mut Errors,
) -> PodSettings {
    let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let headers = config.static_pod_url_header.iter();
    let headers = headers.flat_map(|(name, values)| values.0.iter().map(move |value| (name.clone(), value.clone())));
    let percent = |value: Option<i32>| value.and_then(|value| u8::try_from(value).ok()).unwrap_or_default();
    let log_max_bytes = errors.ok(log_size(&config.container_log_max_size)).flatten();
    let number = |flag: &str| i32::try_from(options.int(flag)).unwrap_or(-1);
    let longest =
        config.crash_loop_back_off.max_container_restart_period.map_or(Duration::from_secs(300), GoDuration::to_std);
    PodSettings {
        node_name: node_name.to_owned(),
        root_dir,
        pod_logs_dir: config.pod_logs_dir.clone().into(),
        container_logs_dir: CONTAINER_LOGS.into(),
        static_pod_path: text(&config.static_pod_path).map(PathBuf::from),
        static_pod_url: text(&config.static_pod_url),
        static_pod_url_header: headers.collect(),
        file_check_frequency: config.file_check_frequency.to_std(),
        http_check_frequency: config.http_check_frequency.to_std(),
        sync_frequency: config.sync_frequency.to_std(),
        serialize_image_pulls: config.serialize_image_pulls != Some(false),
        max_parallel_image_pulls: config.max_parallel_image_pulls.and_then(|pulls| usize::try_from(pulls).ok()),
        pull_verification: Some(pull_verification(config)),
        registry_pull_qps: f64::from(config.registry_pull_qps.unwrap_or_default()),
        registry_burst: u32::try_from(config.registry_burst).unwrap_or_default(),
        crash_loop_initial: longest.min(Duration::from_secs(10)),
        crash_loop_max: longest,
        image_gc_high_percent: percent(config.image_gc_high_threshold_percent),
        image_gc_low_percent: percent(config.image_gc_low_threshold_percent),
        image_minimum_age: config.image_minimum_gc_age.to_std(),
        image_maximum_age: config.image_maximum_gc_age.to_std(),
        dead_container_min_age: options.duration("minimum-container-ttl-duration"),
        dead_per_container: number("maximum-dead-containers-per-container"),
        dead_total: number("maximum-dead-containers"),
        log_max_bytes,
        log_max_files: usize::try_from(config.container_log_max_files.unwrap_or_default()).unwrap_or_default(),
        log_monitor_interval: config.container_log_monitor_interval.unwrap_or_default().to_std(),
        cpu_sets_period: config.cpu_manager_reconcile_period.to_std(),
        seccomp_default: config.seccomp_default == Some(true),
        max_pods: usize::try_from(config.max_pods).unwrap_or_default(),
        allowed_unsafe_sysctls: config.allowed_unsafe_sysctls.clone(),
        // What gates and the machine decide is set when they are known.
        ..PodSettings::default()
    }
}

/// Why a setting is none, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum SettingError {
    #[error("invalid containerLogMaxSize {text:?}: {source}")]
    LogSize { text: String, source: QuantityError },
    #[error("bad --node-ip {0:?}: must contain either a single IP or a dual-stack pair of IPs")]
    NodeIps(String),
    #[error("bad --node-ip {0:?}: dual-stack node IP cannot include '0.0.0.0' or '::'")]
    UnspecifiedNodeIp(String),
    #[error(
        "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [{}]\n--node-labels in the 'kubernetes.io' \
         namespace must begin with an allowed prefix ({}) or be in the specifically allowed set ({})",
        .0.join(" "), DOMAINS_OF_KUBELETS.join(", "), OF_KUBELETS.join(", ")
    )]
    Labels(Vec<String>),
    #[error(
        "--image-credential-provider-config and --image-credential-provider-bin-dir must both be set, or neither of them"
    )]
    HalfOfProviders,
}

/// The size at which logs are rotated; negative for never.
fn log_size(text: &str) -> Result<Option<u64>, SettingError> {
    let size = Quantity::parse(text).map_err(|source| SettingError::LogSize { text: text.to_owned(), source })?;
    Ok(u64::try_from(size.value()).ok().filter(|size| *size > 0))
}

fn thresholds_of(config: &KubeletConfiguration) -> Result<Vec<Threshold>, ThresholdError> {
    thresholds::parse(&Maps {
        hard: &config.eviction_hard,
        soft: &config.eviction_soft,
        grace: &config.eviction_soft_grace_period,
        reclaim: &config.eviction_minimum_reclaim,
    })
}

fn reservations_of(
    config: &KubeletConfiguration,
    thresholds: &[Threshold],
) -> Result<reserve::Reservations, ReserveError> {
    let hard = thresholds.iter().filter(|threshold| threshold.grace.is_zero()).cloned().collect();
    let (mut kube, mut system) = (reserve::parse(&config.kube_reserved)?, reserve::parse(&config.system_reserved)?);
    // Which ones says also how many; what else is said about that does not count.
    if let Ok(Some(cpus)) = resource_managers::reserved_cpus(&config.reserved_system_cpus) {
        let count = i64::try_from(cpus.len()).unwrap_or(i64::MAX);
        kube.remove("cpu");
        system.insert("cpu".to_owned(), Quantity::from_value(count, Format::DecimalSi));
    }
    Ok(reserve::Reservations::new(kube, system, hard))
}

/// None, one, or one of each family.
fn node_ips(text: &str) -> Result<Vec<IpAddr>, SettingError> {
    let mut ips = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.parse::<IpAddr>() {
            Ok(ip) => ips.push(ip),
            Err(_) => tracing::warn!(value = part, "Could not parse some node IP(s), ignoring them"),
        }
    }
    match ips.as_slice() {
        [] | [_] => Ok(ips),
        [one, other] if one.is_ipv4() != other.is_ipv4() => {
            let any = one.is_unspecified() || other.is_unspecified();
            if any { Err(SettingError::UnspecifiedNodeIp(text.to_owned())) } else { Ok(ips) }
        }
        _ => Err(SettingError::NodeIps(text.to_owned())),
    }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), SettingError> {
    let is_unknown = |label: &&String| {
        let domain = label.split_once('/').map_or("", |(domain, _)| domain);
        let within = |suffix: &str| domain == suffix || domain.ends_with(&format!(".{suffix}"));
        let reserved = within("kubernetes.io") || within("k8s.io");
        reserved && !OF_KUBELETS.contains(&label.as_str()) && !DOMAINS_OF_KUBELETS.iter().any(|prefix| within(prefix))
    };
    let unknown: Vec<String> = labels.keys().filter(is_unknown).cloned().collect();
    if unknown.is_empty() { Ok(()) } else { Err(SettingError::Labels(unknown)) }
}

/// Where the configuration of the programs with credentials for registries is, and where they are.
fn credential_providers(options: &Options) -> Result<Option<(PathBuf, PathBuf)>, SettingError> {
    let (config, programs) =
        (options.string("image-credential-provider-config"), options.string("image-credential-provider-bin-dir"));
    match (config.is_empty(), programs.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Ok(Some((config.into(), programs.into()))),
        _ => Err(SettingError::HalfOfProviders),
    }
}

/// Whose credentials count for images that are there; the policy has been checked.
fn pull_verification(config: &KubeletConfiguration) -> PullVerification {
    match config.image_pull_credentials_verification_policy.as_str() {
        "NeverVerify" => PullVerification::Never,
        "NeverVerifyAllowlistedImages" => {
            PullVerification::NotListed(config.preloaded_images_verification_allowlist.clone())
        }
        "AlwaysVerify" => PullVerification::Always,
        _ => PullVerification::NotPreloaded,
    }
}

/// The first delay between starts of a container that fails, where it is to be shorter (KEP-4603).
const SHORTER_INITIAL: Duration = Duration::from_secs(1);
/// The longest such delay, where the configuration has no say.
const SHORTER_MAX: Duration = Duration::from_secs(60);

/// Features that pods may need of a node, in the order of their names. Each stands for a gate that is on, and for what
/// is implemented here.
const DECLARED: [Feature; 4] =
    [gates::EXTEND_WEBSOCKETS, gates::POD_LEVEL_RESIZE, gates::RESIZE_INIT_CONTAINERS, gates::RESTART_ALL_CONTAINERS];

/// Features that are fields of pods, and no more.
const OF_PODS: [Feature; 3] = [gates::CONTAINER_RESTART_RULES, gates::ENV_FILES, gates::HOSTNAME_OVERRIDE];

impl Plan {
    /// What follows from gates.
    #[must_use]
    pub(crate) fn with_gates(mut self, set: &Gates) -> Self {
        if set.enabled(gates::DECLARED_FEATURES) {
            let declared = DECLARED.into_iter().filter(|feature| set.enabled(*feature));
            let declared = DeclaredFeatures {
                own: declared.map(|feature| feature.name().to_owned()).collect(),
                host_network_users: set.enabled(gates::HOST_NETWORK_USERS),
            };
            self.node.declared_features.clone_from(&declared);
            self.pods.declared_features = Some(declared);
        }
        if !set.enabled(gates::ENSURE_PULLED) {
            self.pods.pull_verification = None;
        }
        self.pods.resource_health = set.enabled(gates::RESOURCE_HEALTH);
        self.node.gives_up_where_forbidden = set.enabled(gates::REGISTRATION_GET_ON_EXISTS_ONLY);
        self.dns_only_certificates = set.enabled(gates::DNS_ONLY_CERTIFICATES);
        self.pods.comparing = Comparing::by(set);
        self.pods.stop_signals = set.enabled(gates::STOP_SIGNALS);
        self.pods.image_volume_digests = set.enabled(gates::IMAGE_VOLUME_DIGESTS);
        self.pods.sandbox_condition = set.enabled(gates::SANDBOX_CONDITION);
        self.in_user_namespace = set.enabled(gates::IN_USER_NAMESPACE);
        self.pods.keeps_readiness = !set.enabled(gates::STATUS_CHANGES_ON_RESTART);
        self.pods.images_by_handler = set.enabled(gates::IMAGES_BY_HANDLER);
        self.pods.resizes = ExclusiveResizes {
            cpus: set.enabled(gates::RESIZE_EXCLUSIVE_CPUS),
            memory: set.enabled(gates::RESIZE_EXCLUSIVE_MEMORY),
        };
        self.pods.pod_level_resources = set.enabled(gates::POD_LEVEL_RESOURCES);
        self.pods.pod_level_resizes = set.enabled(gates::POD_LEVEL_RESIZE);
        self.pods.node_allocatable_claims = set.enabled(gates::NODE_ALLOCATABLE);
        self.pods.evented_pleg = set.enabled(gates::EVENTED_PLEG);
        self.pods.on_demand_relists = set.enabled(gates::ON_DEMAND_RELISTS);
        self.pods.ignored = OF_PODS.into_iter().filter(|feature| !set.enabled(*feature)).collect();
        self.throttling_factor = self.config.memory_throttling_factor.filter(|_| set.enabled(gates::MEMORY_QOS));
        self.memory_reservation = if set.enabled(gates::MEMORY_QOS) && self.config.memory_reservation_policy == TIERED {
            MemoryReservation::Tiered
        } else {
            MemoryReservation::None
        };
        self.reserved_percent = gated::reserved_percent(&self.config).ok().flatten();
        self.reserved_percent = self.reserved_percent.filter(|_| set.enabled(gates::QOS_RESERVED));
        if !set.enabled(gates::CRASH_BACK_OFF_MAX) && set.enabled(gates::SHORTER_CRASH_BACK_OFF) {
            self.pods.crash_loop_max = SHORTER_MAX;
        }
        if set.enabled(gates::SHORTER_CRASH_BACK_OFF) {
            // The longest delay is the configuration's where it has a say: by default it says five minutes.
            self.pods.crash_loop_initial = self.pods.crash_loop_max.min(SHORTER_INITIAL);
        }
        self.pods.prevent_static_pod_api_references = set.enabled(gates::PREVENT_STATIC_POD_REFERENCES);
        self
    }

    /// The memory of all pods together, which thresholds do not lower.
    pub(crate) fn allocatable_bytes(&self, facts: &Facts) -> i64 {
        self.node.reservations.enforced(&facts.capacity(&self.node)).1
    }

    /// How control groups are laid out; `driver` may come from the runtime.
    pub(crate) fn cgroups(&self, driver: Driver) -> Option<CgroupSettings> {
        let config = &self.config;
        let root = if config.cgroup_root.is_empty() { "/" } else { &config.cgroup_root };
        let names = CgroupNames::new(driver, root)?;
        let period = config.cpu_cfs_quota_period.unwrap_or_default().to_std();
        let (per_class, quota) = (config.cgroups_per_qos != Some(false), config.cpu_cfs_quota != Some(false));
        Some(CgroupSettings::new(names, per_class, quota, period, config.pod_pids_limit.unwrap_or_default()))
    }
}
