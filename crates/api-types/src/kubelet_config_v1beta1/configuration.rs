//! `KubeletConfiguration`. What each field must fit to is checked by the kubelet; defaults are in the table.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::leaf::StringList;
use api_machinery::time::GoDuration;

use super::{
    CrashLoopBackOffConfig, KubeletAuthentication, KubeletAuthorization, LoggingConfiguration, MemoryReservation,
    MemorySwapConfiguration, ShutdownGracePeriodByPodPriority, TracingConfiguration, UserNamespaces,
};
use crate::core_v1::Taint;

/// The configuration of a kubelet.
#[api]
pub struct KubeletConfiguration {
    /// Whether the kubelet serves its own API.
    #[field(0, fill = "true")]
    pub enable_server: Option<bool>,
    /// A directory, or one file, with pods to run.
    #[field(0)]
    pub static_pod_path: String,
    /// The directory below which the logs of pods are written.
    #[field(0, fill = "\"/var/log/pods\"")]
    pub pod_logs_dir: String,
    /// Longest time between two looks at a running pod.
    #[field(0, fill = "\"1m0s\"")]
    pub sync_frequency: GoDuration,
    /// Time between two readings of the static pods' directory.
    #[field(0, fill = "\"20s\"")]
    pub file_check_frequency: GoDuration,
    /// Time between two readings of the static pods' URL.
    #[field(0, fill = "\"20s\"")]
    pub http_check_frequency: GoDuration,
    /// A URL that answers with pods to run.
    #[field(0, name = "staticPodURL")]
    pub static_pod_url: String,
    /// Headers of the request to that URL.
    #[field(0, name = "staticPodURLHeader")]
    pub static_pod_url_header: BTreeMap<String, StringList>,
    /// The address to serve on; 0.0.0.0 is all interfaces.
    #[field(0, fill = "\"0.0.0.0\"")]
    pub address: String,
    /// The port of the kubelet's API.
    #[field(0, fill = "10250")]
    pub port: i32,
    /// A port without authentication; 0 is none.
    #[field(0)]
    pub read_only_port: i32,
    /// File with the serving certificate, intermediates after the leaf.
    #[field(0)]
    pub tls_cert_file: String,
    /// File with the serving certificate's key.
    #[field(0)]
    pub tls_private_key_file: String,
    /// Cipher suites offered for TLS 1.2, by their Go names.
    #[field(0)]
    pub tls_cipher_suites: Vec<String>,
    /// Key exchange groups by their TLS numbers, most wanted first.
    #[field(0)]
    pub tls_curve_preferences: Vec<i32>,
    /// The lowest TLS version offered.
    #[field(0)]
    pub tls_min_version: String,
    /// Whether the client certificate is renewed before it expires.
    #[field(0)]
    pub rotate_certificates: bool,
    /// Whether the serving certificate is requested from the API server.
    #[field(0, name = "serverTLSBootstrap")]
    pub server_tls_bootstrap: bool,
    /// Who may talk to the kubelet's API.
    #[field(0)]
    pub authentication: KubeletAuthentication,
    /// What those may do.
    #[field(0)]
    pub authorization: KubeletAuthorization,
    /// Image pulls per second; 0 is no limit.
    #[field(0, name = "registryPullQPS", fill = "5")]
    pub registry_pull_qps: Option<i32>,
    /// Image pulls that may start at once beyond that.
    #[field(0, fill = "10")]
    pub registry_burst: i32,
    /// When a pod must show that it may use an image that is there already.
    #[field(0, fill = "\"NeverVerifyPreloadedImages\"")]
    pub image_pull_credentials_verification_policy: String,
    /// Images that need no such proof.
    #[field(0, set)]
    pub preloaded_images_verification_allowlist: Vec<String>,
    /// Events sent per second; 0 is no limit.
    #[field(0, name = "eventRecordQPS", fill = "50")]
    pub event_record_qps: Option<i32>,
    /// Events that may be sent at once beyond that.
    #[field(0, fill = "100")]
    pub event_burst: i32,
    /// Whether exec, attach, port-forward, logs and the like are served.
    #[field(0, fill = "true")]
    pub enable_debugging_handlers: Option<bool>,
    /// Whether lock contention is profiled.
    #[field(0)]
    pub enable_contention_profiling: bool,
    /// The port of the plain health endpoint; 0 is none.
    #[field(0, fill = "10248")]
    pub healthz_port: Option<i32>,
    /// The address of the plain health endpoint.
    #[field(0, fill = "\"127.0.0.1\"")]
    pub healthz_bind_address: String,
    /// The kubelet's own out-of-memory score adjustment.
    #[field(0, fill = "-999")]
    pub oom_score_adj: Option<i32>,
    /// The cluster's DNS domain, added to the search list of pods.
    #[field(0)]
    pub cluster_domain: String,
    /// Addresses of the cluster's DNS servers.
    #[field(0, name = "clusterDNS")]
    pub cluster_dns: Vec<String>,
    /// Accepted for old files; the runtime's own limit rules.
    #[field(0, fill = "\"4h0m0s\"")]
    pub streaming_connection_idle_timeout: GoDuration,
    /// Time between two computations of the node's status.
    #[field(0, fill = "\"10s\"")]
    pub node_status_update_frequency: GoDuration,
    /// Longest time between two reports of an unchanged status.
    #[field(0, fill = "\"5m0s\"")]
    pub node_status_report_frequency: GoDuration,
    /// How long the node's lease is valid.
    #[field(0, fill = "40")]
    pub node_lease_duration_seconds: i32,
    /// How long an unused image is kept at least.
    #[field(0, name = "imageMinimumGCAge", fill = "\"2m0s\"")]
    pub image_minimum_gc_age: GoDuration,
    /// How long an unused image is kept at most; 0 is for ever.
    #[field(0, name = "imageMaximumGCAge")]
    pub image_maximum_gc_age: GoDuration,
    /// Disk usage at which images are removed.
    #[field(0, name = "imageGCHighThresholdPercent", fill = "85")]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk usage at which removing images stops.
    #[field(0, name = "imageGCLowThresholdPercent", fill = "80")]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Time between two measurements of volumes.
    #[field(0, fill = "\"1m0s\"")]
    pub volume_stats_agg_period: GoDuration,
    /// The control group that the kubelet is moved into.
    #[field(0)]
    pub kubelet_cgroups: String,
    /// The control group for other processes of the machine.
    #[field(0)]
    pub system_cgroups: String,
    /// The control group below which those of pods are made.
    #[field(0)]
    pub cgroup_root: String,
    /// Whether pods are grouped by their quality of service.
    #[field(0, name = "cgroupsPerQOS", fill = "true")]
    pub cgroups_per_qos: Option<bool>,
    /// Who makes control groups: cgroupfs or systemd.
    #[field(0, fill = "\"cgroupfs\"")]
    pub cgroup_driver: String,
    /// How containers share processors: none or static.
    #[field(0, fill = "\"none\"")]
    pub cpu_manager_policy: String,
    /// Whether the kernel kills one process of a container instead of all when memory runs out.
    #[field(0, name = "singleProcessOOMKill")]
    pub single_process_oom_kill: Option<bool>,
    /// Refinements of the processor policy.
    #[field(0)]
    pub cpu_manager_policy_options: BTreeMap<String, String>,
    /// Time between two checks of the processors of containers.
    #[field(0, fill = "\"10s\"")]
    pub cpu_manager_reconcile_period: GoDuration,
    /// How containers share memory nodes: None or Static.
    #[field(0, fill = "\"None\"")]
    pub memory_manager_policy: String,
    /// How strictly resources must be near each other.
    #[field(0, fill = "\"none\"")]
    pub topology_manager_policy: String,
    /// Whether that is per container or per pod.
    #[field(0, fill = "\"container\"")]
    pub topology_manager_scope: String,
    /// Refinements of the topology policy.
    #[field(0)]
    pub topology_manager_policy_options: BTreeMap<String, String>,
    /// Shares of resources kept from lower classes.
    #[field(0)]
    pub qos_reserved: BTreeMap<String, String>,
    /// How long a call to the runtime may take, pulls and the like aside.
    #[field(0, fill = "\"2m0s\"")]
    pub runtime_request_timeout: GoDuration,
    /// How pods reach themselves through their service.
    #[field(0, fill = "\"promiscuous-bridge\"")]
    pub hairpin_mode: String,
    /// How many pods may run here.
    #[field(0, fill = "110")]
    pub max_pods: i32,
    /// Addresses for pods, for nodes without an API server.
    #[field(0, name = "podCIDR")]
    pub pod_cidr: String,
    /// Processes that a pod may have; negative is no limit.
    #[field(0, fill = "-1")]
    pub pod_pids_limit: Option<i64>,
    /// The resolver file that pods inherit; empty is none.
    #[field(0, fill = "\"/etc/resolv.conf\"")]
    pub resolv_conf: Option<String>,
    /// Not supported.
    #[field(0)]
    pub run_once: bool,
    /// Whether processor limits are enforced.
    #[field(0, name = "cpuCFSQuota", fill = "true")]
    pub cpu_cfs_quota: Option<bool>,
    /// The period in which they are enforced.
    #[field(0, name = "cpuCFSQuotaPeriod", fill = "\"100ms\"")]
    pub cpu_cfs_quota_period: Option<GoDuration>,
    /// Images listed in the node's status; -1 is all.
    #[field(0, fill = "50")]
    pub node_status_max_images: Option<i32>,
    /// Files that the kubelet may have open.
    #[field(0, fill = "1000000")]
    pub max_open_files: i64,
    /// Media type of requests to the API server.
    #[field(0, fill = "\"application/vnd.kubernetes.protobuf\"")]
    pub content_type: String,
    /// Requests to the API server per second.
    #[field(0, name = "kubeAPIQPS", fill = "50")]
    pub kube_api_qps: Option<i32>,
    /// Requests that may be sent at once beyond that.
    #[field(0, name = "kubeAPIBurst", fill = "100")]
    pub kube_api_burst: i32,
    /// Whether images are pulled one after another.
    #[field(0, fill = "true")]
    pub serialize_image_pulls: Option<bool>,
    /// Pulls at a time when they are not.
    #[field(0)]
    pub max_parallel_image_pulls: Option<i32>,
    /// Signals and the thresholds at which pods are evicted at once.
    #[field(0)]
    pub eviction_hard: BTreeMap<String, String>,
    /// Signals and the thresholds at which pods are evicted after a grace period.
    #[field(0)]
    pub eviction_soft: BTreeMap<String, String>,
    /// Those grace periods.
    #[field(0)]
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    /// How long a pressure condition is held.
    #[field(0, fill = "\"5m0s\"")]
    pub eviction_pressure_transition_period: GoDuration,
    /// Longest grace in seconds of a pod that a soft threshold evicts.
    #[field(0)]
    pub eviction_max_pod_grace_period: i32,
    /// What must be reclaimed beyond a threshold.
    #[field(0)]
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    /// Whether thresholds that are not given keep their defaults.
    #[field(0, fill = "false")]
    pub merge_default_eviction_settings: Option<bool>,
    /// Pods per processor; 0 is no limit.
    #[field(0)]
    pub pods_per_core: i32,
    /// Whether a controller attaches volumes.
    #[field(0, fill = "true")]
    pub enable_controller_attach_detach: Option<bool>,
    /// Whether wrong kernel settings are an error instead of being corrected.
    #[field(0)]
    pub protect_kernel_defaults: bool,
    /// Whether the kubelet keeps its chains in the packet filter.
    #[field(0, name = "makeIPTablesUtilChains", fill = "true")]
    pub make_ip_tables_util_chains: Option<bool>,
    /// Accepted for old files.
    #[field(0, fill = "14")]
    pub iptables_masquerade_bit: Option<i32>,
    /// Accepted for old files.
    #[field(0, fill = "15")]
    pub iptables_drop_bit: Option<i32>,
    /// Features to turn on or off.
    #[field(0)]
    pub feature_gates: BTreeMap<String, bool>,
    /// Whether a machine with swap is refused.
    #[field(0, fill = "true")]
    pub fail_swap_on: Option<bool>,
    /// How containers may use swap.
    #[field(0)]
    pub memory_swap: MemorySwapConfiguration,
    /// Size at which a container's log is rotated.
    #[field(0, fill = "\"10Mi\"")]
    pub container_log_max_size: String,
    /// Log files kept for a container.
    #[field(0, fill = "5")]
    pub container_log_max_files: Option<i32>,
    /// Logs rotated at a time.
    #[field(0, fill = "1")]
    pub container_log_max_workers: Option<i32>,
    /// Time between two looks at the logs' sizes.
    #[field(0, fill = "\"10s\"")]
    pub container_log_monitor_interval: Option<GoDuration>,
    /// How changes of config maps and secrets are noticed: Get, Cache or Watch.
    #[field(0, fill = "\"Watch\"")]
    pub config_map_and_secret_change_detection_strategy: String,
    /// Resources kept for the system.
    #[field(0)]
    pub system_reserved: BTreeMap<String, String>,
    /// Resources kept for Kubernetes' own processes.
    #[field(0)]
    pub kube_reserved: BTreeMap<String, String>,
    /// Processors kept for the system and Kubernetes.
    #[field(0, name = "reservedSystemCPUs")]
    pub reserved_system_cpus: String,
    /// The release whose hidden metrics are shown once more.
    #[field(0)]
    pub show_hidden_metrics_for_version: String,
    /// The control group of the system's processes.
    #[field(0)]
    pub system_reserved_cgroup: String,
    /// The control group of Kubernetes' own processes.
    #[field(0)]
    pub kube_reserved_cgroup: String,
    /// What the reservations are enforced on.
    #[field(0, fill = "[\"pods\"]")]
    pub enforce_node_allocatable: Vec<String>,
    /// Kernel parameters that pods may set beyond the safe ones.
    #[field(0)]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// The directory of exec volume plugins.
    #[field(0, fill = "\"/usr/libexec/kubernetes/kubelet-plugins/volume/exec/\"")]
    pub volume_plugin_dir: String,
    /// The cloud's id of this node.
    #[field(0, name = "providerID")]
    pub provider_id: String,
    /// Whether the kernel reports memory thresholds.
    #[field(0)]
    pub kernel_memcg_notification: bool,
    /// The log.
    #[field(0)]
    pub logging: LoggingConfiguration,
    /// Whether the machine's logs are served.
    #[field(0, fill = "true")]
    pub enable_system_log_handler: Option<bool>,
    /// Whether they can be queried by service.
    #[field(0)]
    pub enable_system_log_query: Option<bool>,
    /// How long pods may take to end when the machine goes down.
    #[field(0)]
    pub shutdown_grace_period: GoDuration,
    /// The part of it that is for critical pods.
    #[field(0)]
    pub shutdown_grace_period_critical_pods: GoDuration,
    /// Such periods by priority.
    #[field(0)]
    pub shutdown_grace_period_by_pod_priority: Vec<ShutdownGracePeriodByPodPriority>,
    /// Delays of containers that crash.
    #[field(0)]
    pub crash_loop_back_off: CrashLoopBackOffConfig,
    /// Memory kept on each memory node.
    #[field(0)]
    pub reserved_memory: Vec<MemoryReservation>,
    /// Whether profiles are served.
    #[field(0, fill = "true")]
    pub enable_profiling_handler: Option<bool>,
    /// Whether the log's verbosity can be set by request.
    #[field(0, fill = "true")]
    pub enable_debug_flags_handler: Option<bool>,
    /// Whether containers get the runtime's seccomp profile by default.
    #[field(0, fill = "false")]
    pub seccomp_default: Option<bool>,
    /// Where memory.high lies between request and limit.
    #[field(0, fill = "0.9")]
    pub memory_throttling_factor: Option<f64>,
    /// How requests become memory protection.
    #[field(0, fill = "\"None\"")]
    pub memory_reservation_policy: String,
    /// Taints of a node that registers.
    #[field(0)]
    pub register_with_taints: Vec<Taint>,
    /// Whether the kubelet registers its node.
    #[field(0, fill = "true")]
    pub register_node: Option<bool>,
    /// Where traces go.
    #[field(0)]
    pub tracing: Option<TracingConfiguration>,
    /// Whether local ephemeral storage is counted.
    #[field(0, fill = "true")]
    pub local_storage_capacity_isolation: Option<bool>,
    /// The runtime's socket.
    #[field(0, fill = "\"unix:///run/containerd/containerd.sock\"")]
    pub container_runtime_endpoint: String,
    /// The image service's socket; empty is the runtime's.
    #[field(0)]
    pub image_service_endpoint: String,
    /// Whether a machine with control groups of version 1 is refused.
    #[field(0, fill = "true")]
    pub fail_cgroup_v1: Option<bool>,
    /// The id ranges of pods with a user namespace.
    #[field(0)]
    pub user_namespaces: Option<UserNamespaces>,
}
