//! What plugins are built from, and how a list of them is written.

use std::sync::Arc;

use base::{SharedClock, SharedRng, TaskGroup};
use component_base::http_proxy::ProxyEnvironment;
use component_base::{Feature, Gates};

use super::pod_groups::PodGroups;
use super::points::Plugin;
use super::preemption_gate::PreemptionGate;
use super::waiting_pods::WaitingPods;
use crate::listers::Listers;
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::plugin_args::PluginArgs;
use crate::writer::{ClusterWriter, EventSink, ObjectWriter};

/// What plugins are built with, and what the scheduler that runs them shares with them.
#[derive(Clone)]
pub struct BuildCx {
    /// The objects of other kinds than nodes: a plugin asks for those that it reads.
    pub listers: Arc<Listers>,
    /// What features are on.
    pub gates: Gates,
    /// Where bindings go.
    pub writer: Arc<dyn ClusterWriter>,
    /// Where changes of other objects go.
    pub objects: Arc<dyn ObjectWriter>,
    /// Where events go.
    pub events: Arc<dyn EventSink>,
    /// Preemptions under way.
    pub gate: Arc<PreemptionGate>,
    /// Pods that wait for a `Permit` plugin.
    pub waiting: Arc<WaitingPods>,
    /// The groups of pods that are scheduled together.
    pub groups: Arc<PodGroups>,
    /// Metrics.
    pub metrics: Arc<SchedulerMetrics>,
    /// Time.
    pub clock: SharedClock,
    /// Randomness.
    pub rng: SharedRng,
    /// Where connections of plugins live.
    pub tasks: TaskGroup,
    /// The proxies that they go through.
    pub proxies: Arc<ProxyEnvironment>,
    /// The threads that plugins may use.
    pub parallelism: Parallelism,
}

/// Why a plugin cannot be built, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// It takes arguments, and got those of another.
    #[error("arguments are missing")]
    NoArguments,
    /// Its arguments name no strategy.
    #[error("ScoringStrategy field is required")]
    NoScoringStrategy,
    /// Its arguments name a strategy that is not there.
    #[error("scoring strategy {0} is not supported")]
    ScoringStrategy(String),
}

/// How a plugin is built from its arguments.
type Build = fn(&BuildCx, &PluginArgs) -> Result<Plugin, PluginError>;

/// A plugin that a configuration may name.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Its name.
    pub name: &'static str,
    /// The factor of its scores by default; 0 means 1, or that it gives none.
    pub weight: i32,
    /// How it is built.
    pub build: Build,
    /// Whether it runs where a configuration does not name it.
    pub is_default: bool,
    /// The feature without which it does not run by default.
    pub feature: Option<Feature>,
}

impl Descriptor {
    /// A plugin by its name.
    #[must_use]
    pub const fn new(name: &'static str, weight: i32, build: Build) -> Self {
        Self { name, weight, build, is_default: true, feature: None }
    }

    /// The same, which runs by default only where a feature is on.
    #[must_use]
    pub const fn when_on(self, feature: Feature) -> Self {
        Self { feature: Some(feature), ..self }
    }

    /// The same, which only runs where a configuration names it.
    #[must_use]
    pub const fn when_named(self) -> Self {
        Self { is_default: false, ..self }
    }
}
