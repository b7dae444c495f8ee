//! Node and what it is made of.

use api_machinery::api;
use api_machinery::meta::ObjectMeta;
use api_machinery::time::Time;

use super::ResourceList;
use super::constants::{node_phase, taint_effect};

/// A machine that runs pods.
#[api(kind = "Node", resource = "nodes")]
pub struct Node {
    /// Standard metadata such as name, labels and annotations.
    #[field(1)]
    pub metadata: ObjectMeta,
    /// The wanted behaviour of the node.
    #[field(2)]
    pub spec: NodeSpec,
    /// Current state of the node, set by the system.
    #[field(3)]
    pub status: NodeStatus,
}

/// Describes a node.
#[api]
pub struct NodeSpec {
    /// Address range for pods on the node.
    #[field(1, name = "podCIDR")]
    pub pod_cidr: String,
    /// Address ranges for pods, at most one per family; first equals podCIDR.
    #[field(7, name = "podCIDRs", set, merge)]
    pub pod_cidrs: Vec<String>,
    /// ID of the node at the cloud provider, as provider://id.
    #[field(3, name = "providerID")]
    pub provider_id: String,
    /// Keeps new pods off the node; default false.
    #[field(4)]
    pub unschedulable: bool,
    /// Taints of the node.
    #[field(5)]
    pub taints: Vec<Taint>,
    /// Deprecated. Source of dynamic kubelet configuration; no longer used.
    #[field(6)]
    pub config_source: Option<NodeConfigSource>,
    /// Deprecated. Unused; kept for old clients.
    #[field(2, name = "externalID")]
    pub external_id: String,
}

/// Keeps pods that do not tolerate it off the node.
#[api]
pub struct Taint {
    /// Key of the taint.
    #[field(1, always, required)]
    pub key: String,
    /// Value of the taint.
    #[field(2)]
    pub value: String,
    /// Effect on pods: NoSchedule, PreferNoSchedule or NoExecute.
    #[field(3, always, required, go = "v1.TaintEffect", values = taint_effect::ALL)]
    pub effect: String,
    /// When the taint was added.
    #[field(4)]
    pub time_added: Option<Time>,
}

/// Deprecated. Source of node configuration; one member is set.
#[api]
pub struct NodeConfigSource {
    /// ConfigMap that holds the node configuration.
    #[field(2)]
    pub config_map: Option<ConfigMapNodeConfigSource>,
}

/// Deprecated. A ConfigMap used as node configuration.
#[api]
pub struct ConfigMapNodeConfigSource {
    /// Namespace of the ConfigMap; required.
    #[field(1, always, required)]
    pub namespace: String,
    /// Name of the ConfigMap; required.
    #[field(2, always, required)]
    pub name: String,
    /// UID of the ConfigMap; only allowed in status.
    #[field(3, go = "types.UID")]
    pub uid: String,
    /// Resource version of the ConfigMap; only allowed in status.
    #[field(4)]
    pub resource_version: String,
    /// Key of the ConfigMap that holds the kubelet configuration; required.
    #[field(5, always, required)]
    pub kubelet_config_key: String,
}

/// Current state of a node.
#[api]
pub struct NodeStatus {
    /// Total resources of the node.
    #[field(1, go = "v1.ResourceList")]
    pub capacity: ResourceList,
    /// Resources available to pods; default is the capacity.
    #[field(2, go = "v1.ResourceList")]
    pub allocatable: ResourceList,
    /// Deprecated and no longer set.
    #[field(3, go = "v1.NodePhase", values = node_phase::ALL)]
    pub phase: String,
    /// Current conditions of the node.
    #[field(4, merge_key = "type")]
    pub conditions: Vec<NodeCondition>,
    /// Addresses at which the node is reached.
    #[field(5, merge_key = "type")]
    pub addresses: Vec<NodeAddress>,
    /// Ports of the daemons on the node.
    #[field(6)]
    pub daemon_endpoints: NodeDaemonEndpoints,
    /// System identifiers and versions of the node.
    #[field(7)]
    pub node_info: NodeSystemInfo,
    /// Container images present on the node.
    #[field(8)]
    pub images: Vec<ContainerImage>,
    /// Attachable volumes that the node mounts.
    #[field(9, go = "[]v1.UniqueVolumeName")]
    pub volumes_in_use: Vec<String>,
    /// Volumes attached to the node.
    #[field(10)]
    pub volumes_attached: Vec<AttachedVolume>,
    /// State of dynamic kubelet configuration; no longer used.
    #[field(11)]
    pub config: Option<NodeConfigStatus>,
    /// Runtime handlers available on the node.
    #[field(12)]
    pub runtime_handlers: Vec<NodeRuntimeHandler>,
    /// Features of the container runtime.
    #[field(13)]
    pub features: Option<NodeFeatures>,
    /// Feature names that the node declares, sorted alphabetically.
    #[field(14)]
    pub declared_features: Vec<String>,
}

/// One observed condition of a node.
#[api]
pub struct NodeCondition {
    /// Condition type, for example Ready or MemoryPressure.
    #[field(1, always, required, go = "v1.NodeConditionType")]
    pub type_: String,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the condition was last reported.
    #[field(3)]
    pub last_heartbeat_time: Time,
    /// When the condition last changed its status.
    #[field(4)]
    pub last_transition_time: Time,
    /// Short CamelCase reason for the last change.
    #[field(5)]
    pub reason: String,
    /// Human-readable details about the last change.
    #[field(6)]
    pub message: String,
}

/// One address of a node.
#[api]
pub struct NodeAddress {
    /// Kind of address: Hostname, ExternalIP, InternalIP, ExternalDNS or InternalDNS.
    #[field(1, always, required, go = "v1.NodeAddressType")]
    pub type_: String,
    /// The address itself.
    #[field(2, always, required)]
    pub address: String,
}

/// Ports of the daemons on a node.
#[api]
pub struct NodeDaemonEndpoints {
    /// Port that the kubelet listens on.
    #[field(1)]
    pub kubelet_endpoint: DaemonEndpoint,
}

/// The port of one node daemon.
#[api]
pub struct DaemonEndpoint {
    /// Port number of the endpoint.
    #[field(1, name = "Port", always, required)]
    pub port: i32,
}

/// System identifiers and versions of a node.
#[api]
pub struct NodeSystemInfo {
    /// Machine ID reported by the node.
    #[field(1, name = "machineID", always, required)]
    pub machine_id: String,
    /// System UUID reported by the node.
    #[field(2, name = "systemUUID", always, required)]
    pub system_uuid: String,
    /// ID of the current boot.
    #[field(3, name = "bootID", always, required)]
    pub boot_id: String,
    /// Kernel version, as from uname -r.
    #[field(4, always, required)]
    pub kernel_version: String,
    /// Operating system name, as from /etc/os-release.
    #[field(5, always, required)]
    pub os_image: String,
    /// Container runtime and version, for example containerd://2.0.0.
    #[field(6, always, required)]
    pub container_runtime_version: String,
    /// Version of the kubelet.
    #[field(7, always, required)]
    pub kubelet_version: String,
    /// Deprecated. Version of kube-proxy.
    #[field(8, always, required)]
    pub kube_proxy_version: String,
    /// Operating system of the node, such as linux.
    #[field(9, always, required)]
    pub operating_system: String,
    /// Processor architecture of the node, such as amd64.
    #[field(10, always, required)]
    pub architecture: String,
    /// Swap information of the node.
    #[field(11)]
    pub swap: Option<NodeSwapStatus>,
}

/// Swap memory of a node.
#[api]
pub struct NodeSwapStatus {
    /// Total swap memory in bytes.
    #[field(1)]
    pub capacity: Option<i64>,
}

/// A container image present on a node.
#[api]
pub struct ContainerImage {
    /// Names by which the image is known.
    #[field(1, always)]
    pub names: Vec<String>,
    /// Size of the image in bytes.
    #[field(2)]
    pub size_bytes: i64,
}

/// A volume attached to a node.
#[api]
pub struct AttachedVolume {
    /// Unique name of the attached volume.
    #[field(1, always, required, go = "v1.UniqueVolumeName")]
    pub name: String,
    /// Device path at which the volume is available.
    #[field(2, always, required)]
    pub device_path: String,
}

/// Deprecated. State of the configuration assigned to a node.
#[api]
pub struct NodeConfigStatus {
    /// Configuration the node tries to use.
    #[field(1)]
    pub assigned: Option<NodeConfigSource>,
    /// Configuration the node uses now; unset means the local one.
    #[field(2)]
    pub active: Option<NodeConfigSource>,
    /// Configuration the node falls back to on errors.
    #[field(3)]
    pub last_known_good: Option<NodeConfigSource>,
    /// Problem met while switching to the assigned configuration.
    #[field(4)]
    pub error: String,
}

/// A runtime handler available on a node.
#[api]
pub struct NodeRuntimeHandler {
    /// Name of the handler; empty means the default handler.
    #[field(1, always)]
    pub name: String,
    /// Features that the handler supports.
    #[field(2)]
    pub features: Option<NodeRuntimeHandlerFeatures>,
}

/// Features that a runtime handler supports.
#[api]
pub struct NodeRuntimeHandlerFeatures {
    /// Whether recursive read-only mounts are supported.
    #[field(1)]
    pub recursive_read_only_mounts: Option<bool>,
    /// Whether user namespaces, including volumes, are supported.
    #[field(2)]
    pub user_namespaces: Option<bool>,
}

/// Features of the runtime that do not depend on the handler.
#[api]
pub struct NodeFeatures {
    /// Whether the runtime supports supplementalGroupsPolicy and container users.
    #[field(1)]
    pub supplemental_groups_policy: Option<bool>,
}
