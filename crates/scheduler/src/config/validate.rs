//! The rules of a configuration.

use api_machinery::field_path::{ErrorList, Path};
use api_machinery::names;
use api_types::scheduler_config_v1::{
    API_VERSION, ClientConnectionConfiguration, Extender, KubeSchedulerConfiguration, KubeSchedulerProfile,
    LeaderElectionConfiguration,
};
use component_base::Gates;

use crate::plugin_args::PluginArgs;
use crate::resources::is_extended;

/// Plugins that upstream had once.
const REMOVED: &[&str] = &["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// Everything that is wrong.
pub(super) fn check(configuration: &KubeSchedulerConfiguration, gates: &Gates) -> ErrorList {
    let mut errors = ErrorList::new();
    if configuration.leader_election.leader_elect == Some(true) {
        check_leader_election(&configuration.leader_election, &mut errors);
    }
    if configuration.client_connection.burst < 0 {
        let path = Path::new("clientConnection").child("burst");
        errors.push(path.invalid(i64::from(configuration.client_connection.burst), "must be non-negative"));
    }
    check_content_types(&configuration.client_connection, &mut errors);
    let parallelism = configuration.parallelism.unwrap_or(16);
    if parallelism <= 0 {
        let detail = "should be an integer value greater than zero";
        errors.push(Path::new("parallelism").invalid(i64::from(parallelism), detail));
    }
    check_profiles(configuration, gates, &mut errors);
    let percentage = configuration.percentage_of_nodes_to_score;
    check_percentage(percentage, &Path::new("percentageOfNodesToScore"), &mut errors);
    let initial = configuration.pod_initial_backoff_seconds.unwrap_or(1);
    let most = configuration.pod_max_backoff_seconds.unwrap_or(10);
    if initial <= 0 {
        errors.push(Path::new("podInitialBackoffSeconds").invalid(initial, "must be greater than 0"));
    }
    if most < initial {
        let detail = "must be greater than or equal to PodInitialBackoffSeconds";
        errors.push(Path::new("podMaxBackoffSeconds").invalid(most, detail));
    }
    check_extenders(&configuration.extenders, &mut errors);
    errors
}

/// Answers come in the encoding that requests are sent in, or as JSON. What cannot be obeyed is refused.
fn check_content_types(connection: &ClientConnectionConfiguration, errors: &mut ErrorList) {
    const KNOWN: [&str; 2] = ["application/vnd.kubernetes.protobuf", "application/json"];
    let path = Path::new("clientConnection");
    let content = connection.content_type.as_str();
    if !KNOWN.contains(&content) {
        errors.push(path.child("contentType").invalid(content, "unsupported content type"));
    }
    let accept = connection.accept_content_types.as_str();
    let mut accepted = accept.split(',').map(str::trim);
    let obeyed = accepted.clone().all(|one| KNOWN.contains(&one)) && accepted.any(|one| one == content);
    if !accept.is_empty() && !obeyed {
        let detail = "answers are accepted as the content type and as JSON only";
        errors.push(path.child("acceptContentTypes").invalid(accept, detail));
    }
}

fn check_leader_election(election: &LeaderElectionConfiguration, errors: &mut ErrorList) {
    let path = Path::new("leaderElection");
    let durations = [
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ];
    for (name, duration) in durations {
        if duration.nanos() <= 0 {
            errors.push(path.child(name).invalid(duration.to_string(), "must be greater than zero"));
        }
    }
    if election.lease_duration.nanos() <= election.renew_deadline.nanos() {
        let detail = "must be greater than `RenewDeadline`";
        errors.push(path.child("leaseDuration").invalid(election.lease_duration.to_string(), detail));
    }
    if election.resource_lock != "leases" {
        let detail = "resourceLock value must be \"leases\"";
        errors.push(path.child("resourceLock").invalid(election.resource_lock.as_str(), detail));
    }
    let texts = [
        ("resourceLock", &election.resource_lock, "resourceLock is required"),
        ("resourceNamespace", &election.resource_namespace, "resourceNamespace is required"),
        ("resourceName", &election.resource_name, "resourceName is required"),
    ];
    for (name, text, detail) in texts {
        if text.is_empty() {
            errors.push(path.child(name).required(detail));
        }
    }
}

fn check_extenders(extenders: &[Extender], errors: &mut ErrorList) {
    let list = Path::new("extenders");
    let mut managed: Vec<&str> = Vec::new();
    for (place, extender) in extenders.iter().enumerate() {
        let path = list.index(place);
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            errors.push(path.child("weight").invalid(extender.weight, "must have a positive weight applied to it"));
        }
        for (place, resource) in extender.managed_resources.iter().enumerate() {
            let (path, name) = (path.child("managedResources").index(place), resource.name.as_str());
            for detail in names::qualified_name(name) {
                errors.push(path.child("name").invalid(name, detail));
            }
            if !is_extended(name) {
                errors.push(path.child("name").invalid(name, "is an invalid extended resource name"));
            }
            if managed.contains(&name) {
                errors.push(path.child("name").invalid(name, "duplicate extender managed resource name"));
            }
            managed.push(name);
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        let value = format!("found {binders} extenders implementing bind");
        errors.push(list.invalid(value.as_str(), "only one extender can implement bind"));
    }
}

fn check_percentage(percentage: Option<i32>, path: &Path, errors: &mut ErrorList) {
    if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
        errors.push(path.invalid(i64::from(percentage), "not in valid range [0-100]"));
    }
}

fn check_profiles(configuration: &KubeSchedulerConfiguration, gates: &Gates, errors: &mut ErrorList) {
    let list = Path::new("profiles");
    if configuration.profiles.is_empty() {
        errors.push(list.required(""));
    }
    for (place, profile) in configuration.profiles.iter().enumerate() {
        let path = list.index(place);
        let name = profile.scheduler_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            errors.push(path.child("schedulerName").required(""));
        } else if configuration.profiles.iter().take(place).any(|other| other.scheduler_name.as_deref() == Some(name)) {
            errors.push(path.child("schedulerName").duplicate(name));
        }
        check_percentage(profile.percentage_of_nodes_to_score, &path.child("percentageOfNodesToScore"), errors);
        check_plugins(profile, &path, errors);
        check_args(profile, gates, &path, errors);
    }
    check_queue_sort(&configuration.profiles, &list, errors);
}

fn removed() -> String {
    format!("was invalid in version {API_VERSION:?} (KubeSchedulerConfiguration is version {API_VERSION:?})")
}

fn check_plugins(profile: &KubeSchedulerProfile, path: &Path, errors: &mut ErrorList) {
    let Some(plugins) = &profile.plugins else { return };
    let points = [
        ("preEnqueue", &plugins.pre_enqueue),
        ("queueSort", &plugins.queue_sort),
        ("preFilter", &plugins.pre_filter),
        ("filter", &plugins.filter),
        ("postFilter", &plugins.post_filter),
        ("preScore", &plugins.pre_score),
        ("score", &plugins.score),
        ("reserve", &plugins.reserve),
        ("permit", &plugins.permit),
        ("preBind", &plugins.pre_bind),
        ("bind", &plugins.bind),
        ("postBind", &plugins.post_bind),
    ];
    for (point, set) in points {
        for (place, plugin) in set.enabled.iter().enumerate() {
            if REMOVED.contains(&plugin.name.as_str()) {
                let path = path.child("plugins").child(point).child("enabled").index(place);
                errors.push(path.invalid(plugin.name.as_str(), removed()));
            }
        }
    }
}

fn check_args(profile: &KubeSchedulerProfile, gates: &Gates, path: &Path, errors: &mut ErrorList) {
    let list = path.child("pluginConfig");
    for (place, config) in profile.plugin_config.iter().enumerate() {
        let path = list.index(place);
        if profile.plugin_config.iter().take(place).any(|other| other.name == config.name) {
            errors.push(path.duplicate(config.name.as_str()));
        }
        if REMOVED.contains(&config.name.as_str()) {
            errors.push(path.invalid(config.name.as_str(), removed()));
            continue;
        }
        match PluginArgs::decode(&config.name, &config.args) {
            // Upstream looks these up under another name and so checks them only when the plugin is built.
            Ok(PluginArgs::NodeResourcesFit(_)) => {}
            Ok(args) => args.check(gates, &path.child("args"), errors),
            Err(_) => errors.push(path.child("args").invalid(config.args.as_str(), "has to match plugin args")),
        }
    }
}

/// All profiles share one queue.
fn check_queue_sort(profiles: &[KubeSchedulerProfile], list: &Path, errors: &mut ErrorList) {
    let names = |profile: &KubeSchedulerProfile| -> Vec<String> {
        let enabled = profile.plugins.as_ref().map(|plugins| plugins.queue_sort.enabled.clone()).unwrap_or_default();
        enabled.into_iter().map(|plugin| plugin.name).collect()
    };
    let Some(first) = profiles.first().map(names) else { return };
    if first.len() > 1 {
        let path = list.index(0).child("plugins").child("queueSort").child("Enabled");
        let detail = "only one queue sort plugin can be enabled";
        errors.push(path.invalid(format!("{first:?}").as_str(), detail));
    }
    for (place, profile) in profiles.iter().enumerate().skip(1) {
        let own = names(profile);
        if own != first {
            let path = list.index(place).child("plugins").child("queueSort");
            errors.push(path.invalid(format!("{own:?}").as_str(), "must be the same for all profiles"));
        }
    }
}
