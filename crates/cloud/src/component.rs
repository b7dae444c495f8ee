//! cloud-controller-manager itself: flags, the choice of the cloud, and the frame around the controllers.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::ValueMap;
use component_base::flags::{Errors, Flag, FlagSet, GLOBAL, LOGS, METRICS, Options};
use component_base::serving::{BoxError, secure_serving_flags};
use component_base::{Component, Lifecycle, no_config_file};
use controller::process::{CLIENT, DELEGATION, GENERIC, Leading, ProcessOptions, leader_election_flags, run_process};
use controller::{ControllerSet, Environment, Selection, Stopped};

use crate::{ALL, FakeProvider, Provider};

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
        Flag::int32("concurrent-node-syncs", "1").help("How many nodes are initialized at a time."),
        Flag::duration("node-monitor-period", "5s").help("How often nodes that are not ready are asked for."),
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
    ],
    gates: &[],
    prepare: no_config_file,
    drain: DRAIN,
};

/// What the controllers get.
pub(crate) struct Settings {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) node_syncs: usize,
    pub(crate) node_monitor_period: Duration,
}

/// Runs the component until it is asked to end.
///
/// # Errors
/// When a flag is wrong, a controller cannot be built, or the leadership is lost.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let mut errors = Errors::new();
    let process = ProcessOptions::from_options(NAME, &options, lifecycle.rng(), &mut errors)?;
    let provider = errors.ok(provider(&options));
    let selection = errors.ok(Selection::parse(options.strings("controllers"), ALL));
    let syncs = options.int("concurrent-node-syncs");
    errors.check(syncs >= 1, "concurrent-node-syncs must be a positive number");
    errors.into_result()?;
    let (Some(provider), Some(selection)) = (provider, selection) else { return Ok(()) };
    tracing::info!(provider = provider.name(), "Using the cloud provider");
    let settings = Settings {
        provider,
        node_syncs: usize::try_from(syncs).unwrap_or(1),
        node_monitor_period: options.duration("node-monitor-period"),
    };
    let set = ControllerSet::new(ALL, &selection, lifecycle.gates());
    let checks = set.checks();
    let (min_resync, start_interval) =
        (options.duration("min-resync-period"), options.duration("controller-start-interval"));
    let mut shown = ValueMap::new();
    shown.insert("cloudcontrollermanager.config.k8s.io".into(), ValueMap::new().into());
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
    run_process(process, &lifecycle, checks, shown.into(), lead).await
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
