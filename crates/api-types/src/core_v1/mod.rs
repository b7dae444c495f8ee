//! core/v1: one file per kind, with what it is made of.

mod affinity;
mod binding;
mod component_status;
mod config_map;
pub mod constants;
mod container;
mod container_status;
mod endpoints;
mod environment;
mod event;
mod limit_range;
mod namespace;
mod node;
mod persistent_volume;
mod persistent_volume_claim;
mod pod;
mod pod_options;
mod pod_spec;
mod pod_status;
mod pod_status_result;
mod pod_template;
mod probe;
mod projected_volume;
mod range_allocation;
mod references;
mod replication_controller;
mod resource_quota;
mod resource_requirements;
mod secret;
mod security_context;
mod serialized_reference;
mod service;
mod service_account;
mod volume;

pub use affinity::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodAffinity, PodAffinityTerm,
    PodAntiAffinity, PreferredSchedulingTerm, Toleration, TopologySelectorLabelRequirement, TopologySelectorTerm,
    TopologySpreadConstraint, WeightedPodAffinityTerm,
};
pub use binding::Binding;
pub use component_status::{ComponentCondition, ComponentStatus};
pub use config_map::ConfigMap;
pub use container::{
    Container, ContainerPort, ContainerResizePolicy, ContainerRestartRule, ContainerRestartRuleOnExitCodes,
    EphemeralContainer, EphemeralContainerCommon,
};
pub use container_status::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    ContainerUser, ImageVolumeStatus, LinuxContainerUser, ResourceHealth, ResourceStatus, VolumeMountStatus,
    VolumeStatus,
};
pub use endpoints::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints};
pub use environment::{
    ConfigMapEnvSource, ConfigMapKeySelector, EnvFromSource, EnvVar, EnvVarSource, FileKeySelector,
    ObjectFieldSelector, ResourceFieldSelector, SecretEnvSource, SecretKeySelector,
};
pub use event::{Event, EventSeries, EventSource};
pub use limit_range::{LimitRange, LimitRangeItem, LimitRangeSpec};
pub use namespace::{Namespace, NamespaceCondition, NamespaceSpec, NamespaceStatus};
pub use node::{
    AttachedVolume, ConfigMapNodeConfigSource, ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition,
    NodeConfigSource, NodeConfigStatus, NodeDaemonEndpoints, NodeFeatures, NodeRuntimeHandler,
    NodeRuntimeHandlerFeatures, NodeSpec, NodeStatus, NodeSwapStatus, NodeSystemInfo, Taint,
};
pub use persistent_volume::{
    AzureFilePersistentVolumeSource, CSIPersistentVolumeSource, CephFSPersistentVolumeSource,
    CinderPersistentVolumeSource, FlexPersistentVolumeSource, GlusterfsPersistentVolumeSource,
    ISCSIPersistentVolumeSource, LocalVolumeSource, PersistentVolume, PersistentVolumeSource, PersistentVolumeSpec,
    PersistentVolumeStatus, RBDPersistentVolumeSource, ScaleIOPersistentVolumeSource, StorageOSPersistentVolumeSource,
    VolumeNodeAffinity,
};
pub use persistent_volume_claim::{
    ModifyVolumeStatus, PersistentVolumeClaim, PersistentVolumeClaimCondition, PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
};
pub use pod::Pod;
pub use pod_options::{
    NodeProxyOptions, PodAttachOptions, PodExecOptions, PodLogOptions, PodPortForwardOptions, PodProxyOptions,
    ServiceProxyOptions,
};
pub use pod_spec::{
    HostAlias, PodDNSConfig, PodDNSConfigOption, PodOS, PodReadinessGate, PodResourceClaim, PodSchedulingGate,
    PodSchedulingGroup, PodSpec,
};
pub use pod_status::{
    ContainerExtendedResourceRequest, HostIP, NodeAllocatableResourceClaimStatus, PodCondition,
    PodExtendedResourceClaimStatus, PodIP, PodResourceClaimStatus, PodStatus,
};
pub use pod_status_result::PodStatusResult;
pub use pod_template::{PodTemplate, PodTemplateSpec};
pub use probe::{
    ExecAction, GRPCAction, HTTPGetAction, HTTPHeader, Lifecycle, LifecycleHandler, Probe, ProbeHandler, SleepAction,
    TCPSocketAction,
};
pub use projected_volume::{
    ClusterTrustBundleProjection, ConfigMapProjection, ConfigMapVolumeSource, DownwardAPIProjection,
    DownwardAPIVolumeFile, DownwardAPIVolumeSource, KeyToPath, PodCertificateProjection, ProjectedVolumeSource,
    SecretProjection, SecretVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};
pub use range_allocation::RangeAllocation;
pub use references::{
    LocalObjectReference, ObjectReference, SecretReference, TypedLocalObjectReference, TypedObjectReference,
};
pub use replication_controller::{
    ReplicationController, ReplicationControllerCondition, ReplicationControllerSpec, ReplicationControllerStatus,
};
pub use resource_quota::{
    ResourceQuota, ResourceQuotaSpec, ResourceQuotaStatus, ScopeSelector, ScopedResourceSelectorRequirement,
};
pub use resource_requirements::{ResourceClaim, ResourceRequirements, VolumeResourceRequirements};
pub use secret::Secret;
pub use security_context::{
    AppArmorProfile, Capabilities, PodSecurityContext, SELinuxOptions, SeccompProfile, SecurityContext, Sysctl,
    WindowsSecurityContextOptions,
};
pub use serialized_reference::SerializedReference;
pub use service::{
    ClientIPConfig, LoadBalancerIngress, LoadBalancerStatus, PortStatus, Service, ServicePort, ServiceSpec,
    ServiceStatus, SessionAffinityConfig,
};
pub use service_account::ServiceAccount;
pub use volume::{
    AWSElasticBlockStoreVolumeSource, AzureDiskVolumeSource, AzureFileVolumeSource, CSIVolumeSource,
    CephFSVolumeSource, CinderVolumeSource, EmptyDirVolumeSource, EphemeralVolumeSource, FCVolumeSource,
    FlexVolumeSource, FlockerVolumeSource, GCEPersistentDiskVolumeSource, GitRepoVolumeSource, GlusterfsVolumeSource,
    HostPathVolumeSource, ISCSIVolumeSource, ImageVolumeSource, NFSVolumeSource, PersistentVolumeClaimTemplate,
    PersistentVolumeClaimVolumeSource, PhotonPersistentDiskVolumeSource, PortworxVolumeSource, QuobyteVolumeSource,
    RBDVolumeSource, ScaleIOVolumeSource, StorageOSVolumeSource, Volume, VolumeDevice, VolumeMount, VolumeSource,
    VsphereVirtualDiskVolumeSource,
};

/// Amounts by resource name.
pub type ResourceList = std::collections::BTreeMap<String, api_machinery::quantity::Quantity>;

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.api.core.v1";
/// The API group.
pub const GROUP: &str = "";
/// The version.
pub const VERSION: &str = "v1";
