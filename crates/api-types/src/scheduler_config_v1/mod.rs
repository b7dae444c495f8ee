//! kubescheduler.config.k8s.io/v1: the scheduler's configuration file and the arguments of its plugins.
//!
//! These are file formats, not API objects: no metadata, no protobuf numbers.

mod args;
mod component;
mod configuration;
mod extender;

pub use args::{
    DefaultPreemptionArgs, DynamicResourcesArgs, InterPodAffinityArgs, NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs, NodeResourcesFitArgs, PodTopologySpreadArgs, RequestedToCapacityRatioParam,
    ResourceSpec, ScoringStrategy, UtilizationShapePoint, VolumeBindingArgs,
};
pub use component::{ClientConnectionConfiguration, LeaderElectionConfiguration};
pub use configuration::{KubeSchedulerConfiguration, KubeSchedulerProfile, Plugin, PluginConfig, PluginSet, Plugins};
pub use extender::{Extender, ExtenderManagedResource, ExtenderTLSConfig};

/// The group and version that the file names.
pub const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// Prefix of the `OpenAPI` names of this package.
pub(crate) const PACKAGE: &str = "io.k8s.kube-scheduler.config.v1";
