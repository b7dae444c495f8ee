//! PodStatus and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;
use api_machinery::quantity::Quantity;
use api_machinery::time::Time;

use super::constants::{pod_phase, pod_qos_class};
use super::{ContainerStatus, ResourceList, ResourceRequirements};

/// Current state of a pod; may lag behind.
#[api]
pub struct PodStatus {
    /// Pod generation that this status reflects.
    #[field(17)]
    pub observed_generation: i64,
    /// Summary: Pending, Running, Succeeded, Failed or Unknown.
    #[field(1, go = "v1.PodPhase", values = pod_phase::ALL)]
    pub phase: String,
    /// Current conditions of the pod.
    #[field(2, merge_key = "type")]
    pub conditions: Vec<PodCondition>,
    /// Human-readable explanation of the current state.
    #[field(3)]
    pub message: String,
    /// Short CamelCase reason for the state, for example Evicted.
    #[field(4)]
    pub reason: String,
    /// Node where the pod is expected to be placed.
    #[field(11)]
    pub nominated_node_name: String,
    /// IP address of the node; empty until scheduled.
    #[field(5, name = "hostIP")]
    pub host_ip: String,
    /// All IP addresses of the node; the first equals hostIP.
    #[field(16, name = "hostIPs", merge_key = "ip", atomic)]
    pub host_ips: Vec<HostIP>,
    /// IP address of the pod; empty until allocated.
    #[field(6, name = "podIP")]
    pub pod_ip: String,
    /// IP addresses of the pod, at most one per family.
    #[field(12, name = "podIPs", merge_key = "ip")]
    pub pod_ips: Vec<PodIP>,
    /// When the kubelet acknowledged the pod.
    #[field(7)]
    pub start_time: Option<Time>,
    /// Status of each init container, in spec order.
    #[field(10)]
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Status of each main container.
    #[field(8)]
    pub container_statuses: Vec<ContainerStatus>,
    /// Quality of service class: Guaranteed, Burstable or BestEffort.
    #[field(9, go = "v1.PodQOSClass", values = pod_qos_class::ALL)]
    pub qos_class: String,
    /// Status of each ephemeral container.
    #[field(13)]
    pub ephemeral_container_statuses: Vec<ContainerStatus>,
    /// Deprecated. Resize state; conditions PodResizePending and PodResizeInProgress replace it.
    #[field(14, go = "v1.PodResizeStatus")]
    pub resize: String,
    /// Claims generated for the pod's resourceClaims entries.
    #[field(15, merge_key = "name", retain_keys)]
    pub resource_claim_statuses: Vec<PodResourceClaimStatus>,
    /// Claim generated for the pod's extended resources.
    #[field(18)]
    pub extended_resource_claim_status: Option<PodExtendedResourceClaimStatus>,
    /// Pod-level resources the node has allocated.
    #[field(19, go = "v1.ResourceList")]
    pub allocated_resources: ResourceList,
    /// Pod-level requests and limits actually in force.
    #[field(20)]
    pub resources: Option<ResourceRequirements>,
    /// Native node resources that claims allocate to the pod.
    #[field(21)]
    pub node_allocatable_resource_claim_statuses: Vec<NodeAllocatableResourceClaimStatus>,
}

/// One observed condition of a pod.
#[api]
pub struct PodCondition {
    /// Condition type, for example PodScheduled, Initialized or Ready.
    #[field(1, always, required, go = "v1.PodConditionType")]
    pub type_: String,
    /// Pod generation that the condition is based on.
    #[field(7)]
    pub observed_generation: i64,
    /// Condition value: True, False or Unknown.
    #[field(2, always, required, go = "v1.ConditionStatus")]
    pub status: String,
    /// When the condition was last checked.
    #[field(3)]
    pub last_probe_time: Time,
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

/// One IP address of a host.
#[api]
pub struct HostIP {
    /// The IP address.
    #[field(1, always, required)]
    pub ip: String,
}

/// One IP address of a pod.
#[api]
pub struct PodIP {
    /// The IP address.
    #[field(1, always, required)]
    pub ip: String,
}

/// The claim object that serves one entry.
#[api]
pub struct PodResourceClaimStatus {
    /// Name of the entry in the pod's resourceClaims.
    #[field(1, always, required)]
    pub name: String,
    /// Name of the generated claim; unset when none was needed.
    #[field(2)]
    pub resource_claim_name: Option<String>,
}

/// The claim made for the pod's extended resources.
#[api]
pub struct PodExtendedResourceClaimStatus {
    /// How container resources map to requests of the claim.
    #[field(1, always, required)]
    pub request_mappings: Vec<ContainerExtendedResourceRequest>,
    /// Name of the generated claim in the pod's namespace.
    #[field(2, always, required)]
    pub resource_claim_name: String,
}

/// Maps a container's extended resource to a claim request.
#[api]
pub struct ContainerExtendedResourceRequest {
    /// Name of the container.
    #[field(1, always, required)]
    pub container_name: String,
    /// Name of the extended resource.
    #[field(2, always, required)]
    pub resource_name: String,
    /// Name of the request in the generated claim.
    #[field(3, always, required)]
    pub request_name: String,
}

/// Native node resources that a claim allocates to the pod.
#[api]
pub struct NodeAllocatableResourceClaimStatus {
    /// Name of the resource claim.
    #[field(1, always, required)]
    pub resource_claim_name: String,
    /// Names of the containers that use the claim.
    #[field(2, set)]
    pub containers: Vec<String>,
    /// Amount of each native resource allocated by the claim.
    #[field(3, always, required, go = "map[v1.ResourceName]resource.Quantity")]
    pub resources: BTreeMap<String, Quantity>,
}
