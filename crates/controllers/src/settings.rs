//! What the controllers can be told by flags, with upstream's defaults. The component's options fill it in.

use std::path::PathBuf;
use std::time::Duration;

use component_helpers::time_zone::TimeZone;

/// Settings of the controllers, handed to each when it is built.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `--concurrent-deployment-syncs`.
    pub deployment_syncs: usize,
    /// `--concurrent-replicaset-syncs`.
    pub replica_set_syncs: usize,
    /// `--concurrent-rc-syncs`.
    pub replication_controller_syncs: usize,
    /// `--concurrent-daemonset-syncs`, for each of the two queues.
    pub daemon_set_syncs: usize,
    /// `--concurrent-job-syncs`, for each of the two queues.
    pub job_syncs: usize,
    /// `--concurrent-cron-job-syncs`.
    pub cron_job_syncs: usize,
    /// The zone of schedules that name none: the process's own.
    pub local_zone: TimeZone,
    /// `--concurrent-resource-quota-syncs`.
    pub resource_quota_syncs: usize,
    /// `--resource-quota-sync-period`.
    pub resource_quota_sync_period: Duration,
    /// `--mirroring-concurrent-service-endpoint-syncs`.
    pub mirroring_syncs: usize,
    /// `--mirroring-endpointslice-updates-batch-period`.
    pub mirroring_batch_period: Duration,
    /// `--mirroring-max-endpoints-per-subset`.
    pub mirroring_max_per_subset: usize,
    /// `--concurrent-statefulset-syncs`.
    pub stateful_set_syncs: usize,
    /// `--concurrent-validating-admission-policy-status-syncs`.
    pub policy_status_syncs: usize,
    /// `--concurrent-ttl-after-finished-syncs`.
    pub ttl_after_finished_syncs: usize,
    /// `--terminated-pod-gc-threshold`: how many ended pods may stay; 0 or less for any number.
    pub terminated_pod_gc_threshold: i32,
    /// `--concurrent-namespace-syncs`.
    pub namespace_syncs: usize,
    /// `--namespace-sync-period`.
    pub namespace_sync_period: Duration,
    /// `--enable-garbage-collector`.
    pub garbage_collector: bool,
    /// `--concurrent-gc-syncs`, for each of the two queues.
    pub garbage_collector_syncs: usize,
    /// `--concurrent-endpoint-syncs`.
    pub endpoint_syncs: usize,
    /// `--endpoint-updates-batch-period`.
    pub endpoint_batch_period: Duration,
    /// `--concurrent-service-endpoint-syncs`.
    pub endpoint_slice_syncs: usize,
    /// `--endpointslice-updates-batch-period`.
    pub endpoint_slice_batch_period: Duration,
    /// `--max-endpoints-per-slice`.
    pub max_endpoints_per_slice: usize,
    /// The content of `--root-ca-file`, else the client's own CA; empty for none.
    pub root_ca: String,
    /// `--service-account-private-key-file`: what signs the tokens in Secrets; empty for none.
    pub token_key_file: PathBuf,
    /// `--concurrent-serviceaccount-token-syncs`.
    pub service_account_token_syncs: usize,
    /// `--legacy-service-account-token-clean-up-period`.
    pub legacy_token_clean_up_period: Duration,
    /// When a node counts as unhealthy and how fast pods are moved away.
    pub node_health: NodeHealthSettings,
    /// The nodes' pod addresses.
    pub ipam: IpamSettings,
    /// The signing of certificates.
    pub signing: SigningSettings,
    /// Claims and volumes brought together.
    pub binder: BinderSettings,
    /// `--concurrent-ephemeralvolume-syncs`.
    pub ephemeral_volume_syncs: usize,
    /// Volumes brought to nodes and taken away.
    pub attach_detach: AttachDetachSettings,
    /// The size of workloads by what they use.
    pub autoscaler: AutoscalerSettings,
    /// `--concurrent-resourceclaim-syncs`.
    pub resource_claim_syncs: usize,
    /// `--concurrent-device-taint-eviction-syncs`.
    pub device_taint_eviction_syncs: usize,
}

/// Claims and volumes brought together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinderSettings {
    /// `--pvclaimbinder-sync-period`: how often all of them are looked at again.
    pub sync_period: Duration,
    /// `--enable-dynamic-provisioning`: whether volumes are made on demand.
    pub dynamic_provisioning: bool,
}

/// Volumes brought to nodes and taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachDetachSettings {
    /// `--attach-detach-reconcile-sync-period`, unless `--disable-attach-detach-reconcile-sync`: how often it is checked
    /// whether what is thought attached still is.
    pub verify_period: Option<Duration>,
    /// Not `--disable-force-detach-on-timeout`: whether volumes are taken from a node that is not healthy and does not
    /// let go of them.
    pub forces_on_timeout: bool,
}

/// The size of workloads by what they use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutoscalerSettings {
    /// `--concurrent-horizontal-pod-autoscaler-syncs`.
    pub syncs: usize,
    /// `--horizontal-pod-autoscaler-sync-period`.
    pub sync_period: Duration,
    /// `--horizontal-pod-autoscaler-downscale-stabilization`.
    pub downscale_stabilization: Duration,
    /// `--horizontal-pod-autoscaler-tolerance`, a share.
    pub tolerance: f64,
    /// `--horizontal-pod-autoscaler-cpu-initialization-period`.
    pub cpu_initialization_period: Duration,
    /// `--horizontal-pod-autoscaler-initial-readiness-delay`.
    pub initial_readiness_delay: Duration,
}

/// When a node counts as unhealthy and how fast pods are moved away.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeHealthSettings {
    /// `--node-monitor-period`.
    pub monitor_period: Duration,
    /// `--node-monitor-grace-period`.
    pub monitor_grace_period: Duration,
    /// `--node-startup-grace-period`.
    pub startup_grace_period: Duration,
    /// `--node-eviction-rate`, nodes per second.
    pub eviction_rate: f64,
    /// `--secondary-node-eviction-rate`, nodes per second.
    pub secondary_eviction_rate: f64,
    /// `--large-cluster-size-threshold`, nodes of a zone.
    pub large_zone: usize,
    /// `--unhealthy-zone-threshold`, a share.
    pub unhealthy_zone_threshold: f64,
}

/// The nodes' pod addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IpamSettings {
    /// `--allocate-node-cidrs`.
    pub allocate: bool,
    /// `--cidr-allocator-type`.
    pub allocator: String,
    /// `--cluster-cidr`.
    pub cluster_cidr: String,
    /// `--service-cluster-ip-range`.
    pub service_cidr: String,
    /// `--node-cidr-mask-size`; 0 for the default.
    pub mask: u8,
    /// `--node-cidr-mask-size-ipv4`; 0 for the default.
    pub mask_v4: u8,
    /// `--node-cidr-mask-size-ipv6`; 0 for the default.
    pub mask_v6: u8,
}

/// The files of a signer's CA; empty paths for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignerFiles {
    /// The certificate.
    pub cert: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// The signing of certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningSettings {
    /// For all signers.
    pub all: SignerFiles,
    /// For `kubernetes.io/kubelet-serving`.
    pub kubelet_serving: SignerFiles,
    /// For `kubernetes.io/kube-apiserver-client-kubelet`.
    pub kubelet_client: SignerFiles,
    /// For `kubernetes.io/kube-apiserver-client`.
    pub api_client: SignerFiles,
    /// For `kubernetes.io/legacy-unknown`.
    pub legacy_unknown: SignerFiles,
    /// `--cluster-signing-duration`.
    pub duration: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            deployment_syncs: 5,
            replica_set_syncs: 5,
            replication_controller_syncs: 5,
            daemon_set_syncs: 2,
            job_syncs: 5,
            cron_job_syncs: 5,
            local_zone: TimeZone::utc(),
            resource_quota_syncs: 5,
            resource_quota_sync_period: Duration::from_secs(300),
            mirroring_syncs: 5,
            mirroring_batch_period: Duration::ZERO,
            mirroring_max_per_subset: 1000,
            stateful_set_syncs: 5,
            policy_status_syncs: 5,
            ttl_after_finished_syncs: 5,
            terminated_pod_gc_threshold: 12_500,
            namespace_syncs: 10,
            namespace_sync_period: Duration::from_secs(300),
            garbage_collector: true,
            garbage_collector_syncs: 20,
            endpoint_syncs: 5,
            endpoint_batch_period: Duration::ZERO,
            endpoint_slice_syncs: 5,
            endpoint_slice_batch_period: Duration::ZERO,
            max_endpoints_per_slice: 100,
            root_ca: String::new(),
            token_key_file: PathBuf::new(),
            service_account_token_syncs: 5,
            legacy_token_clean_up_period: Duration::from_secs(365 * 24 * 3600),
            node_health: NodeHealthSettings::default(),
            ipam: IpamSettings::default(),
            signing: SigningSettings::default(),
            binder: BinderSettings::default(),
            ephemeral_volume_syncs: 5,
            attach_detach: AttachDetachSettings::default(),
            autoscaler: AutoscalerSettings::default(),
            resource_claim_syncs: 50,
            device_taint_eviction_syncs: 8,
        }
    }
}

impl Default for AutoscalerSettings {
    fn default() -> Self {
        Self {
            syncs: 5,
            sync_period: Duration::from_secs(15),
            downscale_stabilization: Duration::from_secs(300),
            tolerance: 0.1,
            cpu_initialization_period: Duration::from_secs(300),
            initial_readiness_delay: Duration::from_secs(30),
        }
    }
}

impl Default for BinderSettings {
    fn default() -> Self {
        Self { sync_period: Duration::from_secs(15), dynamic_provisioning: true }
    }
}

impl Default for AttachDetachSettings {
    fn default() -> Self {
        Self { verify_period: Some(Duration::from_secs(60)), forces_on_timeout: true }
    }
}

impl Default for NodeHealthSettings {
    fn default() -> Self {
        Self {
            monitor_period: Duration::from_secs(5),
            monitor_grace_period: Duration::from_secs(50),
            startup_grace_period: Duration::from_secs(60),
            eviction_rate: 0.1,
            secondary_eviction_rate: 0.01,
            large_zone: 50,
            unhealthy_zone_threshold: 0.55,
        }
    }
}

impl Default for SigningSettings {
    fn default() -> Self {
        Self {
            all: SignerFiles::default(),
            kubelet_serving: SignerFiles::default(),
            kubelet_client: SignerFiles::default(),
            api_client: SignerFiles::default(),
            legacy_unknown: SignerFiles::default(),
            duration: Duration::from_secs(365 * 24 * 3600),
        }
    }
}
