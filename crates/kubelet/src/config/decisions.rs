//! Every field of the configuration file and every flag, and whether it is obeyed. A new one without a decision fails.

use api_machinery::reflect::{Reflect, View};
use api_types::kubelet_config_v1beta1::{API_VERSION, KIND, KubeletConfiguration};
use component_base::flags::parse;

use super::fields::PATHS;
use super::flags::{FIELDS, OLD, OWN};
use super::refuse::{MISSING, OLD_BUT_WORKING, missing};
use super::{COMPONENT, load};

/// What is obeyed. What lies below a name is obeyed with it.
const OBEYED: &str = "
    enableServer staticPodPath podLogsDir syncFrequency fileCheckFrequency httpCheckFrequency staticPodURL
    staticPodURLHeader address port readOnlyPort tlsCertFile tlsPrivateKeyFile tlsCipherSuites tlsMinVersion
    tlsCurvePreferences rotateCertificates serverTLSBootstrap authentication authorization registryPullQPS registryBurst
    eventRecordQPS eventBurst enableDebuggingHandlers healthzPort healthzBindAddress oomScoreAdj clusterDomain
    clusterDNS streamingConnectionIdleTimeout nodeStatusUpdateFrequency nodeStatusReportFrequency
    nodeLeaseDurationSeconds imageMinimumGCAge imageMaximumGCAge imageGCHighThresholdPercent imageGCLowThresholdPercent
    volumeStatsAggPeriod kubeletCgroups cgroupRoot cgroupsPerQOS cgroupDriver runtimeRequestTimeout maxPods
    podPidsLimit resolvConf runOnce cpuCFSQuota cpuCFSQuotaPeriod nodeStatusMaxImages maxOpenFiles contentType
    kubeAPIQPS kubeAPIBurst serializeImagePulls maxParallelImagePulls evictionHard evictionSoft evictionSoftGracePeriod
    evictionPressureTransitionPeriod evictionMaxPodGracePeriod evictionMinimumReclaim mergeDefaultEvictionSettings
    podsPerCore enableControllerAttachDetach protectKernelDefaults makeIPTablesUtilChains featureGates failSwapOn
    containerLogMaxSize containerLogMaxFiles containerLogMonitorInterval configMapAndSecretChangeDetectionStrategy
    systemReserved kubeReserved enforceNodeAllocatable allowedUnsafeSysctls providerID logging enableSystemLogHandler
    enableSystemLogQuery     crashLoopBackOff enableProfilingHandler enableDebugFlagsHandler seccompDefault registerWithTaints registerNode
    containerRuntimeEndpoint imageServiceEndpoint failCgroupV1 singleProcessOOMKill cpuManagerReconcilePeriod
    cpuManagerPolicy cpuManagerPolicyOptions memoryManagerPolicy topologyManagerPolicy topologyManagerScope
    topologyManagerPolicyOptions reservedMemory reservedSystemCPUs shutdownGracePeriod shutdownGracePeriodCriticalPods
    shutdownGracePeriodByPodPriority memorySwap memoryThrottlingFactor memoryReservationPolicy qosReserved userNamespaces
    tracing imagePullCredentialsVerificationPolicy preloadedImagesVerificationAllowlist
";
/// What upstream's kubelet does nothing with either: its values are checked, and that is all.
const MOOT: &str = "hairpinMode iptablesMasqueradeBit iptablesDropBit";
/// What is refused unless it asks for what there is, with a value that is refused.
const REFUSED: &[(&str, &str)] = &[
    ("systemCgroups", "/system"),
    ("systemReservedCgroup", "/system"),
    ("kubeReservedCgroup", "/kube"),
    ("kernelMemcgNotification", "true"),
    ("enableContentionProfiling", "true"),
    ("podCIDR", "10.0.0.0/24"),
    ("showHiddenMetricsForVersion", "'1.35'"),
    ("containerLogMaxWorkers", "2"),
    ("localStorageCapacityIsolation", "false"),
    ("volumePluginDir", "/elsewhere"),
];
/// Flags that are no fields and are read where they count.
const READ: [&str; 13] = [
    "bootstrap-kubeconfig",
    "cert-dir",
    "cloud-provider",
    "config",
    "config-dir",
    "feature-gates",
    "hostname-override",
    "image-credential-provider-bin-dir",
    "image-credential-provider-config",
    "kubeconfig",
    "node-ip",
    "node-labels",
    "root-dir",
];

/// The paths of all fields; a struct that may be missing counts as one.
fn paths(of: &dyn Reflect, above: &str, out: &mut Vec<String>) {
    for (index, field) in of.struct_type().fields.iter().enumerate() {
        let path = match (above, field.inline) {
            (above, true) => above.to_owned(),
            ("", false) => field.name.to_owned(),
            (above, false) => format!("{above}.{}", field.name),
        };
        match of.field(index).view() {
            View::Struct(inner) => paths(inner, &path, out),
            _ => out.push(path),
        }
    }
}

#[test]
fn every_field_is_decided_once() {
    let decided: Vec<&str> =
        OBEYED.split_whitespace().chain(MOOT.split_whitespace()).chain(REFUSED.iter().map(|(name, _)| *name)).collect();
    let mut fields = Vec::new();
    paths(&KubeletConfiguration::default(), "", &mut fields);
    let covers = |decision: &str, field: &str| {
        field.strip_prefix(decision).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for field in &fields {
        let count = decided.iter().filter(|decision| covers(decision, field)).count();
        assert_eq!(count, 1, "{field}: is it obeyed, refused or moot?");
    }
    for decision in &decided {
        assert!(fields.iter().any(|field| covers(decision, field)), "{decision} is no field");
    }
    let listed: Vec<&str> = missing(&KubeletConfiguration::default()).into_iter().map(|(name, _)| name).collect();
    let mut refused: Vec<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
    let mut sorted = listed.clone();
    refused.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(refused, sorted);
}

/// Loads one line of configuration; gives the error.
fn refusal(path: &str, value: &str) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    let mut text = value.to_owned();
    for name in path.rsplit('.') {
        text = format!("{{{name}: {text}}}");
    }
    let text = format!("{{apiVersion: {API_VERSION}, kind: {KIND}, {}", text.strip_prefix('{').unwrap());
    std::fs::write(&file, text).unwrap();
    let options = parse(COMPONENT.flags, [format!("--config={}", file.display())]).unwrap();
    load(&options).map(drop).map_err(|error| error.to_string())
}

#[test]
fn what_is_refused_is_named() {
    for (path, value) in REFUSED {
        let error = refusal(path, value).expect_err(path);
        assert!(error.contains(&format!("{path} is not supported by this kubelet")), "{path}: {error}");
    }
    let wrong = [
        ("contentType", "application/cbor"),
        ("hairpinMode", "sideways"),
        ("memorySwap.swapBehavior", "AllSwap"),
        ("memoryThrottlingFactor", "1.1"),
        ("memoryThrottlingFactor", "0"),
        ("memoryReservationPolicy", "HardReservation"),
    ];
    for (path, value) in wrong {
        let error = refusal(path, value).expect_err(path);
        assert!(error.contains(path), "{path}: {error}");
    }
    for (path, value) in [
        ("contentType", "application/json"),
        ("hairpinMode", "none"),
        ("memoryThrottlingFactor", "0.5"),
        ("memoryReservationPolicy", "None"),
        ("memoryReservationPolicy", "TieredReservation"),
        ("qosReserved", "{memory: 50%}"),
        ("memorySwap.swapBehavior", "LimitedSwap"),
        ("streamingConnectionIdleTimeout", "0s"),
    ] {
        refusal(path, value).unwrap();
    }
}

#[test]
fn every_flag_is_read_or_refused() {
    for flag in OWN.flags.iter().chain(FIELDS.flags).chain(OLD.flags) {
        let is_old = OLD.flags.iter().any(|old| old.name == flag.name);
        let is_field = PATHS.iter().any(|(name, _)| *name == flag.name);
        let decided = is_field || is_old || READ.contains(&flag.name) || MISSING.contains(&flag.name);
        assert!(decided, "--{} is accepted and ignored", flag.name);
    }
    for old in OLD_BUT_WORKING {
        assert!(OLD.flags.iter().any(|flag| flag.name == old), "{old}");
    }
    let mut fields = Vec::new();
    paths(&KubeletConfiguration::default(), "", &mut fields);
    for (flag, path) in PATHS {
        assert!(fields.iter().any(|field| field == path), "--{flag} stands for {path}, which is no field");
    }
}
