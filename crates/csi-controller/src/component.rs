//! The process: flags in, the driver asked who it is, controllers run until it is asked to end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::value::ValueMap;
use client::{ContentType, RateLimit};
use component_base::flags::{Errors, FEATURE_GATES, Flag, FlagSet, GLOBAL, LOGS, METRICS, Options, VERSIONS};
use component_base::serving::{BoxError, secure_serving_flags};
use component_base::{Component, Known, Lifecycle, no_config_file};
use controller::process::{Leading, ProcessOptions, TOLERANT_DELEGATION, leader_election_flags, run_process};
use controller::{ControllerSet, Descriptor, Environment, Selection, Stopped};
use node_api::csi::CsiController;

use crate::driver::Driver;
use crate::metrics::Calls;
use crate::settings::{Place, Settings};
use crate::{attach, capacity, provision, reclaim, resize, snapshot};

const NAME: &str = "csi-controller";
const DRAIN: Duration = Duration::from_secs(5);
const SERVING: [Flag; 13] = secure_serving_flags("9809", "");
const LEADER: [Flag; 7] = leader_election_flags("");

/// What is done with a driver.
pub const OF_DRIVER: &[Descriptor] = &[
    provision::DESCRIPTOR,
    reclaim::DESCRIPTOR,
    capacity::DESCRIPTOR,
    attach::DESCRIPTOR,
    resize::DESCRIPTOR,
    snapshot::content::DESCRIPTOR,
];
/// What is done without.
pub const COMMON: &[Descriptor] = &[snapshot::common::DESCRIPTOR];

/// As the managers have it, but for the content type: what definitions bring is not served as protobuf.
const CLIENT: FlagSet = FlagSet {
    title: "client connection",
    flags: &[
        Flag::int32("kube-api-burst", "100").help("Burst to use while talking with kubernetes apiserver."),
        Flag::string("kube-api-content-type", "application/json").help("Content type of requests sent to apiserver."),
        Flag::float("kube-api-qps", "50").help("QPS to use while talking with kubernetes apiserver."),
        Flag::string("kubeconfig", "").help(
            "Path to the kubeconfig file with the API server's location and credentials; by default a pod's own.",
        ),
        Flag::string("master", "").help("The address of the API server; overrides the kubeconfig's."),
        Flag::bool("profiling", "false").help("Serve /debug/flags/v, which changes the log's verbosity."),
    ],
};

const OWN: FlagSet = FlagSet {
    title: "csi controller",
    flags: &[
        Flag::string("csi-address", "/csi/csi.sock").help(
            "The path of the driver's socket. Where empty, the process is the snapshot controller that all drivers share.",
        ),
        Flag::string("capacity-namespace", "")
            .help("Where CSIStorageCapacity objects are written; none are where it is empty."),
        Flag::duration("capacity-poll-interval", "1m0s").help("How often the driver is asked for its room."),
        Flag::string("default-fstype", "").help("The filesystem of volumes whose class names none."),
        Flag::bool("extra-create-metadata", "false")
            .help("Tell the driver the names of claims, volumes and snapshots, as parameters."),
        Flag::bool("immediate-topology", "true")
            .help("Tell the driver of the cluster's topology where no node was chosen for a claim."),
        Flag::bool("node-deployment", "false")
            .help("Work for the volumes of one node, whose name is --node-name, and without an election."),
        Flag::string("node-name", "").help("The name of the node that the process runs on."),
        Flag::duration("retry-interval-start", "1s").help("How long to wait after a first failure; it doubles each time."),
        Flag::duration("retry-interval-max", "5m0s").help("The longest wait after a failure."),
        Flag::bool("strict-topology", "false").help("Have volumes made in the segment of the chosen node, and no other."),
        Flag::duration("timeout", "15s").help("How long a call of the driver may take."),
        Flag::int32("worker-threads", "10").help("How many objects of a kind are worked on at a time."),
    ],
};

/// The binary.
pub const COMPONENT: Component = Component {
    name: NAME,
    about: "The CSI controller asks a driver of volumes for what the cluster wants of it: volumes made, attached, grown, \
            copied and removed, and snapshots taken.",
    flags: &[
        GLOBAL,
        LOGS,
        METRICS,
        CLIENT,
        TOLERANT_DELEGATION,
        FlagSet { title: "secure serving", flags: &SERVING },
        FlagSet { title: "leader election", flags: &LEADER },
        VERSIONS,
        FlagSet { title: "features", flags: &[FEATURE_GATES] },
        OWN,
    ],
    gates: Known::KUBERNETES,
    prepare: no_config_file,
    drain: DRAIN,
};

/// What the flags say.
struct Config {
    process: ProcessOptions,
    /// The path of the driver's socket; empty for none.
    socket: String,
    timeout: Duration,
    settings: Settings,
}

fn config(options: &Options, lifecycle: &Lifecycle) -> Result<Config, BoxError> {
    let mut errors = Errors::new();
    let mut process = ProcessOptions::from_options(NAME, options, lifecycle.rng(), lifecycle.gates(), &mut errors)?;
    errors.check(
        process.client.content == ContentType::Json,
        "--kube-api-content-type: snapshots are custom resources, which have application/json only",
    );
    let settings = settings(options, &mut errors);
    let timeout = options.duration("timeout");
    errors.check(!timeout.is_zero(), "--timeout must be more than nothing");
    errors.into_result()?;
    if settings.place != Place::Cluster {
        process.leader = None;
    }
    let address = options.string("csi-address");
    let socket = address.strip_prefix("unix://").unwrap_or(address).to_owned();
    Ok(Config { process, socket, timeout, settings })
}

fn settings(options: &Options, errors: &mut Errors) -> Settings {
    let node = options.string("node-name");
    let is_on_node = options.bool("node-deployment");
    errors.check(!is_on_node || !node.is_empty(), "--node-deployment needs --node-name");
    let place = if is_on_node { Place::Node(node.to_owned()) } else { Place::Cluster };
    let (base, longest) = (options.duration("retry-interval-start"), options.duration("retry-interval-max"));
    errors.check(
        !base.is_zero() && base <= longest,
        "--retry-interval-start must be positive, and at most --retry-interval-max",
    );
    let workers = usize::try_from(options.int("worker-threads")).unwrap_or_default();
    errors.check(workers > 0, "--worker-threads must be positive");
    let capacity_interval = options.duration("capacity-poll-interval");
    errors.check(!capacity_interval.is_zero(), "--capacity-poll-interval must be positive");
    Settings {
        default_fs_type: options.string("default-fstype").to_owned(),
        tells_names: options.bool("extra-create-metadata"),
        strict_topology: options.bool("strict-topology"),
        immediate_topology: options.bool("immediate-topology"),
        capacity_namespace: options.string("capacity-namespace").to_owned(),
        capacity_interval,
        retry: RateLimit { base, longest, overall: None },
        workers,
        ..Settings::new(None, place)
    }
}

/// Runs the process until it is asked to end.
///
/// # Errors
/// When a flag is wrong, a controller cannot be built, or the leadership is lost.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let Config { mut process, socket, timeout, settings } = config(&options, &lifecycle)?;
    if let Some(leader) = process.leader.as_mut().filter(|leader| leader.name.is_empty()) {
        leader.name = default_lease(&socket);
    }
    let gates = lifecycle.gates().clone();
    let lead = move |leading: Leading| async move {
        let (mut settings, stop) = (settings, leading.stop.clone());
        let known = if socket.is_empty() { COMMON } else { OF_DRIVER };
        if !socket.is_empty() {
            let calls = CsiController::new(Path::new(&socket), timeout, Some(Arc::new(Calls::new(&leading.metrics))));
            tokio::select! {
                driver = Driver::discover(calls) => settings.driver = Some(driver),
                () = stop.cancelled() => return Ok(()),
            }
        }
        let set = ControllerSet::new(known, &Selection::all(), &gates);
        let environment = Environment {
            settings: Arc::new(settings),
            metrics: Some(Arc::clone(&leading.metrics)),
            ..Environment::new(&leading.client)
        };
        match set.run(&environment, stop).await? {
            Stopped::Cleanly => Ok(()),
            Stopped::TimedOut(_) => Err("controller shutdown timeout reached".into()),
        }
    };
    run_process(process, &lifecycle, Vec::new(), ValueMap::new().into(), lead).await
}

/// The lease of those who could work for the same driver: by the directory of its socket, which has its name as a rule.
fn default_lease(socket: &str) -> String {
    if socket.is_empty() {
        return "snapshot-controller-leader".to_owned();
    }
    let directory = Path::new(socket).parent().and_then(Path::file_name).and_then(|name| name.to_str());
    format!("{NAME}-{}", directory.unwrap_or("driver").to_lowercase())
}

#[cfg(test)]
mod tests {
    use component_base::flags::{self, parse};

    use super::*;

    #[test]
    fn the_table_of_flags_is_sound() {
        assert_eq!(flags::check_table(COMPONENT.flags), Vec::<String>::new());
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = ["--node-deployment", "--node-name=n"].map(str::to_owned);
        let mut errors = Errors::new();
        let read = settings(&parse(COMPONENT.flags, good).unwrap(), &mut errors);
        errors.into_result().unwrap();
        assert_eq!(read.place, Place::Node("n".into()));
        for (argument, part) in [
            ("--node-deployment", "--node-name"),
            ("--retry-interval-start=10m", "--retry-interval-start"),
            ("--worker-threads=0", "--worker-threads"),
            ("--capacity-poll-interval=0s", "--capacity-poll-interval"),
        ] {
            let mut errors = Errors::new();
            settings(&parse(COMPONENT.flags, [argument.to_owned()]).unwrap(), &mut errors);
            let error = errors.into_result().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn who_works_for_another_driver_has_another_lease() {
        assert_eq!(default_lease(""), "snapshot-controller-leader");
        assert_eq!(default_lease("/var/lib/kubelet/plugins/csi-local/csi.sock"), "csi-controller-csi-local");
    }
}
