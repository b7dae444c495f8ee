//! `KubeSchedulerConfiguration`: profiles, their plugins and their arguments.

use api_machinery::api;
use api_machinery::leaf::RawJson;

use super::{ClientConnectionConfiguration, Extender, LeaderElectionConfiguration};

/// Configures a scheduler.
#[api]
pub struct KubeSchedulerConfiguration {
    /// How many workers one scheduling pass may use; default 16.
    #[field(0)]
    pub parallelism: Option<i32>,
    /// Leader election.
    #[field(0, always)]
    pub leader_election: LeaderElectionConfiguration,
    /// The connection to the API server.
    #[field(0, always)]
    pub client_connection: ClientConnectionConfiguration,
    /// Whether profiling endpoints are served.
    #[field(0)]
    pub enable_profiling: Option<bool>,
    /// Whether lock contention is profiled.
    #[field(0)]
    pub enable_contention_profiling: Option<bool>,
    /// Share of nodes to find feasible before scoring; 0 adapts to the size of the cluster.
    #[field(0)]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// First back-off of a pod in seconds; default 1.
    #[field(0)]
    pub pod_initial_backoff_seconds: Option<i64>,
    /// Longest back-off of a pod in seconds; default 10.
    #[field(0)]
    pub pod_max_backoff_seconds: Option<i64>,
    /// One profile for each scheduler name that is served.
    #[field(0, keys("schedulerName"))]
    pub profiles: Vec<KubeSchedulerProfile>,
    /// Outside services that take part in decisions.
    #[field(0)]
    pub extenders: Vec<Extender>,
    /// Whether caches are filled only after winning the election.
    #[field(0)]
    pub delay_cache_until_active: bool,
}

/// What pods of one scheduler name go through.
#[api]
pub struct KubeSchedulerProfile {
    /// The `schedulerName` of the pods that this profile serves.
    #[field(0)]
    pub scheduler_name: Option<String>,
    /// Overrides the global share of nodes.
    #[field(0)]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Plugins enabled and disabled on top of the defaults.
    #[field(0)]
    pub plugins: Option<Plugins>,
    /// Arguments of plugins.
    #[field(0, keys("name"))]
    pub plugin_config: Vec<PluginConfig>,
}

/// The plugins of each extension point.
#[api]
pub struct Plugins {
    /// Before a pod enters the active queue.
    #[field(0, always)]
    pub pre_enqueue: PluginSet,
    /// The order of the queue.
    #[field(0, always)]
    pub queue_sort: PluginSet,
    /// Once for a pod, before nodes are filtered.
    #[field(0, always)]
    pub pre_filter: PluginSet,
    /// Whether a node can run the pod.
    #[field(0, always)]
    pub filter: PluginSet,
    /// When no node can.
    #[field(0, always)]
    pub post_filter: PluginSet,
    /// Once for a pod, before nodes are scored.
    #[field(0, always)]
    pub pre_score: PluginSet,
    /// How well a node suits the pod.
    #[field(0, always)]
    pub score: PluginSet,
    /// When a node was chosen.
    #[field(0, always)]
    pub reserve: PluginSet,
    /// Holding a pod back before it is bound.
    #[field(0, always)]
    pub permit: PluginSet,
    /// Work before binding.
    #[field(0, always)]
    pub pre_bind: PluginSet,
    /// Binding.
    #[field(0, always)]
    pub bind: PluginSet,
    /// After binding.
    #[field(0, always)]
    pub post_bind: PluginSet,
    /// Every point that a plugin implements.
    #[field(0, always)]
    pub multi_point: PluginSet,
    /// Groups of nodes for pod groups.
    #[field(0, always)]
    pub placement_generate: PluginSet,
    /// How well a group of nodes suits a pod group.
    #[field(0, always)]
    pub placement_score: PluginSet,
}

/// Plugins to add to the defaults and to take away.
#[api]
pub struct PluginSet {
    /// Added, after the defaults.
    #[field(0, atomic)]
    pub enabled: Vec<Plugin>,
    /// Taken away; `*` takes all defaults away.
    #[field(0, keys("name"))]
    pub disabled: Vec<Plugin>,
}

/// A plugin by name.
#[api]
pub struct Plugin {
    /// Its name.
    #[field(0, always)]
    pub name: String,
    /// The factor of its scores; 0 means 1.
    #[field(0)]
    pub weight: Option<i32>,
}

/// The arguments of a plugin.
#[api]
pub struct PluginConfig {
    /// The plugin's name.
    #[field(0, always)]
    pub name: String,
    /// An object of kind `{name}Args`.
    #[field(0)]
    pub args: RawJson,
}
