//! PodSpec and what it is made of.

use std::collections::BTreeMap;

use api_machinery::api;

use super::constants::{dns_policy, preemption_policy, restart_policy};
use super::{
    Affinity, Container, EphemeralContainer, LocalObjectReference, PodSecurityContext, ResourceList,
    ResourceRequirements, Toleration, TopologySpreadConstraint, Volume,
};

/// Describes what a pod runs and how.
#[api]
pub struct PodSpec {
    /// Volumes that containers of the pod may mount.
    #[field(1, merge_key = "name", retain_keys)]
    pub volumes: Vec<Volume>,
    /// Containers run one after another before the main ones start.
    #[field(20, merge_key = "name")]
    pub init_containers: Vec<Container>,
    /// Main containers of the pod; at least one is required.
    #[field(2, always, required, merge_key = "name")]
    pub containers: Vec<Container>,
    /// Temporary containers for debugging, added through the ephemeralcontainers subresource.
    #[field(34, merge_key = "name")]
    pub ephemeral_containers: Vec<EphemeralContainer>,
    /// Restart policy of containers: Always (default), OnFailure or Never.
    #[field(3, fill = "\"Always\"", go = "v1.RestartPolicy", values = restart_policy::ALL)]
    pub restart_policy: String,
    /// Seconds given to stop gracefully; default 30, 0 kills at once.
    #[field(4, fill = "30")]
    pub termination_grace_period_seconds: Option<i64>,
    /// Seconds the pod may be active before it is failed.
    #[field(5)]
    pub active_deadline_seconds: Option<i64>,
    /// DNS policy: ClusterFirst (default), ClusterFirstWithHostNet, Default or None.
    #[field(6, fill = "\"ClusterFirst\"", go = "v1.DNSPolicy", values = dns_policy::ALL)]
    pub dns_policy: String,
    /// Labels a node must have to run the pod.
    #[field(7, atomic)]
    pub node_selector: BTreeMap<String, String>,
    /// Service account that the pod runs as.
    #[field(8)]
    pub service_account_name: String,
    /// Deprecated. Old name of serviceAccountName.
    #[field(9)]
    pub service_account: String,
    /// Whether a service account token is mounted automatically.
    #[field(21)]
    pub automount_service_account_token: Option<bool>,
    /// Node the pod runs on; empty until it is scheduled.
    #[field(10)]
    pub node_name: String,
    /// Uses the host's network namespace; default false.
    #[field(11)]
    pub host_network: bool,
    /// Uses the host's process ID namespace; default false.
    #[field(12, name = "hostPID")]
    pub host_pid: bool,
    /// Uses the host's IPC namespace; default false.
    #[field(13, name = "hostIPC")]
    pub host_ipc: bool,
    /// Lets all containers share one process namespace; excludes hostPID; default false.
    #[field(27)]
    pub share_process_namespace: Option<bool>,
    /// Security settings of the pod and defaults for its containers.
    #[field(14, fill = "{}")]
    pub security_context: Option<PodSecurityContext>,
    /// Secrets in the namespace used to pull the images.
    #[field(15, merge_key = "name")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// Host name of the pod; default is the pod's name.
    #[field(16)]
    pub hostname: String,
    /// Subdomain used to build the pod's full host name.
    #[field(17)]
    pub subdomain: String,
    /// Scheduling rules of the pod.
    #[field(18)]
    pub affinity: Option<Affinity>,
    /// Scheduler that places the pod; default is default-scheduler.
    #[field(19, fill = "\"default-scheduler\"")]
    pub scheduler_name: String,
    /// Taints that the pod tolerates.
    #[field(22)]
    pub tolerations: Vec<Toleration>,
    /// Extra entries for the pod's hosts file.
    #[field(23, merge_key = "ip")]
    pub host_aliases: Vec<HostAlias>,
    /// Priority class of the pod; unset uses the default class.
    #[field(24)]
    pub priority_class_name: String,
    /// Priority value, set from the class; higher goes first.
    #[field(25)]
    pub priority: Option<i32>,
    /// DNS settings merged with those of the DNS policy.
    #[field(26)]
    pub dns_config: Option<PodDNSConfig>,
    /// Extra conditions that must be true for the pod to be ready.
    #[field(28)]
    pub readiness_gates: Vec<PodReadinessGate>,
    /// RuntimeClass that runs the pod; unset uses the default runtime.
    #[field(29)]
    pub runtime_class_name: Option<String>,
    /// Whether variables describe the namespace's services; default true.
    #[field(30)]
    pub enable_service_links: Option<bool>,
    /// Preemption of lower priorities: PreemptLowerPriority (default) or Never.
    #[field(31, go = "v1.PreemptionPolicy", values = preemption_policy::ALL)]
    pub preemption_policy: Option<String>,
    /// Extra resources for running the pod, set from its RuntimeClass.
    #[field(32, go = "v1.ResourceList")]
    pub overhead: ResourceList,
    /// How pods spread over topology domains; all must hold.
    #[field(33, merge_key = "topologyKey", keys("topologyKey", "whenUnsatisfiable"))]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Uses the full domain name as the host name; default false.
    #[field(35, name = "setHostnameAsFQDN")]
    pub set_hostname_as_fqdn: Option<bool>,
    /// Operating system of the pod's containers.
    #[field(36)]
    pub os: Option<PodOS>,
    /// Uses the host's user namespace; default true.
    #[field(37)]
    pub host_users: Option<bool>,
    /// Gates that block scheduling while any is present.
    #[field(38, merge_key = "name")]
    pub scheduling_gates: Vec<PodSchedulingGate>,
    /// Resource claims that must be allocated before the pod starts.
    #[field(39, merge_key = "name", retain_keys)]
    pub resource_claims: Vec<PodResourceClaim>,
    /// Total compute resources of the whole pod.
    #[field(40)]
    pub resources: Option<ResourceRequirements>,
    /// Exact host name to use inside the pod; at most 64 characters.
    #[field(41)]
    pub hostname_override: Option<String>,
    /// Group that the pod is scheduled together with.
    #[field(43)]
    pub scheduling_group: Option<PodSchedulingGroup>,
}

/// One hosts file entry of a pod.
#[api]
pub struct HostAlias {
    /// IP address of the entry.
    #[field(1, always, required)]
    pub ip: String,
    /// Host names for the IP address.
    #[field(2)]
    pub hostnames: Vec<String>,
}

/// DNS settings of a pod.
#[api]
pub struct PodDNSConfig {
    /// DNS server addresses, appended to those of the policy.
    #[field(1)]
    pub nameservers: Vec<String>,
    /// DNS search domains, appended to those of the policy.
    #[field(2)]
    pub searches: Vec<String>,
    /// Resolver options, merged with those of the policy.
    #[field(3)]
    pub options: Vec<PodDNSConfigOption>,
}

/// One DNS resolver option.
#[api]
pub struct PodDNSConfigOption {
    /// Name of the option; required.
    #[field(1)]
    pub name: String,
    /// Value of the option, if it has one.
    #[field(2)]
    pub value: Option<String>,
}

/// An extra condition that must be true for readiness.
#[api]
pub struct PodReadinessGate {
    /// Type of the pod condition that is checked.
    #[field(1, always, required, go = "v1.PodConditionType")]
    pub condition_type: String,
}

/// Operating system of a pod.
#[api]
pub struct PodOS {
    /// Operating system name: linux or windows.
    #[field(1, always, required, go = "v1.OSName")]
    pub name: String,
}

/// A gate that holds back the scheduling of a pod.
#[api]
pub struct PodSchedulingGate {
    /// Name of the gate, unique in the pod.
    #[field(1, always, required)]
    pub name: String,
}

/// Names a resource claim that the pod uses.
#[api]
pub struct PodResourceClaim {
    /// Name of the entry, a DNS label unique in the pod.
    #[field(1, always, required)]
    pub name: String,
    /// Existing claim in the pod's namespace; excludes resourceClaimTemplateName.
    #[field(3)]
    pub resource_claim_name: Option<String>,
    /// Template from which a claim is made for the pod.
    #[field(4)]
    pub resource_claim_template_name: Option<String>,
}

/// The group a pod is scheduled with; exactly one member is set.
#[api(union(podGroupName = "PodGroupName"))]
pub struct PodSchedulingGroup {
    /// Name of the PodGroup, in the pod's namespace.
    #[field(1)]
    pub pod_group_name: Option<String>,
}
