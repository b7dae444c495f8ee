//! `PodTopologySpread`: spreads pods that are alike over zones, nodes or other domains (KEP-895).

mod constraint;
mod counts;
mod filtering;
mod hints;
#[cfg(test)]
mod random_clusters;
mod scoring;

use std::sync::Arc;

use api_types::core_v1::TopologySpreadConstraint;

use super::BuildCx;
use crate::config::PluginArgs;
use crate::framework::Plugin;

pub(super) const NAME: &str = "PodTopologySpread";

/// The plugin with its defaults.
struct PodTopologySpread {
    defaults: Vec<TopologySpreadConstraint>,
    /// Whether the defaults are the system's, which nodes need not have the labels for.
    system_defaults: bool,
}

pub(super) fn build(_: &BuildCx, args: &PluginArgs) -> Result<Plugin, String> {
    let PluginArgs::PodTopologySpread(args) = args else { return Err("arguments are missing".into()) };
    let system_defaults = args.defaulting_type != "List";
    let defaults = if system_defaults { system_constraints() } else { args.default_constraints.clone() };
    let plugin = Arc::new(PodTopologySpread { defaults, system_defaults });
    let points = Plugin::new(NAME).pre_filter(plugin.clone()).filter(plugin.clone());
    Ok(points.pre_score(plugin.clone()).score(plugin.clone()).wakes_on(hints::registrations(&plugin)))
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
