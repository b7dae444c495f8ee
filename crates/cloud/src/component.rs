//! cloud-controller-manager itself: flags, the choice of the cloud, and the frame around the controllers.

use std::sync::Arc;
use std::time::Duration;

use component_base::flags::{Errors, Flag, FlagSet, GLOBAL, LOGS, METRICS, Options};
use component_base::serving::{BoxError, secure_serving_flags};
use component_base::shared_gates::RELEASE_LEASE_ON_EXIT;
use component_base::{Component, Known, Lifecycle, Part, no_config_file};
use controller::process::{
    CLIENT, DELEGATION, GENERIC, GENERIC_CONFIG, Leading, ProcessOptions, Row, Source, config_shown,
    leader_election_flags, run_process,
};
use controller::{ControllerSet, Environment, Selection, Stopped};

use crate::{ALL, FakeProvider, Provider, webhooks};

const NAME: &str = "cloud-controller-manager";
const DRAIN: Duration = Duration::from_secs(5);
const SERVING: [Flag; 13] = secure_serving_flags("10258", "");
const LEADER: [Flag; 7] = leader_election_flags(NAME);

const OWN: FlagSet = FlagSet {
    title: "cloud",
    flags: &[
        Flag::string("cloud-config", "").help("The file that the cloud provider is configured with."),
        Flag::string("cloud-provider", "")
            .help("The cloud. Known: fake, whose instances are listed in --cloud-config."),
        Flag::int32("concurrent-node-status-updates", "0")
            .help("How many nodes' addresses are looked at at a time; 0 for as many as --concurrent-node-syncs."),
        Flag::int32("concurrent-node-syncs", "1").help("How many nodes are initialized at a time."),
        Flag::duration("node-monitor-period", "5s").help("How often nodes that are not ready are asked for."),
        Flag::duration("node-status-update-frequency", "5m0s").help("How often the addresses of nodes are looked at."),
    ],
};

/// Only of effect where the cloud looks at them; the fake one does not.
const WITHOUT_EFFECT: FlagSet = FlagSet {
    title: "without effect",
    flags: &[
        Flag::bool("allow-untagged-cloud", "false").deprecated("This flag has no effect."),
        Flag::string("cluster-name", "kubernetes")
            .help("The name of the cluster, for clouds that tell clusters apart."),
        Flag::string("external-cloud-volume-plugin", "").hidden(),
        Flag::duration("node-sync-period", "0s").deprecated("This flag has no effect."),
    ],
};

/// Of load balancers, routes and node addresses, which are not part of this build.
const UNSUPPORTED: FlagSet = FlagSet {
    title: "unsupported",
    flags: &[
        Flag::bool("allocate-node-cidrs", "false").hidden(),
        Flag::string("cidr-allocator-type", "RangeAllocator").hidden(),
        Flag::string("cluster-cidr", "").hidden(),
        Flag::int32("concurrent-service-syncs", "1").hidden(),
        Flag::bool("configure-cloud-routes", "true").hidden(),
        Flag::bool("contention-profiling", "false").hidden(),
        Flag::bool("enable-leader-migration", "false").hidden(),
        Flag::string("leader-migration-config", "").hidden(),
        Flag::duration("route-reconciliation-period", "10s").hidden(),
        Flag::bool("use-service-account-credentials", "false").hidden(),
    ],
};

/// The binary.
pub const COMPONENT: Component = Component {
    name: NAME,
    about: "The cloud controller manager runs the control loops that depend on the cloud a cluster lives in.",
    flags: &[
        GLOBAL,
        LOGS,
        METRICS,
        CLIENT,
        DELEGATION,
        FlagSet { title: "secure serving", flags: &SERVING },
        FlagSet { title: "leader election", flags: &LEADER },
        GENERIC,
        OWN,
        WITHOUT_EFFECT,
        webhooks::FLAGS,
        UNSUPPORTED,
    ],
    gates: Known::switching(&[
        &[webhooks::GATE, RELEASE_LEASE_ON_EXIT],
        controller::process::UID_GATES,
        component_base::zpages::GATES,
        client::features::GATES,
        component_base::logging::GATES,
        component_base::metrics::GATES,
    ])
    .of(Part::Cloud),
    prepare: no_config_file,
    drain: DRAIN,
};

/// What `/configz` shows.
const CONFIG: &[&[Row]] = &[GENERIC_CONFIG, OWN_CONFIG];
const OWN_CONFIG: &[Row] = &[
    ("NodeController/ConcurrentNodeSyncs", Source::Flag("concurrent-node-syncs")),
    ("NodeController/ConcurrentNodeStatusUpdates", Source::Flag("concurrent-node-status-updates")),
    ("NodeStatusUpdateFrequency", Source::Flag("node-status-update-frequency")),
    ("Webhook/Webhooks", Source::Flag("webhooks")),
];

/// What the controllers get.
pub(crate) struct Settings {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) node_syncs: usize,
    /// How many nodes' addresses are looked at at a time.
    pub(crate) status_updates: usize,
    /// How often.
    pub(crate) status_period: Duration,
    pub(crate) node_monitor_period: Duration,
}

/// Runs the component until it is asked to end.
///
/// # Errors
/// When a flag is wrong, a controller cannot be built, or the leadership is lost.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let mut errors = Errors::new();
    let process = ProcessOptions::from_options(NAME, &options, lifecycle.rng(), lifecycle.gates(), &mut errors)?;
    let provider = errors.ok(provider(&options));
    let selection = errors.ok(Selection::parse(options.strings("controllers"), ALL));
    let syncs = options.int("concurrent-node-syncs");
    errors.check(syncs >= 1, "concurrent-node-syncs must be a positive number");
    let updates = options.int("concurrent-node-status-updates");
    errors.check(updates >= 0, "concurrent-node-status-updates cannot be a negative number");
    for flag in UNSUPPORTED.flags {
        errors.check(!options.is_set(flag.name), format!("--{}: not supported by this build", flag.name));
    }
    webhooks::check(&options, lifecycle.gates().enabled(webhooks::GATE), &mut errors);
    errors.into_result()?;
    let (Some(provider), Some(selection)) = (provider, selection) else { return Ok(()) };
    tracing::info!(provider = provider.name(), "Using the cloud provider");
    let settings = Settings {
        provider,
        node_syncs: usize::try_from(syncs).unwrap_or(1),
        status_updates: usize::try_from(if updates == 0 { syncs } else { updates }).unwrap_or(1),
        status_period: options.duration("node-status-update-frequency"),
        node_monitor_period: options.duration("node-monitor-period"),
    };
    let set = ControllerSet::new(ALL, &selection, lifecycle.gates());
    let checks = set.checks();
    let (min_resync, start_interval) =
        (options.duration("min-resync-period"), options.duration("controller-start-interval"));
    let shown =
        config_shown(&options, "cloudcontrollermanager.config.k8s.io", "CloudControllerManagerConfiguration", CONFIG);
    let lead = |leading: Leading| async move {
        let environment = Environment {
            settings: Arc::new(settings),
            metrics: Some(leading.metrics),
            min_resync,
            start_interval,
            ..Environment::new(&leading.client)
        };
        match set.run(&environment, leading.stop).await? {
            Stopped::Cleanly => Ok(()),
            Stopped::TimedOut(_) => Err("controller shutdown timeout reached".into()),
        }
    };
    run_process(process.releasing_where_told(lifecycle.gates()), &lifecycle, checks, shown, lead).await
}

fn provider(options: &Options) -> Result<Arc<dyn Provider>, String> {
    match options.string("cloud-provider") {
        "" => Err("--cloud-provider cannot be empty".to_owned()),
        FakeProvider::NAME if options.string("cloud-config").is_empty() => {
            Err("could not init cloud provider \"fake\": --cloud-config names no file".to_owned())
        }
        FakeProvider::NAME => Ok(Arc::new(FakeProvider::new(options.string("cloud-config")))),
        other => Err(format!("unknown cloud provider {other:?}")),
    }
}

#[cfg(test)]
mod tests {

    use api_machinery::value::Value;

    use super::*;

    #[test]
    fn each_gate_can_be_switched_on() {
        assert_eq!((COMPONENT.gates.out_of_reach(), COMPONENT.gates.untold()), (vec![], vec![]));
    }

    #[test]
    fn no_gate_has_one_side_only() {
        assert_eq!(COMPONENT.gates.one_sided(), [""; 0]);
    }

    #[test]
    fn flags_are_upstreams() {
        let document = test_facts::facts("flags/cloud-controller-manager.json");
        let own: Vec<&Flag> = COMPONENT.flags.iter().flat_map(|set| set.flags).collect();
        for facts in document["flags"].as_array().unwrap() {
            let name = facts["flag"].as_str().unwrap();
            let flag = own.iter().find(|flag| flag.name == name).unwrap_or_else(|| panic!("--{name} is missing"));
            let expected = match &facts["default"] {
                Value::String(text) if text == "[]" => String::new(),
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
                Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
                other => other.to_string(),
            };
            assert_eq!(flag.default, expected, "--{name}");
        }
    }

    #[test]
    fn every_field_of_upstreams_configuration_is_shown() {
        let options = component_base::flags::parse(COMPONENT.flags, std::iter::empty::<String>()).unwrap();
        let shown = &config_shown(&options, "g", "K", CONFIG)["g"];
        let document = test_facts::facts("config/CloudControllerManagerConfiguration.json");
        for (place, (kind, pointer)) in [
            ("CloudControllerManagerConfiguration", ""),
            ("KubeCloudSharedConfiguration", "/KubeCloudShared"),
            ("CloudProviderConfiguration", "/KubeCloudShared/CloudProvider"),
            ("WebhookConfiguration", "/Webhook"),
        ]
        .into_iter()
        .enumerate()
        {
            let fields = document["types"][place]["fields"].as_array().unwrap();
            let names = fields.iter().filter(|field| field["inline"] != true).map(|field| &field["go"]);
            let expected: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
            let own = shown.pointer(pointer).unwrap().as_object().unwrap();
            let missing: Vec<_> = expected.iter().filter(|name| !own.contains_key(**name)).collect();
            assert_eq!(missing, [] as [&&str; 0], "{kind}");
        }
        assert_eq!(shown["NodeController"]["ConcurrentNodeSyncs"], 1);
        assert_eq!(shown["NodeStatusUpdateFrequency"], "5m0s");
    }
}
