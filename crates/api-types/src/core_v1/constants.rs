//! Well-known names and the values of string types.

pub const ANNOTATION_TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
pub const BETA_STORAGE_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
pub const CLUSTER_IP_NONE: &str = "None";
pub const DEPRECATED_ANNOTATION_TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
pub const ENDPOINTS_LAST_CHANGE_TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
pub const ENDPOINTS_OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";
pub const IS_HEADLESS_SERVICE: &str = "service.kubernetes.io/headless";
pub const LABEL_ARCH_STABLE: &str = "kubernetes.io/arch";
pub const LABEL_FAILURE_DOMAIN_BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
pub const LABEL_FAILURE_DOMAIN_BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
pub const LABEL_INSTANCE_TYPE: &str = "beta.kubernetes.io/instance-type";
pub const LABEL_INSTANCE_TYPE_STABLE: &str = "node.kubernetes.io/instance-type";
pub const LABEL_METADATA_NAME: &str = "kubernetes.io/metadata.name";
pub const LABEL_OS_STABLE: &str = "kubernetes.io/os";
pub const LABEL_TOPOLOGY_REGION: &str = "topology.kubernetes.io/region";
pub const LABEL_TOPOLOGY_ZONE: &str = "topology.kubernetes.io/zone";
pub const MIRROR_POD_ANNOTATION_KEY: &str = "kubernetes.io/config.mirror";
pub const NAMESPACE_ALL: &str = "";
pub const NAMESPACE_DEFAULT: &str = "default";
pub const NAMESPACE_NODE_LEASE: &str = "kube-node-lease";
pub const SERVICE_ACCOUNT_NAMESPACE_KEY: &str = "namespace";
pub const SERVICE_ACCOUNT_NAME_KEY: &str = "kubernetes.io/service-account.name";
pub const SERVICE_ACCOUNT_ROOT_CA_KEY: &str = "ca.crt";
pub const SERVICE_ACCOUNT_TOKEN_KEY: &str = "token";
pub const SERVICE_ACCOUNT_UID_KEY: &str = "kubernetes.io/service-account.uid";
pub const SERVICE_TRAFFIC_DISTRIBUTION_PREFER_CLOSE: &str = "PreferClose";
pub const SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_NODE: &str = "PreferSameNode";
pub const SERVICE_TRAFFIC_DISTRIBUTION_PREFER_SAME_ZONE: &str = "PreferSameZone";
pub const TAINT_NODE_DISK_PRESSURE: &str = "node.kubernetes.io/disk-pressure";
pub const TAINT_NODE_MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";
pub const TAINT_NODE_NETWORK_UNAVAILABLE: &str = "node.kubernetes.io/network-unavailable";
pub const TAINT_NODE_NOT_READY: &str = "node.kubernetes.io/not-ready";
pub const TAINT_NODE_PID_PRESSURE: &str = "node.kubernetes.io/pid-pressure";
pub const TAINT_NODE_UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub const TAINT_NODE_UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Values of `PersistentVolumeReclaimPolicy`.
pub mod persistent_volume_reclaim_policy {
    values! { RECYCLE = "Recycle", DELETE = "Delete", RETAIN = "Retain" }
}

/// Values of `PersistentVolumeMode`.
pub mod persistent_volume_mode {
    values! { BLOCK = "Block", FILESYSTEM = "Filesystem" }
}

/// Values of `PersistentVolumeClaimConditionType`.
pub mod persistent_volume_claim_condition_type {
    pub const RESIZING: &str = "Resizing";
    pub const FILE_SYSTEM_RESIZE_PENDING: &str = "FileSystemResizePending";
    pub const CONTROLLER_RESIZE_ERROR: &str = "ControllerResizeError";
    pub const NODE_RESIZE_ERROR: &str = "NodeResizeError";
    pub const MODIFY_VOLUME_ERROR: &str = "ModifyVolumeError";
    pub const MODIFYING_VOLUME: &str = "ModifyingVolume";
    pub const UNUSED: &str = "Unused";
}

/// Values of `ClaimResourceStatus`.
pub mod claim_resource_status {
    values! {
        CONTROLLER_RESIZE_IN_PROGRESS = "ControllerResizeInProgress",
        CONTROLLER_RESIZE_INFEASIBLE = "ControllerResizeInfeasible", NODE_RESIZE_PENDING = "NodeResizePending",
        NODE_RESIZE_IN_PROGRESS = "NodeResizeInProgress", NODE_RESIZE_INFEASIBLE = "NodeResizeInfeasible",
    }
}

/// Values of `PersistentVolumeClaimModifyVolumeStatus`.
pub mod persistent_volume_claim_modify_volume_status {
    values! { PENDING = "Pending", IN_PROGRESS = "InProgress", INFEASIBLE = "Infeasible" }
}

/// Values of `PersistentVolumeAccessMode`.
pub mod persistent_volume_access_mode {
    values! {
        READ_WRITE_ONCE = "ReadWriteOnce", READ_ONLY_MANY = "ReadOnlyMany", READ_WRITE_MANY = "ReadWriteMany",
        READ_WRITE_ONCE_POD = "ReadWriteOncePod",
    }
}

/// Values of `PersistentVolumePhase`.
pub mod persistent_volume_phase {
    values! { PENDING = "Pending", AVAILABLE = "Available", BOUND = "Bound", RELEASED = "Released", FAILED = "Failed" }
}

/// Values of `PersistentVolumeClaimPhase`.
pub mod persistent_volume_claim_phase {
    values! { PENDING = "Pending", BOUND = "Bound", LOST = "Lost" }
}

/// Values of `HostPathType`.
pub mod host_path_type {
    values! {
        NONE = "", DIRECTORY_OR_CREATE = "DirectoryOrCreate", DIRECTORY = "Directory", FILE_OR_CREATE = "FileOrCreate",
        FILE = "File", SOCKET = "Socket", CHAR_DEVICE = "CharDevice", BLOCK_DEVICE = "BlockDevice",
    }
}

/// Values of `StorageMedium`.
pub mod storage_medium {
    pub const NONE: &str = "";
    pub const MEMORY: &str = "Memory";
    pub const HUGE_PAGES: &str = "HugePages";
}

/// Values of `Protocol`.
pub mod protocol {
    values! { TCP = "TCP", UDP = "UDP", SCTP = "SCTP" }
}

/// Values of `AzureDataDiskCachingMode`.
pub mod azure_data_disk_caching_mode {
    values! { NONE = "None", READ_ONLY = "ReadOnly", READ_WRITE = "ReadWrite" }
}

/// Values of `AzureDataDiskKind`.
pub mod azure_data_disk_kind {
    values! { SHARED = "Shared", DEDICATED = "Dedicated", MANAGED = "Managed" }
}

/// Values of `MountPropagationMode`.
pub mod mount_propagation_mode {
    values! { NONE = "None", HOST_TO_CONTAINER = "HostToContainer", BIDIRECTIONAL = "Bidirectional" }
}

/// Values of `RecursiveReadOnlyMode`.
pub mod recursive_read_only_mode {
    values! { DISABLED = "Disabled", IF_POSSIBLE = "IfPossible", ENABLED = "Enabled" }
}

/// Values of `URIScheme`.
pub mod uri_scheme {
    values! { HTTP = "HTTP", HTTPS = "HTTPS" }
}

/// Values of `PullPolicy`.
pub mod pull_policy {
    values! { ALWAYS = "Always", NEVER = "Never", IF_NOT_PRESENT = "IfNotPresent" }
}

/// Values of `ResourceResizeRestartPolicy`.
pub mod resource_resize_restart_policy {
    values! { NOT_REQUIRED = "NotRequired", RESTART_CONTAINER = "RestartContainer" }
}

/// Values of `PreemptionPolicy`.
pub mod preemption_policy {
    values! { PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority", NEVER = "Never" }
}

/// Values of `TerminationMessagePolicy`.
pub mod termination_message_policy {
    values! { FILE = "File", FALLBACK_TO_LOGS_ON_ERROR = "FallbackToLogsOnError" }
}

/// Values of `Signal`.
pub mod signal {
    values! {
        SIGABRT = "SIGABRT", SIGALRM = "SIGALRM", SIGBUS = "SIGBUS", SIGCHLD = "SIGCHLD", SIGCLD = "SIGCLD",
        SIGCONT = "SIGCONT", SIGFPE = "SIGFPE", SIGHUP = "SIGHUP", SIGILL = "SIGILL", SIGINT = "SIGINT",
        SIGIO = "SIGIO", SIGIOT = "SIGIOT", SIGKILL = "SIGKILL", SIGPIPE = "SIGPIPE", SIGPOLL = "SIGPOLL",
        SIGPROF = "SIGPROF", SIGPWR = "SIGPWR", SIGQUIT = "SIGQUIT", SIGSEGV = "SIGSEGV", SIGSTKFLT = "SIGSTKFLT",
        SIGSTOP = "SIGSTOP", SIGSYS = "SIGSYS", SIGTERM = "SIGTERM", SIGTRAP = "SIGTRAP", SIGTSTP = "SIGTSTP",
        SIGTTIN = "SIGTTIN", SIGTTOU = "SIGTTOU", SIGURG = "SIGURG", SIGUSR1 = "SIGUSR1", SIGUSR2 = "SIGUSR2",
        SIGVTALRM = "SIGVTALRM", SIGWINCH = "SIGWINCH", SIGXCPU = "SIGXCPU", SIGXFSZ = "SIGXFSZ",
        SIGRTMIN = "SIGRTMIN", SIGRTMIN_1 = "SIGRTMIN+1", SIGRTMIN_2 = "SIGRTMIN+2", SIGRTMIN_3 = "SIGRTMIN+3",
        SIGRTMIN_4 = "SIGRTMIN+4", SIGRTMIN_5 = "SIGRTMIN+5", SIGRTMIN_6 = "SIGRTMIN+6", SIGRTMIN_7 = "SIGRTMIN+7",
        SIGRTMIN_8 = "SIGRTMIN+8", SIGRTMIN_9 = "SIGRTMIN+9", SIGRTMIN_10 = "SIGRTMIN+10", SIGRTMIN_11 = "SIGRTMIN+11",
        SIGRTMIN_12 = "SIGRTMIN+12", SIGRTMIN_13 = "SIGRTMIN+13", SIGRTMIN_14 = "SIGRTMIN+14",
        SIGRTMIN_15 = "SIGRTMIN+15", SIGRTMAX_14 = "SIGRTMAX-14", SIGRTMAX_13 = "SIGRTMAX-13",
        SIGRTMAX_12 = "SIGRTMAX-12", SIGRTMAX_11 = "SIGRTMAX-11", SIGRTMAX_10 = "SIGRTMAX-10",
        SIGRTMAX_9 = "SIGRTMAX-9", SIGRTMAX_8 = "SIGRTMAX-8", SIGRTMAX_7 = "SIGRTMAX-7", SIGRTMAX_6 = "SIGRTMAX-6",
        SIGRTMAX_5 = "SIGRTMAX-5", SIGRTMAX_4 = "SIGRTMAX-4", SIGRTMAX_3 = "SIGRTMAX-3", SIGRTMAX_2 = "SIGRTMAX-2",
        SIGRTMAX_1 = "SIGRTMAX-1", SIGRTMAX = "SIGRTMAX",
    }
}

/// Values of `ConditionStatus`.
pub mod condition_status {
    values! { TRUE = "True", FALSE = "False", UNKNOWN = "Unknown" }
}

/// Values of `ResourceHealthStatus`.
pub mod resource_health_status {
    values! { HEALTHY = "Healthy", UNHEALTHY = "Unhealthy", UNKNOWN = "Unknown" }
}

/// Values of `PodPhase`.
pub mod pod_phase {
    values! {
        PENDING = "Pending", RUNNING = "Running", SUCCEEDED = "Succeeded", FAILED = "Failed", UNKNOWN = "Unknown",
    }
}

/// Values of `PodConditionType`.
pub mod pod_condition_type {
    pub const CONTAINERS_READY: &str = "ContainersReady";
    pub const INITIALIZED: &str = "Initialized";
    pub const READY: &str = "Ready";
    pub const POD_SCHEDULED: &str = "PodScheduled";
    pub const DISRUPTION_TARGET: &str = "DisruptionTarget";
    pub const POD_READY_TO_START_CONTAINERS: &str = "PodReadyToStartContainers";
    pub const POD_RESIZE_PENDING: &str = "PodResizePending";
    pub const POD_RESIZE_IN_PROGRESS: &str = "PodResizeInProgress";
    pub const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";
}

/// Values of `PodResizeStatus`.
pub mod pod_resize_status {
    pub const IN_PROGRESS: &str = "InProgress";
    pub const DEFERRED: &str = "Deferred";
    pub const INFEASIBLE: &str = "Infeasible";
}

/// Values of `RestartPolicy`.
pub mod restart_policy {
    values! { ALWAYS = "Always", ON_FAILURE = "OnFailure", NEVER = "Never" }
}

/// Values of `ContainerRestartPolicy`.
pub mod container_restart_policy {
    values! { ALWAYS = "Always", NEVER = "Never", ON_FAILURE = "OnFailure" }
}

/// Values of `ContainerRestartRuleAction`.
pub mod container_restart_rule_action {
    values! { RESTART = "Restart", RESTART_ALL_CONTAINERS = "RestartAllContainers" }
}

/// Values of `ContainerRestartRuleOnExitCodesOperator`.
pub mod container_restart_rule_on_exit_codes_operator {
    values! { IN = "In", NOT_IN = "NotIn" }
}

/// Values of `DNSPolicy`.
pub mod dns_policy {
    values! {
        CLUSTER_FIRST_WITH_HOST_NET = "ClusterFirstWithHostNet", CLUSTER_FIRST = "ClusterFirst", DEFAULT = "Default",
        NONE = "None",
    }
}

/// Values of `NodeSelectorOperator`.
pub mod node_selector_operator {
    values! { IN = "In", NOT_IN = "NotIn", EXISTS = "Exists", DOES_NOT_EXIST = "DoesNotExist", GT = "Gt", LT = "Lt" }
}

/// Values of `TaintEffect`.
pub mod taint_effect {
    values! { NO_SCHEDULE = "NoSchedule", PREFER_NO_SCHEDULE = "PreferNoSchedule", NO_EXECUTE = "NoExecute" }
}

/// Values of `TolerationOperator`.
pub mod toleration_operator {
    values! { EQUAL = "Equal", EXISTS = "Exists", LT = "Lt", GT = "Gt" }
}

/// Values of `OSName`.
pub mod os_name {
    values! { LINUX = "linux", WINDOWS = "windows" }
}

/// Values of `UnsatisfiableConstraintAction`.
pub mod unsatisfiable_constraint_action {
    values! { DO_NOT_SCHEDULE = "DoNotSchedule", SCHEDULE_ANYWAY = "ScheduleAnyway" }
}

/// Values of `NodeInclusionPolicy`.
pub mod node_inclusion_policy {
    values! { IGNORE = "Ignore", HONOR = "Honor" }
}

/// Values of `PodFSGroupChangePolicy`.
pub mod pod_fs_group_change_policy {
    values! { ON_ROOT_MISMATCH = "OnRootMismatch", ALWAYS = "Always" }
}

/// Values of `SupplementalGroupsPolicy`.
pub mod supplemental_groups_policy {
    values! { MERGE = "Merge", STRICT = "Strict" }
}

/// Values of `PodSELinuxChangePolicy`.
pub mod pod_se_linux_change_policy {
    values! { RECURSIVE = "Recursive", MOUNT_OPTION = "MountOption" }
}

/// Values of `SeccompProfileType`.
pub mod seccomp_profile_type {
    values! { UNCONFINED = "Unconfined", RUNTIME_DEFAULT = "RuntimeDefault", LOCALHOST = "Localhost" }
}

/// Values of `AppArmorProfileType`.
pub mod app_armor_profile_type {
    values! { UNCONFINED = "Unconfined", RUNTIME_DEFAULT = "RuntimeDefault", LOCALHOST = "Localhost" }
}

/// Values of `PodQOSClass`.
pub mod pod_qos_class {
    values! { GUARANTEED = "Guaranteed", BURSTABLE = "Burstable", BEST_EFFORT = "BestEffort" }
}

/// Values of `ReplicationControllerConditionType`.
pub mod replication_controller_condition_type {
    pub const REPLICA_FAILURE: &str = "ReplicaFailure";
}

/// Values of `ServiceAffinity`.
pub mod service_affinity {
    values! { CLIENT_IP = "ClientIP", NONE = "None" }
}

/// Values of `ServiceType`.
pub mod service_type {
    values! {
        CLUSTER_IP = "ClusterIP", NODE_PORT = "NodePort", LOAD_BALANCER = "LoadBalancer",
        EXTERNAL_NAME = "ExternalName",
    }
}

/// Values of `ServiceInternalTrafficPolicy`.
pub mod service_internal_traffic_policy {
    values! { CLUSTER = "Cluster", LOCAL = "Local" }
}

/// Values of `ServiceExternalTrafficPolicy`.
pub mod service_external_traffic_policy {
    values! { CLUSTER = "Cluster", LOCAL = "Local" }
}

/// Values of `IPFamily`.
pub mod ip_family {
    values! { I_PV4 = "IPv4", I_PV6 = "IPv6", NONE = "" }
}

/// Values of `IPFamilyPolicy`.
pub mod ip_family_policy {
    values! {
        SINGLE_STACK = "SingleStack", PREFER_DUAL_STACK = "PreferDualStack", REQUIRE_DUAL_STACK = "RequireDualStack",
    }
}

/// Values of `NodePhase`.
pub mod node_phase {
    values! { PENDING = "Pending", RUNNING = "Running", TERMINATED = "Terminated" }
}

/// Values of `NodeConditionType`.
pub mod node_condition_type {
    pub const READY: &str = "Ready";
    pub const MEMORY_PRESSURE: &str = "MemoryPressure";
    pub const DISK_PRESSURE: &str = "DiskPressure";
    pub const PID_PRESSURE: &str = "PIDPressure";
    pub const NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
}

/// Values of `NodeAddressType`.
pub mod node_address_type {
    pub const HOSTNAME: &str = "Hostname";
    pub const INTERNAL_IP: &str = "InternalIP";
    pub const EXTERNAL_IP: &str = "ExternalIP";
    pub const INTERNAL_DNS: &str = "InternalDNS";
    pub const EXTERNAL_DNS: &str = "ExternalDNS";
}

/// Values of `ResourceName`.
pub mod resource_name {
    pub const CPU: &str = "cpu";
    pub const MEMORY: &str = "memory";
    pub const STORAGE: &str = "storage";
    pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
    pub const PODS: &str = "pods";
    pub const SERVICES: &str = "services";
    pub const REPLICATIONCONTROLLERS: &str = "replicationcontrollers";
    pub const RESOURCEQUOTAS: &str = "resourcequotas";
    pub const SECRETS: &str = "secrets";
    pub const CONFIGMAPS: &str = "configmaps";
    pub const PERSISTENTVOLUMECLAIMS: &str = "persistentvolumeclaims";
    pub const SERVICES_NODEPORTS: &str = "services.nodeports";
    pub const SERVICES_LOADBALANCERS: &str = "services.loadbalancers";
    pub const REQUESTS_CPU: &str = "requests.cpu";
    pub const REQUESTS_MEMORY: &str = "requests.memory";
    pub const REQUESTS_STORAGE: &str = "requests.storage";
    pub const REQUESTS_EPHEMERAL_STORAGE: &str = "requests.ephemeral-storage";
    pub const LIMITS_CPU: &str = "limits.cpu";
    pub const LIMITS_MEMORY: &str = "limits.memory";
    pub const LIMITS_EPHEMERAL_STORAGE: &str = "limits.ephemeral-storage";
}

/// Values of `FinalizerName`.
pub mod finalizer_name {
    pub const KUBERNETES: &str = "kubernetes";
}

/// Values of `NamespacePhase`.
pub mod namespace_phase {
    values! { ACTIVE = "Active", TERMINATING = "Terminating" }
}

/// Values of `NamespaceConditionType`.
pub mod namespace_condition_type {
    pub const NAMESPACE_DELETION_DISCOVERY_FAILURE: &str = "NamespaceDeletionDiscoveryFailure";
    pub const NAMESPACE_DELETION_CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
    pub const NAMESPACE_DELETION_GROUP_VERSION_PARSING_FAILURE: &str = "NamespaceDeletionGroupVersionParsingFailure";
    pub const NAMESPACE_CONTENT_REMAINING: &str = "NamespaceContentRemaining";
    pub const NAMESPACE_FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";
}

/// Values of `LimitType`.
pub mod limit_type {
    pub const POD: &str = "Pod";
    pub const CONTAINER: &str = "Container";
    pub const PERSISTENT_VOLUME_CLAIM: &str = "PersistentVolumeClaim";
}

/// Values of `ResourceQuotaScope`.
pub mod resource_quota_scope {
    values! {
        TERMINATING = "Terminating", NOT_TERMINATING = "NotTerminating", BEST_EFFORT = "BestEffort",
        NOT_BEST_EFFORT = "NotBestEffort", PRIORITY_CLASS = "PriorityClass",
        CROSS_NAMESPACE_POD_AFFINITY = "CrossNamespacePodAffinity", VOLUME_ATTRIBUTES_CLASS = "VolumeAttributesClass",
    }
}

/// Values of `ScopeSelectorOperator`.
pub mod scope_selector_operator {
    values! { IN = "In", NOT_IN = "NotIn", EXISTS = "Exists", DOES_NOT_EXIST = "DoesNotExist" }
}

/// Values of `SecretType`.
pub mod secret_type {
    pub const OPAQUE: &str = "Opaque";
    pub const KUBERNETES_IO_SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";
    pub const KUBERNETES_IO_DOCKERCFG: &str = "kubernetes.io/dockercfg";
    pub const KUBERNETES_IO_DOCKERCONFIGJSON: &str = "kubernetes.io/dockerconfigjson";
    pub const KUBERNETES_IO_BASIC_AUTH: &str = "kubernetes.io/basic-auth";
    pub const KUBERNETES_IO_SSH_AUTH: &str = "kubernetes.io/ssh-auth";
    pub const KUBERNETES_IO_TLS: &str = "kubernetes.io/tls";
    pub const BOOTSTRAP_KUBERNETES_IO_TOKEN: &str = "bootstrap.kubernetes.io/token";
}

/// Values of `ComponentConditionType`.
pub mod component_condition_type {
    pub const HEALTHY: &str = "Healthy";
}

/// Values of `ProcMountType`.
pub mod proc_mount_type {
    values! { DEFAULT = "Default", UNMASKED = "Unmasked" }
}

/// Values of `LoadBalancerIPMode`.
pub mod load_balancer_ip_mode {
    values! { VIP = "VIP", PROXY = "Proxy" }
}
