//! Settings that an upstream kubelet has and this one does not: using one is an error, never silence.

use api_types::kubelet_config_v1beta1::KubeletConfiguration;
use component_base::flags::{Errors, Invalid, Options};

use super::flags::OLD;

/// Old flags that do something here.
pub(super) const OLD_BUT_WORKING: [&str; 4] = [
    "enable-server",
    "maximum-dead-containers",
    "maximum-dead-containers-per-container",
    "minimum-container-ttl-duration",
];
/// Flags of features that are not there.
pub(super) const MISSING: [&str; 5] =
    ["exit-on-lock-contention", "lock-file", "housekeeping-interval", "max-housekeeping-interval", "runtime-cgroups"];

/// Everything that is asked for and not there.
pub(super) fn check(options: &Options, config: &KubeletConfiguration) -> Result<(), Invalid> {
    let mut errors = Errors::new();
    for flag in OLD.flags.iter().map(|flag| flag.name).chain(MISSING) {
        let works = OLD_BUT_WORKING.contains(&flag);
        errors.check(works || !options.is_set(flag), format!("--{flag} is not supported by this kubelet"));
    }
    let cloud = options.string("cloud-provider");
    errors.check(
        matches!(cloud, "" | "external"),
        format!("unsupported value {cloud:?} for --cloud-provider: only \"\" and \"external\" are supported"),
    );
    for (field, asked) in missing(config) {
        errors.check(!asked, format!("invalid configuration: {field} is not supported by this kubelet"));
    }
    errors.into_result()
}

/// Fields of features that are not there, and whether they ask for anything but the feature's absence.
pub(super) fn missing(config: &KubeletConfiguration) -> Vec<(&'static str, bool)> {
    let set = |text: &str, default: &str| !text.is_empty() && text != default;
    vec![
        ("systemCgroups", !config.system_cgroups.is_empty()),
        ("systemReservedCgroup", !config.system_reserved_cgroup.is_empty()),
        ("kubeReservedCgroup", !config.kube_reserved_cgroup.is_empty()),
        ("kernelMemcgNotification", config.kernel_memcg_notification),
        ("enableContentionProfiling", config.enable_contention_profiling),
        ("podCIDR", !config.pod_cidr.is_empty()),
        ("showHiddenMetricsForVersion", !config.show_hidden_metrics_for_version.is_empty()),
        ("containerLogMaxWorkers", config.container_log_max_workers.is_some_and(|workers| workers != 1)),
        ("localStorageCapacityIsolation", config.local_storage_capacity_isolation == Some(false)),
        ("volumePluginDir", set(&config.volume_plugin_dir, "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/")),
    ]
}
