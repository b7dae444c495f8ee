//! The gates that several crates ask, each once. One that a single crate asks is a constant next to the code that does.

use crate::feature::Feature;

/// Constraints of spreading look at labels of the pod itself (KEP-3243).
pub const SPREAD_BY_LABEL_KEYS: Feature = Feature::named("MatchLabelKeysInPodTopologySpread");
/// A controller manager gives its lease back and waits for its controllers at a stop, instead of ending at once (KEP-5366).
pub const RELEASE_LEASE_ON_EXIT: Feature = Feature::named("ControllerManagerReleaseLeaderElectionLockOnExit");
/// The server itself puts those labels into the selectors of constraints.
pub const SPREAD_SELECTORS_BY_LABEL_KEYS: Feature = Feature::named("MatchLabelKeysInPodTopologySpreadSelectorMerge");
/// Pods say how much it costs to delete them before others of their ReplicaSet (KEP-2255).
pub const POD_DELETION_COST: Feature = Feature::named("PodDeletionCost");
/// Containers have restart policies of their own (KEP-5307).
pub const CONTAINER_RESTART_RULES: Feature = Feature::named("ContainerRestartRules");
/// A container's end may restart all of its pod (KEP-5532).
pub const RESTART_ALL_CONTAINERS: Feature = Feature::named("RestartAllContainersOnContainerExits");
/// One stream of a container's log can be asked for (KEP-3288).
pub const SPLIT_LOG_STREAMS: Feature = Feature::named("PodLogsQuerySplitStreams");
/// A pod that is bound has no other node in mind any more.
pub const CLEAR_NOMINATION: Feature = Feature::named("ClearingNominatedNodeNameAfterBinding");
/// Pods learn the zone and the region of their node by labels (KEP-4742).
pub const TOPOLOGY_LABELS: Feature = Feature::named("PodTopologyLabelsAdmission");
/// Variables of containers come from files (KEP-3721).
pub const ENV_FILES: Feature = Feature::named("EnvFiles");
/// Pods have a host name that is neither theirs nor within a domain (KEP-4762).
pub const HOSTNAME_OVERRIDE: Feature = Feature::named("HostnameOverride");
/// ReplicaSets and Deployments tell how many pods are going (KEP-3973).
pub const TERMINATING_REPLICAS: Feature = Feature::named("DeploymentReplicaSetTerminatingReplicas");
/// Where the pods of a job may go can be changed while it is suspended, though it had begun (KEP-5440).
pub const SUSPENDED_JOB_PLACING: Feature = Feature::named("MutableSchedulingDirectivesForSuspendedJobs");
/// Addresses in older fields are spelled in one way only (KEP-4858).
pub const STRICT_ADDRESSES: Feature = Feature::named("StrictIPCIDRValidation");
/// Pods may have users of their own on the host's network (KEP-5607).
pub const HOST_NETWORK_USERS: Feature = Feature::named("UserNamespacesHostNetworkSupport");
/// Tolerations may compare numbers (KEP-5471).
pub const COMPARING_TOLERATIONS: Feature = Feature::named("TaintTolerationComparisonOperators");
/// Claims may ask for devices that others use, to look after them.
pub const ADMIN_ACCESS: Feature = Feature::named("DRAAdminAccess");
/// The uid of a user is read from the subject of the certificate.
pub const SUBJECT_UID: Feature = Feature::named("AllowParsingUserUIDFromCertAuth");
/// Front proxies tell the uids of users.
pub const REMOTE_UID: Feature = Feature::named("RemoteRequestHeaderUID");
/// Each API server has a name of its own.
pub const API_SERVER_IDENTITY: Feature = Feature::named("APIServerIdentity");
/// Node agents take sessions apart that come over a WebSocket (KEP-4006).
pub const EXTEND_WEBSOCKETS: Feature = Feature::named("ExtendWebSocketsToKubelet");
/// Pods may ask for resources as a whole (KEP-2837).
pub const POD_LEVEL_RESOURCES: Feature = Feature::named("PodLevelResources");
/// What a pod asks for as a whole can be changed while it runs (KEP-5419).
pub const POD_LEVEL_RESIZE: Feature = Feature::named("InPlacePodLevelResourcesVerticalScaling");
/// What init containers ask for can be changed before they have run, sidecars or not (KEP-5532).
pub const RESIZE_INIT_CONTAINERS: Feature = Feature::named("InPlacePodVerticalScalingInitContainers");
/// Statuses tell of the health of the devices that containers have (KEP-4680).
pub const RESOURCE_HEALTH: Feature = Feature::named("ResourceHealthStatus");
/// They say in words what is wrong with one.
pub const RESOURCE_HEALTH_MESSAGE: Feature = Feature::named("ResourceHealthStatusMessage");
/// Those who bring credentials for registries to a node are given tokens of pods' accounts (KEP-4412).
pub const CREDENTIAL_TOKENS: Feature = Feature::named("KubeletServiceAccountTokenForCredentialProviders");
/// Volumes of every access mode are mounted with the labels of their pods (KEP-1710).
pub const SELINUX_MOUNT: Feature = Feature::named("SELinuxMount");
/// Attributes of devices may be lists (KEP-5491).
pub const LIST_ATTRIBUTES: Feature = Feature::named("DRAListTypeAttributes");
/// Drivers of volumes say that no pod goes to a node without them (KEP-5030).
pub const VOLUME_LIMIT_SCALING: Feature = Feature::named("VolumeLimitScaling");
/// Devices wait for conditions before a pod is bound.
pub const BINDING_CONDITIONS: Feature = Feature::named("DRADeviceBindingConditions");
/// CBOR is spoken, and custom objects are stored as it.
pub const CBOR: Feature = Feature::named("CBORServingAndStorage");
/// There are bundles of certificates to trust.
pub const CLUSTER_TRUST_BUNDLE: Feature = Feature::named("ClusterTrustBundle");
/// Several claims have parts of a device.
pub const CONSUMABLE_CAPACITY: Feature = Feature::named("DRAConsumableCapacity");
/// Who leads is decided by API servers, which Leases tell.
pub const COORDINATED_ELECTION: Feature = Feature::named("CoordinatedLeaderElection");
/// Nodes say which features they have.
pub const DECLARED_FEATURES: Feature = Feature::named("NodeDeclaredFeatures");
/// Drivers tell the state of each device of a claim, without which nobody knows of conditions.
pub const DEVICE_STATUS: Feature = Feature::named("DRAResourceClaimDeviceStatus");
/// Pods have the certificates of trust bundles in files.
pub const CLUSTER_TRUST_BUNDLE_PROJECTION: Feature = Feature::named("ClusterTrustBundleProjection");
/// Devices have taints, and claims tolerate them.
pub const DEVICE_TAINTS: Feature = Feature::named("DRADeviceTaints");
/// Rules give devices taints.
pub const DEVICE_TAINT_RULES: Feature = Feature::named("DRADeviceTaintRules");
/// Devices are made of what nodes have anyway, which counts (KEP-5517).
pub const NODE_ALLOCATABLE: Feature = Feature::named("DRANodeAllocatableResources");
/// Devices are allocated to pods.
pub const DEVICES: Feature = Feature::named("DynamicResourceAllocation");
/// Containers get devices as extended resources.
pub const EXTENDED_RESOURCE: Feature = Feature::named("DRAExtendedResource");
/// Pods are scheduled in groups.
pub const GENERIC_WORKLOAD: Feature = Feature::named("GenericWorkload");
/// Groups of pods share claims.
pub const GROUP_CLAIMS: Feature = Feature::named("DRAWorkloadResourceClaims");
/// Groups of pods have a priority: each evicts others as one, and may be evicted as one.
pub const GROUP_PREEMPTION: Feature = Feature::named("WorkloadAwarePreemption");
/// Devices take from what their pool shares.
pub const PARTITIONABLE_DEVICES: Feature = Feature::named("DRAPartitionableDevices");
/// Pods are given certificates.
pub const POD_CERTIFICATE_REQUEST: Feature = Feature::named("PodCertificateRequest");
/// It is told how many devices there are.
pub const POOL_STATUS: Feature = Feature::named("DRAResourcePoolStatus");
/// Rolling updates of stateful sets take several pods at a time.
pub const STATEFUL_SET_MAX_UNAVAILABLE: Feature = Feature::named("MaxUnavailableStatefulSet");
/// Requests for devices have alternatives.
pub const PRIORITIZED_LIST: Feature = Feature::named("DRAPrioritizedList");
/// Servers say which versions they store.
pub const STORAGE_VERSION_API: Feature = Feature::named("StorageVersionAPI");
/// Objects are rewritten in the version that is stored now.
pub const STORAGE_VERSION_MIGRATOR: Feature = Feature::named("StorageVersionMigrator");
/// Jobs whose pods are to run all at once are scheduled as gangs.
pub const WORKLOAD_WITH_JOB: Feature = Feature::named("WorkloadWithJob");
/// Containers say which signal ends them (KEP-4960).
pub const STOP_SIGNALS: Feature = Feature::named("ContainerStopSignals");
/// Statuses tell which images are mounted as volumes (KEP-5365).
pub const IMAGE_VOLUME_DIGESTS: Feature = Feature::named("ImageVolumeWithDigest");
/// Groups of pods stay within a domain (KEP-5732).
pub const TOPOLOGY_AWARE_GROUPS: Feature = Feature::named("TopologyAwareWorkloadScheduling");
