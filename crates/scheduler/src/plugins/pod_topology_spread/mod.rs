//! `PodTopologySpread`: spreads pods that are alike over zones, nodes or other domains (KEP-895).

mod constraint;
mod counts;
mod filtering;
mod hints;
#[cfg(test)]
mod random_clusters;
mod scoring;

use std::sync::Arc;

use api_types::apps_v1::{ReplicaSet, StatefulSet};
use api_types::core_v1::{ReplicationController, Service, TopologySpreadConstraint};

use self::constraint::Reading;
use crate::framework::{BuildCx, Plugin, PluginError};
use crate::listers::{Lister, Listers};
use crate::plugin_args::PluginArgs;

pub(super) const NAME: &str = "PodTopologySpread";

/// The plugin with its defaults.
struct PodTopologySpread {
    defaults: Vec<TopologySpreadConstraint>,
    /// Whether the defaults are the system's, which nodes need not have the labels for.
    system_defaults: bool,
    /// What tells which pods belong together; nothing where there are no defaults.
    groups: Option<Groups>,
    reading: Reading,
}

impl PodTopologySpread {
    /// One that knows only what pods say themselves.
    #[cfg(test)]
    fn without_defaults(gates: &component_base::Gates) -> Self {
        Self { defaults: Vec::new(), system_defaults: false, groups: None, reading: Reading::by(gates) }
    }
}

/// The objects that select pods.
struct Groups {
    services: Lister<Service>,
    replication_controllers: Lister<ReplicationController>,
    replica_sets: Lister<ReplicaSet>,
    stateful_sets: Lister<StatefulSet>,
}

impl Groups {
    fn of(listers: &Listers) -> Self {
        Self {
            services: listers.of(),
            replication_controllers: listers.of(),
            replica_sets: listers.of(),
            stateful_sets: listers.of(),
        }
    }
}

pub(super) fn build(cx: &BuildCx, args: &PluginArgs) -> Result<Plugin, PluginError> {
    let PluginArgs::PodTopologySpread(args) = args else { return Err(PluginError::NoArguments) };
    let system_defaults = args.defaulting_type != "List";
    let defaults = if system_defaults { system_constraints() } else { args.default_constraints.clone() };
    let groups = (!defaults.is_empty()).then(|| Groups::of(&cx.listers));
    let has_defaults = !defaults.is_empty();
    let reading = Reading::by(&cx.gates);
    let plugin = Arc::new(PodTopologySpread { defaults, system_defaults, groups, reading });
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone());
    let points = points.pre_score(plugin.clone()).score(plugin.clone()).wakes_on(hints::registrations(reading));
    if has_defaults {
        // They may apply to any pod, whose fellows each decision changes.
        return Ok(points);
    }
    Ok(points.signed_by(|pod| pod.pod.spec.topology_spread_constraints.is_empty().then(String::new)))
}

/// What applies where neither the pod nor the configuration says anything.
fn system_constraints() -> Vec<TopologySpreadConstraint> {
    [("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5)]
        .into_iter()
        .map(|(key, max_skew)| TopologySpreadConstraint {
            topology_key: key.into(),
            max_skew,
            when_unsatisfiable: constraint::SOFT.into(),
            ..TopologySpreadConstraint::default()
        })
        .collect()
}
