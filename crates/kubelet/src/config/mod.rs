//! The kubelet's configuration: flags, the file, drop-ins, and the checks on all of it together.

#[cfg(test)]
mod decisions;
mod fields;
pub(crate) mod flags;
mod gated;
mod load;
mod refuse;
mod settings;
mod validate;

use std::time::Duration;

use component_base::Component;
use component_base::flags::{self as base_flags, Options};

pub(crate) use gated::check as check_gated;
pub(crate) use load::load;
pub(crate) use settings::{Plan, plan};
pub(crate) use validate::{LIMITED_SWAP, content_type};

/// The gates that change something here.
pub(crate) mod gates {
    pub(crate) use component_base::shared_gates::{
        COMPARING_TOLERATIONS, CREDENTIAL_TOKENS, DECLARED_FEATURES, EXTEND_WEBSOCKETS, EXTENDED_RESOURCE,
        GROUP_CLAIMS, HOST_NETWORK_USERS, IMAGE_VOLUME_DIGESTS, NODE_ALLOCATABLE, POD_LEVEL_RESIZE,
        POD_LEVEL_RESOURCES, RESIZE_INIT_CONTAINERS, RESOURCE_HEALTH, RESOURCE_HEALTH_MESSAGE, SPLIT_LOG_STREAMS,
        STOP_SIGNALS, SUBJECT_UID,
    };
    use component_base::{Feature, Known, Part};

    pub(crate) const CPU_POLICY_ALPHA_OPTIONS: Feature = Feature::named("CPUManagerPolicyAlphaOptions");
    pub(crate) const CPU_POLICY_BETA_OPTIONS: Feature = Feature::named("CPUManagerPolicyBetaOptions");
    pub(crate) const CHECKPOINTS: Feature = Feature::named("ContainerCheckpoint");
    pub(crate) const CRASH_BACK_OFF_MAX: Feature = Feature::named("KubeletCrashLoopBackOffMax");
    pub(crate) const ON_DEMAND_RELISTS: Feature = Feature::named("PLEGOnDemandRelist");
    pub(crate) const EVENTED_PLEG: Feature = Feature::named("EventedPLEG");
    pub(crate) const IMAGES_BY_HANDLER: Feature = Feature::named("RuntimeClassInImageCriApi");
    pub(crate) const IN_USER_NAMESPACE: Feature = Feature::named("KubeletInUserNamespace");
    pub(crate) const STATUS_CHANGES_ON_RESTART: Feature = Feature::named("ChangeContainerStatusOnKubeletRestart");
    pub(crate) const VOLUME_HEALTH: Feature = Feature::named("CSIVolumeHealth");
    /// No option is of these stages now, so that they switch nothing.
    pub(crate) const TOPOLOGY_POLICY_ALPHA_OPTIONS: Feature = Feature::named("TopologyManagerPolicyAlphaOptions");
    pub(crate) const TOPOLOGY_POLICY_BETA_OPTIONS: Feature = Feature::named("TopologyManagerPolicyBetaOptions");
    pub(crate) const LIST_STREAMING: Feature = Feature::named("CRIListStreaming");
    pub(crate) const MEMORY_QOS: Feature = Feature::named("MemoryQoS");
    pub(crate) const PODS_API: Feature = Feature::named("PodsAPI");
    pub(crate) const QOS_RESERVED: Feature = Feature::named("QOSReserved");
    pub(crate) const QUOTA_PERIOD: Feature = Feature::named("CustomCPUCFSQuotaPeriod");
    pub(crate) const STATS_FROM_RUNTIME: Feature = Feature::named("PodAndContainerStatsFromCRI");
    pub(crate) const SANDBOX_CONDITION: Feature = Feature::named("PodReadyToStartContainersCondition");
    pub(crate) const SEPARATE_DISKS: Feature = Feature::named("KubeletSeparateDiskGC");
    pub(crate) const SCRATCH_QUOTAS: Feature = Feature::named("LocalStorageCapacityIsolationFSQuotaMonitoring");
    pub(crate) const DISABLE_CPU_QUOTA: Feature = Feature::named("DisableCPUQuotaWithExclusiveCPUs");
    pub(crate) const GRACEFUL_SHUTDOWN: Feature = Feature::named("GracefulNodeShutdown");
    pub(crate) const GRACEFUL_SHUTDOWN_BY_PRIORITY: Feature = Feature::named("GracefulNodeShutdownBasedOnPodPriority");
    pub(crate) const RESIZE_EXCLUSIVE_CPUS: Feature = Feature::named("InPlacePodVerticalScalingExclusiveCPUs");
    pub(crate) const RESIZE_EXCLUSIVE_MEMORY: Feature = Feature::named("InPlacePodVerticalScalingExclusiveMemory");
    pub(crate) const ENSURE_PULLED: Feature = Feature::named("KubeletEnsureSecretPulledImages");
    pub(crate) const LIST_ACTIVE_PODS: Feature = Feature::named("KubeletPodResourcesListUseActivePods");
    pub(crate) const DNS_ONLY_CERTIFICATES: Feature = Feature::named("AllowDNSOnlyNodeCSR");
    pub(crate) const REGISTRATION_GET_ON_EXISTS_ONLY: Feature = Feature::named("KubeletRegistrationGetOnExistsOnly");
    pub(crate) const SHORTER_CRASH_BACK_OFF: Feature = Feature::named("ReduceDefaultCrashLoopBackOffDecay");
    pub(crate) const POD_LEVEL_MANAGERS: Feature = Feature::named("PodLevelResourceManagers");
    pub(crate) const RELOAD_CLIENT_CA: Feature = Feature::named("ReloadKubeletClientCAFile");
    pub(crate) const RELOAD_SERVER_CERTIFICATE: Feature = Feature::named("ReloadKubeletServerCertificateFile");
    pub(crate) const PREVENT_STATIC_POD_REFERENCES: Feature = Feature::named("PreventStaticPodAPIReferences");
    pub(crate) const ROTATE_SERVER_CERTIFICATE: Feature = Feature::named("RotateKubeletServerCertificate");
    pub(crate) use component_base::shared_gates::CLUSTER_TRUST_BUNDLE_PROJECTION as TRUST_BUNDLES;
    pub(crate) use component_base::shared_gates::POD_CERTIFICATE_REQUEST as POD_CERTIFICATES;
    pub(crate) use component_base::shared_gates::RESTART_ALL_CONTAINERS;
    pub(crate) use component_base::shared_gates::SELINUX_MOUNT as MOUNT_WITH_LABELS;
    pub(crate) use component_base::shared_gates::{CONTAINER_RESTART_RULES, ENV_FILES, HOSTNAME_OVERRIDE};

    /// All of them.
    pub(crate) const KNOWN: Known = Known::switching(&[
        &[
            CPU_POLICY_ALPHA_OPTIONS,
            CPU_POLICY_BETA_OPTIONS,
            CHECKPOINTS,
            CRASH_BACK_OFF_MAX,
            EVENTED_PLEG,
            IMAGES_BY_HANDLER,
            IN_USER_NAMESPACE,
            STATUS_CHANGES_ON_RESTART,
            VOLUME_HEALTH,
            TOPOLOGY_POLICY_ALPHA_OPTIONS,
            TOPOLOGY_POLICY_BETA_OPTIONS,
            LIST_STREAMING,
            MEMORY_QOS,
            PODS_API,
            QOS_RESERVED,
            QUOTA_PERIOD,
            STATS_FROM_RUNTIME,
            SANDBOX_CONDITION,
            SEPARATE_DISKS,
            SCRATCH_QUOTAS,
            COMPARING_TOLERATIONS,
            CONTAINER_RESTART_RULES,
            ENV_FILES,
            HOSTNAME_OVERRIDE,
            DISABLE_CPU_QUOTA,
            EXTEND_WEBSOCKETS,
            GRACEFUL_SHUTDOWN,
            GRACEFUL_SHUTDOWN_BY_PRIORITY,
            HOST_NETWORK_USERS,
            RESIZE_EXCLUSIVE_CPUS,
            RESIZE_EXCLUSIVE_MEMORY,
            RESIZE_INIT_CONTAINERS,
            DECLARED_FEATURES,
            EXTENDED_RESOURCE,
            GROUP_CLAIMS,
            CREDENTIAL_TOKENS,
            ENSURE_PULLED,
            LIST_ACTIVE_PODS,
            DNS_ONLY_CERTIFICATES,
            REGISTRATION_GET_ON_EXISTS_ONLY,
            SPLIT_LOG_STREAMS,
            STOP_SIGNALS,
            SUBJECT_UID,
            IMAGE_VOLUME_DIGESTS,
            NODE_ALLOCATABLE,
            SHORTER_CRASH_BACK_OFF,
            RESOURCE_HEALTH,
            RESOURCE_HEALTH_MESSAGE,
            PREVENT_STATIC_POD_REFERENCES,
            RESTART_ALL_CONTAINERS,
            ROTATE_SERVER_CERTIFICATE,
            MOUNT_WITH_LABELS,
            POD_CERTIFICATES,
            TRUST_BUNDLES,
            ON_DEMAND_RELISTS,
            POD_LEVEL_MANAGERS,
            POD_LEVEL_RESIZE,
            POD_LEVEL_RESOURCES,
            RELOAD_CLIENT_CA,
            RELOAD_SERVER_CERTIFICATE,
        ],
        component_base::zpages::GATES,
        component_base::logging::GATES,
        component_base::metrics::GATES,
        client::features::GATES,
    ])
    .of(Part::Kubelet);
}

/// The kubelet's binary.
pub const COMPONENT: Component = Component {
    name: "kubelet",
    about: "The kubelet is the node agent of a cluster: it registers its node and sees to it that the containers of the \
            pods that are bound to it run and are healthy.",
    flags: &[base_flags::GLOBAL, base_flags::LOGS, flags::OWN, flags::FIELDS, flags::OLD],
    gates: gates::KNOWN,
    prepare,
    drain: Duration::from_secs(5),
};

/// Reads the file once for what concerns the log and the gates.
fn prepare(options: &mut Options) -> Result<(), base_flags::Invalid> {
    if options.bool("help") {
        return Ok(());
    }
    let config = load(options)?;
    let pairs = config.feature_gates.iter().map(|(name, on)| (name.clone(), on.to_string())).collect();
    let log = &config.logging;
    let verbosity = log.verbosity.to_string();
    let modules: Vec<String> =
        log.vmodule.iter().map(|item| format!("{}={}", item.file_pattern, item.verbosity)).collect();
    let (text, json) = (&log.options.text, &log.options.json);
    let settings = [
        ("logging-format", log.format.clone()),
        ("v", verbosity),
        ("vmodule", modules.join(",")),
        ("log-flush-frequency", load::duration_text(&log.flush_frequency)),
        ("log-text-split-stream", text.split_stream.to_string()),
        ("log-text-info-buffer-size", text.info_buffer_size.clone()),
        ("log-json-split-stream", json.split_stream.to_string()),
        ("log-json-info-buffer-size", json.info_buffer_size.clone()),
    ];
    let set = |options: &mut Options| -> Result<(), base_flags::ValueError> {
        options.merge_from_file("feature-gates", pairs)?;
        settings.iter().try_for_each(|(flag, value)| options.set_from_file(flag, value))
    };
    set(options).map_err(base_flags::Invalid::one)
}

#[cfg(test)]
mod tests;
