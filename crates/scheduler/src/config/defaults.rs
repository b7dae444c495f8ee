//! What a configuration leaves out.

use api_machinery::time::GoDuration;
use api_types::scheduler_config_v1::{
    KubeSchedulerConfiguration, KubeSchedulerProfile, LeaderElectionConfiguration, Plugin, PluginConfig, PluginSet,
    Plugins,
};

use component_base::Gates;

use super::ConfigError;
use crate::framework::Descriptor;
use crate::plugin_args::PluginArgs;
use crate::plugins;

/// The profile's name where there is one profile without one.
pub(crate) const SCHEDULER_NAME: &str = "default-scheduler";

/// Fills in every default.
pub(super) fn fill(configuration: &mut KubeSchedulerConfiguration) -> Result<(), ConfigError> {
    configuration.parallelism.get_or_insert(16);
    configuration.percentage_of_nodes_to_score.get_or_insert(0);
    configuration.pod_initial_backoff_seconds.get_or_insert(1);
    configuration.pod_max_backoff_seconds.get_or_insert(10);
    configuration.enable_profiling.get_or_insert(true);
    configuration.enable_contention_profiling.get_or_insert(true);
    fill_leader_election(&mut configuration.leader_election);
    let connection = &mut configuration.client_connection;
    if connection.content_type.is_empty() {
        connection.content_type = "application/vnd.kubernetes.protobuf".into();
    }
    if connection.qps == 0.0 {
        connection.qps = 50.0;
    }
    if connection.burst == 0 {
        connection.burst = 100;
    }
    if configuration.profiles.is_empty() {
        configuration.profiles.push(KubeSchedulerProfile::default());
    }
    if let [only] = configuration.profiles.as_mut_slice()
        && only.scheduler_name.is_none()
    {
        only.scheduler_name = Some(SCHEDULER_NAME.into());
    }
    for (place, profile) in configuration.profiles.iter_mut().enumerate() {
        fill_profile(profile, place)?;
    }
    Ok(())
}

fn fill_leader_election(election: &mut LeaderElectionConfiguration) {
    election.leader_elect.get_or_insert(true);
    for (duration, seconds) in
        [(&mut election.lease_duration, 15), (&mut election.renew_deadline, 10), (&mut election.retry_period, 2)]
    {
        if duration.is_zero() {
            *duration = GoDuration::from_secs(seconds);
        }
    }
    for (text, default) in [
        (&mut election.resource_lock, "leases"),
        (&mut election.resource_name, "kube-scheduler"),
        (&mut election.resource_namespace, "kube-system"),
    ] {
        if text.is_empty() {
            *text = default.into();
        }
    }
}

fn fill_profile(profile: &mut KubeSchedulerProfile, number: usize) -> Result<(), ConfigError> {
    let plugins = profile.plugins.get_or_insert_with(Plugins::default);
    plugins.multi_point = merge(&plugins.multi_point);
    for (place, config) in profile.plugin_config.iter_mut().enumerate() {
        let args = PluginArgs::decode(&config.name, &config.args).map_err(|reason| ConfigError::Args {
            profile: number,
            place,
            reason,
        })?;
        if !matches!(args, PluginArgs::None) {
            config.args = args.encode(&config.name);
        }
    }
    let mut missing: Vec<&str> = plugins
        .multi_point
        .enabled
        .iter()
        .map(|plugin| plugin.name.as_str())
        .filter(|name| !profile.plugin_config.iter().any(|config| config.name == *name))
        .filter(|name| !matches!(PluginArgs::empty(name), PluginArgs::None))
        .collect();
    missing.sort_unstable();
    missing.dedup();
    for name in missing {
        let args = PluginArgs::decode(name, &Default::default()).map_err(|reason| ConfigError::Args {
            profile: number,
            place: profile.plugin_config.len(),
            reason,
        })?;
        profile.plugin_config.push(PluginConfig { name: name.to_owned(), args: args.encode(name) });
    }
    Ok(())
}

/// Whether a plugin runs by default where nobody says which features are on.
fn is_default(descriptor: &Descriptor) -> bool {
    descriptor.is_default && descriptor.feature.is_none_or(|feature| Gates::default().enabled(feature))
}

/// Adds the plugins that run by default where their features are on, and takes out those whose features are off: they would
/// do nothing.
pub fn add_gated(configuration: &mut KubeSchedulerConfiguration, gates: &Gates) {
    for descriptor in plugins::ALL {
        let Some(feature) = descriptor.feature else { continue };
        for profile in &mut configuration.profiles {
            if !gates.enabled(feature) {
                let sets = profile.plugins.iter_mut().filter(|_| is_default(descriptor));
                sets.for_each(|all| all.multi_point.enabled.retain(|plugin| plugin.name != descriptor.name));
                continue;
            }
            let set = &mut profile.plugins.get_or_insert_with(Plugins::default).multi_point;
            let is_off = set.disabled.iter().any(|plugin| plugin.name == "*" || plugin.name == descriptor.name);
            let is_there = set.enabled.iter().any(|plugin| plugin.name == descriptor.name);
            if !is_off && !is_there {
                set.enabled.push(Plugin { name: descriptor.name.into(), weight: None });
            }
        }
    }
}

/// The defaults without what is disabled, with the user's entries in their places, and then what else is enabled.
fn merge(custom: &PluginSet) -> PluginSet {
    let disabled = |name: &str| custom.disabled.iter().any(|plugin| plugin.name == name);
    let mut replaced = Vec::new();
    let mut enabled = Vec::new();
    if !disabled("*") {
        for descriptor in plugins::ALL.iter().filter(|own| is_default(own) && !disabled(own.name)) {
            let own = custom.enabled.iter().position(|plugin| plugin.name == descriptor.name);
            enabled.push(match own.and_then(|place| custom.enabled.get(place)) {
                Some(plugin) => plugin.clone(),
                None => Plugin {
                    name: descriptor.name.into(),
                    weight: (descriptor.weight != 0).then_some(descriptor.weight),
                },
            });
            replaced.extend(own);
        }
    }
    let rest = custom.enabled.iter().enumerate().filter(|(place, _)| !replaced.contains(place));
    enabled.extend(rest.map(|(_, plugin)| plugin.clone()));
    PluginSet { enabled, disabled: custom.disabled.clone() }
}
