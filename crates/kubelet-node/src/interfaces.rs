//! The interfaces between the pods of a node and the node itself.
//!
//! The pod engine asks for volumes, environments, control groups and the node's facts through these traits and knows
//! nothing of how they come about; tests give it recording fakes. What the node side asks of the pods is
//! [`crate::engine::PodEngine`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::{Container, Node, ObjectReference, Pod, Secret};
use async_trait::async_trait;
use component_base::Feature;
use component_helpers::taints::Comparing;
use node_api::cri::v1;

use crate::dra::DynamicResources;
use crate::node::DeclaredFeatures;
use crate::topology::TopologyManager;

/// How often a node is looked at whose changes nobody tells.
const NODE_LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Everything the pod engine needs of the node.
#[derive(Clone)]
pub struct NodeSide {
    /// Volumes and pod directories.
    pub volumes: Arc<dyn Volumes>,
    /// What sandboxes and containers are given.
    pub setup: Arc<dyn ContainerSetup>,
    /// Control groups of pods.
    pub cgroups: Arc<dyn PodCgroups>,
    /// The node object and the machine's state.
    pub node: Arc<dyn NodeView>,
    /// Where events go.
    pub events: Arc<dyn Events>,
    /// Who gives devices, processors and memory; none where nobody may.
    pub topology: Option<Arc<TopologyManager>>,
    /// The claims of pods; none where no API server has any.
    pub claims: Option<Arc<DynamicResources>>,
    /// Who has credentials for registries beside pods and files; none where nobody is asked.
    pub credentials: Option<Arc<dyn ImageCredentials>>,
}

/// What to present to a registry.
#[derive(Clone, PartialEq)]
pub struct RegistryCredential {
    /// Where it is good: a host, maybe with globs, a port and a path.
    pub server: String,
    /// User and password.
    pub auth: v1::AuthConfig,
    /// The account that it is for; none where it is everybody's on the node.
    pub account: Option<CredentialOwner>,
}

/// The object that credentials come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CredentialOwner {
    /// Tells it from others of its name.
    pub uid: String,
    /// Of a pod that uses it.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Of which images that are on the node a pod has to show that it may use them (`imagePullCredentialsVerificationPolicy`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullVerification {
    /// Of none.
    Never,
    /// Of those that the kubelet pulled.
    NotPreloaded,
    /// Of all but those of these repositories.
    NotListed(Vec<String>),
    /// Of all.
    Always,
}

/// Who has credentials for registries.
#[async_trait]
pub trait ImageCredentials: Send + Sync + 'static {
    /// What there is for an image that a pod wants; the image with its registry, and without tag and digest.
    async fn lookup(&self, pod: &Pod, image: &str) -> Vec<RegistryCredential>;

    /// A pod is gone for good.
    fn forget_pod(&self, uid: &str);
}

/// Why the node side could not do something, in the words that users see.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SideError(pub String);

impl SideError {
    /// An error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// An error with its cause.
    pub fn of(error: &dyn std::error::Error) -> Self {
        match error.source() {
            Some(cause) => Self(format!("{error}: {cause}")),
            None => Self(error.to_string()),
        }
    }
}

/// What one event says of a volume that is not in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeProblem {
    /// `FailedMount`, or `FailedMapVolume` for block devices.
    pub reason: &'static str,
    /// The event's message.
    pub text: String,
}

impl From<&str> for VolumeProblem {
    fn from(text: &str) -> Self {
        Self { reason: "FailedMount", text: text.to_owned() }
    }
}

fn joined(problems: &[VolumeProblem]) -> String {
    problems.iter().map(|problem| problem.text.as_str()).collect::<Vec<_>>().join(", ")
}

/// Why a pod's volumes are not all in place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    /// The pod's directories cannot be made.
    #[error("error making pod data directories: {0}")]
    Directories(String),
    /// Volumes are missing; each is one event.
    #[error("{}", joined(.0))]
    Volumes(Vec<VolumeProblem>),
    /// All volumes are in place, but the content of some is not up to date; as above. Pods go on with what they have.
    #[error("{}", joined(.0))]
    Stale(Vec<VolumeProblem>),
}

/// The volumes and directories of pods.
#[async_trait]
pub trait Volumes: Send + Sync + 'static {
    /// Brings all volumes of the pod into place and makes its directories. Idempotent; called at every sync, so that
    /// contents are refreshed.
    async fn mount(&self, pod: &Pod) -> Result<(), MountError>;

    /// Takes the pod's volumes away; called again until it succeeds. Afterwards `pods/{uid}/volumes` holds nothing.
    async fn unmount(&self, uid: &str) -> Result<(), SideError>;

    /// Removes what is left on disk of every pod whose uid is not in `keep`.
    async fn clean_orphans(&self, keep: &BTreeSet<String>);

    /// After volumes did not come in time: why the pod cannot run here at all, where it is that the node can have no more of
    /// their drivers'.
    async fn at_limit(&self, pod: &Pod) -> Option<String> {
        let _ = pod;
        None
    }

    /// Groups that volumes add to the pod's processes.
    fn supplemental_groups(&self, pod: &Pod) -> Vec<i64>;

    /// Sets the metrics that follow from which volumes there are.
    fn show_metrics(&self) {}
}

/// What sandboxes and containers are given.
#[async_trait]
pub trait ContainerSetup: Send + Sync + 'static {
    /// Host name, DNS, control group and runtime handler of a pod's sandbox.
    async fn sandbox(&self, pod: &Pod) -> Result<SandboxSetup, SideError>;

    /// The environment, mounts and devices of a container. The error's text becomes the message of
    /// `CreateContainerConfigError`.
    async fn container(
        &self,
        pod: &Pod,
        container: &Container,
        facts: &ContainerFacts,
    ) -> Result<ContainerInputs, SideError>;

    /// CPU, memory and the like of a container.
    fn resources(&self, pod: &Pod, container: &Container) -> v1::LinuxContainerResources;

    /// CPU and memory of a pod's sandbox.
    fn sandbox_resources(&self, pod: &Pod) -> SandboxResources;

    /// Nothing is left of the pods that are not among these: what was set aside for them is free.
    fn keep(&self, uids: &BTreeSet<String>) {
        let _ = uids;
    }

    /// Whether a container has a share of the machine's swap.
    fn may_swap(&self, pod: &Pod, container: &Container) -> bool {
        let _ = (pod, container);
        false
    }

    /// The processors that a container of the pod with this uid is to run on, in the kernel's list form; none where
    /// nothing is said about that.
    fn cpu_set(&self, uid: &str, container: &str) -> Option<String> {
        let _ = (uid, container);
        None
    }

    /// A secret with registry credentials; `None` where there is none of that name.
    async fn pull_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, SideError>;
}

/// What the node decides about a sandbox.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SandboxSetup {
    /// Empty for pods on the host's network.
    pub hostname: String,
    /// What `resolv.conf` shall say.
    pub dns: Option<v1::DnsConfig>,
    /// The pod's control group as the runtime's driver names it.
    pub cgroup_parent: String,
    /// Its CPU and memory.
    pub resources: SandboxResources,
    /// The handler of the pod's RuntimeClass; empty for the default.
    pub runtime_handler: String,
    /// The pod's namespace of users; none for the machine's.
    pub users: Option<v1::UserNamespace>,
}

/// CPU and memory of a sandbox.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SandboxResources {
    /// The sum of the containers' resources.
    pub containers: v1::LinuxContainerResources,
    /// What the runtime needs on top.
    pub overhead: Option<v1::LinuxContainerResources>,
}

/// What is known of a container's surroundings when its environment is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerFacts {
    /// The pod's addresses, primary first; empty on the host's network.
    pub pod_ips: Vec<String>,
    /// The image that will run, as the runtime names it.
    pub image_id: String,
}

/// What the node gives a container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ContainerInputs {
    /// The whole environment, service variables included.
    pub env: BTreeMap<String, String>,
    /// Volumes and the hosts file; not the termination log.
    pub mounts: Vec<v1::Mount>,
    /// Host devices.
    pub devices: Vec<v1::Device>,
    /// Devices of the Container Device Interface, by name.
    pub cdi_devices: Vec<String>,
    /// For the runtime, beside those that the kubelet always writes.
    pub annotations: BTreeMap<String, String>,
}

/// Control groups of pods.
#[async_trait]
pub trait PodCgroups: Send + Sync + 'static {
    /// Whether the pod has its group.
    fn exists(&self, pod: &Pod) -> bool;

    /// Makes the group and sets its limits.
    ///
    /// # Errors
    /// The machine refuses; the text is what `FailedCreatePodContainer` shows.
    async fn ensure(&self, pod: &Pod) -> Result<(), SideError>;

    /// Kills what is left in the group and removes it.
    async fn remove(&self, uid: &str) -> Result<(), SideError>;

    /// Removes the groups of every pod whose uid is not in `keep`.
    async fn clean_orphans(&self, keep: &BTreeSet<String>);
}

/// The node as the pods see it.
#[async_trait]
pub trait NodeView: Send + Sync + 'static {
    /// The API object where it is known, otherwise one that the node made of itself.
    fn node(&self) -> Option<Arc<Node>>;

    /// The same, read anew.
    async fn fresh_node(&self) -> Option<Arc<Node>>;

    /// One or two addresses, the primary first.
    fn host_ips(&self) -> Vec<IpAddr>;

    /// The pressure conditions that are on, such as `MemoryPressure`.
    fn pressures(&self) -> Vec<String>;

    /// Whether the machine is going down.
    fn shutting_down(&self) -> bool;

    /// Something changed that the node's status in the API should show at once.
    fn status_changed(&self) {}

    /// Waits until the node may be another than before.
    async fn changed(&self) {
        tokio::time::sleep(NODE_LOOK_PERIOD).await;
    }
}

/// Whether an event is good news or bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For information.
    Normal,
    /// Something may be wrong.
    Warning,
}

/// Where events go. Must not block.
pub trait Events: Send + Sync + 'static {
    /// Records an event.
    fn event(&self, about: ObjectReference, level: Level, reason: &str, message: &str);

    /// Records an event that carries annotations.
    fn annotated(
        &self,
        about: ObjectReference,
        annotations: &BTreeMap<String, String>,
        level: Level,
        reason: &str,
        message: &str,
    ) {
        let _ = annotations;
        self.event(about, level, reason, message);
    }
}

/// What the pod engine is told by flags and the configuration file.
#[derive(Debug, Clone, PartialEq)]
pub struct PodSettings {
    /// The node's name.
    pub node_name: String,
    /// `--root-dir`.
    pub root_dir: PathBuf,
    /// `podLogsDir`.
    pub pod_logs_dir: PathBuf,
    /// Where the links of the old log layout are made.
    pub container_logs_dir: PathBuf,
    /// `staticPodPath`: a directory or one file.
    pub static_pod_path: Option<PathBuf>,
    /// `staticPodURL`.
    pub static_pod_url: Option<String>,
    /// `staticPodURLHeader`.
    pub static_pod_url_header: Vec<(String, String)>,
    /// `fileCheckFrequency`.
    pub file_check_frequency: Duration,
    /// `httpCheckFrequency`.
    pub http_check_frequency: Duration,
    /// `syncFrequency`.
    pub sync_frequency: Duration,
    /// `serializeImagePulls`.
    pub serialize_image_pulls: bool,
    /// `maxParallelImagePulls`; `None` for no limit.
    pub max_parallel_image_pulls: Option<usize>,
    /// Of which images pods have to show that they may use them; nobody asks where the gate `KubeletEnsureSecretPulledImages`
    /// is off.
    pub pull_verification: Option<PullVerification>,
    /// `registryPullQPS`; 0 for no limit.
    pub registry_pull_qps: f64,
    /// `registryBurst`.
    pub registry_burst: u32,
    /// First delay of a crashing container.
    pub crash_loop_initial: Duration,
    /// Longest delay of a crashing container.
    pub crash_loop_max: Duration,
    /// `imageGCHighThresholdPercent`.
    pub image_gc_high_percent: u8,
    /// `imageGCLowThresholdPercent`.
    pub image_gc_low_percent: u8,
    /// `imageMinimumGCAge`.
    pub image_minimum_age: Duration,
    /// `imageMaximumGCAge`; zero for never.
    pub image_maximum_age: Duration,
    /// `--minimum-container-ttl-duration`.
    pub dead_container_min_age: Duration,
    /// `--maximum-dead-containers-per-container`; negative for no limit.
    pub dead_per_container: i32,
    /// `--maximum-dead-containers`; negative for no limit.
    pub dead_total: i32,
    /// `containerLogMaxSize`; `None` turns rotation off.
    pub log_max_bytes: Option<u64>,
    /// `containerLogMaxFiles`.
    pub log_max_files: usize,
    /// `containerLogMonitorInterval`.
    pub log_monitor_interval: Duration,
    /// `cpuManagerReconcilePeriod`.
    pub cpu_sets_period: Duration,
    /// `seccompDefault`.
    pub seccomp_default: bool,
    /// Gate `PreventStaticPodAPIReferences`.
    pub prevent_static_pod_api_references: bool,
    /// Gate `ResourceHealthStatus`: statuses show how the devices of containers are.
    pub resource_health: bool,
    /// Gate `ContainerStopSignals`: containers may name the signal by which they are asked to end.
    pub stop_signals: bool,
    /// How tolerations compare values, by the gate `TaintTolerationComparisonOperators`.
    pub comparing: Comparing,
    /// Gate `ImageVolumeWithDigest`: statuses show which images are mounted as volumes.
    pub image_volume_digests: bool,
    /// Gate `PodReadyToStartContainersCondition`: statuses tell whether the sandbox is ready.
    pub sandbox_condition: bool,
    /// What an earlier kubelet found of containers holds until this one knows. Not with the gate
    /// `ChangeContainerStatusOnKubeletRestart`.
    pub keeps_readiness: bool,
    /// Gate `RuntimeClassInImageCriApi`: images belong to the runtime handlers that pods name.
    pub images_by_handler: bool,
    /// Resources that guaranteed pods have for themselves and that may be changed all the same, by the gates
    /// `InPlacePodVerticalScalingExclusiveCPUs` and `InPlacePodVerticalScalingExclusiveMemory`.
    pub resizes: ExclusiveResizes,
    /// Gate `PodLevelResources`: pods may say what all of their containers may have together.
    pub pod_level_resources: bool,
    /// Gate `InPlacePodLevelResourcesVerticalScaling`: that may be changed while they run.
    pub pod_level_resizes: bool,
    /// Gate `DRANodeAllocatableResources`: what claims give pods of that which nodes have anyway takes up room.
    pub node_allocatable_claims: bool,
    /// Gate `EventedPLEG`: the runtime's events are followed.
    pub evented_pleg: bool,
    /// Gate `PLEGOnDemandRelist`: a pod is looked at again as soon as something was done about it, and not only with all others
    /// within a second.
    pub on_demand_relists: bool,
    /// Features of pods whose gates are off: what pods say of them is not looked at.
    pub ignored: Vec<Feature>,
    /// What the node declares of features that pods may need; `None` where nobody asks (gate `NodeDeclaredFeatures`).
    pub declared_features: Option<DeclaredFeatures>,
    /// Whether the machine's kernel enforces AppArmor profiles.
    pub enforces_app_armor: bool,
    /// `maxPods`.
    pub max_pods: usize,
    /// `allowedUnsafeSysctls`; a trailing `*` matches any rest.
    pub allowed_unsafe_sysctls: Vec<String>,
}

/// Which resources of guaranteed pods may be changed though a manager gives them away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExclusiveResizes {
    /// Under the CPU manager's static policy. Who has processors keeps just those.
    pub cpus: bool,
    /// Under the memory manager's. Whose memory is bound to nodes has it bound to those.
    pub memory: bool,
}

/// As upstream's kubelet is when nobody says otherwise.
impl Default for PodSettings {
    fn default() -> Self {
        Self {
            node_name: String::new(),
            root_dir: "/var/lib/kubelet".into(),
            pod_logs_dir: "/var/log/pods".into(),
            container_logs_dir: "/var/log/containers".into(),
            static_pod_path: None,
            static_pod_url: None,
            static_pod_url_header: Vec::new(),
            file_check_frequency: Duration::from_secs(20),
            http_check_frequency: Duration::from_secs(20),
            sync_frequency: Duration::from_secs(60),
            serialize_image_pulls: true,
            max_parallel_image_pulls: None,
            pull_verification: Some(PullVerification::NotPreloaded),
            registry_pull_qps: 5.0,
            registry_burst: 10,
            crash_loop_initial: Duration::from_secs(10),
            crash_loop_max: Duration::from_secs(300),
            image_gc_high_percent: 85,
            image_gc_low_percent: 80,
            image_minimum_age: Duration::from_secs(120),
            image_maximum_age: Duration::ZERO,
            dead_container_min_age: Duration::ZERO,
            dead_per_container: 1,
            dead_total: -1,
            log_max_bytes: Some(10 * 1024 * 1024),
            log_max_files: 5,
            log_monitor_interval: Duration::from_secs(10),
            cpu_sets_period: Duration::from_secs(10),
            seccomp_default: false,
            prevent_static_pod_api_references: true,
            resource_health: true,
            stop_signals: false,
            comparing: Comparing::Texts,
            image_volume_digests: false,
            sandbox_condition: true,
            keeps_readiness: true,
            images_by_handler: false,
            resizes: ExclusiveResizes::default(),
            pod_level_resources: true,
            pod_level_resizes: true,
            node_allocatable_claims: false,
            evented_pleg: false,
            on_demand_relists: true,
            ignored: Vec::new(),
            declared_features: None,
            enforces_app_armor: false,
            max_pods: 110,
            allowed_unsafe_sysctls: Vec::new(),
        }
    }
}
