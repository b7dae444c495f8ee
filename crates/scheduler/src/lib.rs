//! The scheduler: decides on which node each pod runs.
//!
//! [`Scheduler::schedule_one`] is the heart: one pod from the queue, a snapshot of the cluster, plugins that filter and
//! score, one node. It needs no client; watches feed it through `pod_added` and its like, and what it writes goes
//! through [`ClusterWriter`]. Pod groups are not here.

mod assume_cache;
mod cache;
mod component;
mod config;
mod cycle;
mod dispatcher;
mod extended_resources;
pub mod framework;
mod known_answers;
mod listers;
mod metrics;
mod node_info;
mod parallel;
mod plugin_args;
mod plugins;
mod pod_class;
mod pod_info;
mod pod_shape;
mod preemption;
mod queue;
mod queued_pod;
mod resources;
#[cfg(test)]
mod test_objects;
mod writer;

pub use cache::{Cache, CacheError, CacheSize, Snapshot, Topology};
pub use component::{COMPONENT, ClientWriter, Watches, assemble, run};
pub use config::{
    ConfigError, ProfileError, add_gated, build_profiles, decode, default_configuration, encode, validate,
};
pub use cycle::{BindingCycle, GroupWrite, ScheduleResult, Scheduler, SchedulerOptions, StatusWrite, Work};
pub use listers::{Lister, Listers, NotFound};
pub use metrics::SchedulerMetrics;
pub use node_info::{NodeInfo, NodeView};
pub use parallel::Parallelism;
pub use plugin_args::{ArgsError, PluginArgs};
pub use plugins::ALL;
pub use pod_info::{NominatedPods, PodInfo};
pub use queue::{Nominator, QueueError, QueueOptions, QueueSize, SchedulingQueue};
pub use queued_pod::{QueuedPod, SortKey};
pub use writer::{ClusterWriter, EventSink, NoEvents, NoObjects, ObjectWriter, PodEvent, Severity, WriteError};
