//! The components beside the API server: how each is started, over which client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use client::{Client, LeaderConfig, LeaderElector, RateLimit};
use component_base::Gates;
use component_base::metrics::Metrics;
use component_base::serving::BoxError;
use controller::{ClientFor, ControllerSet, Descriptor, Environment, Selection};
use csi_controller::{Driver, Place, Settings};
use node_api::csi::CsiController;
use scheduler::{SchedulerMetrics, Watches};

/// How long a pod may wait in the scheduler for an event before it is tried again, as upstream. A simulation fails when a
/// pod was only bound thanks to it.
const MAX_IN_UNSCHEDULABLE: Duration = Duration::from_secs(300);
/// What is published as the root CA: nobody verifies anything by it, as there are no connections.
const ROOT_CA: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

/// How often the controllers of volumes try again, as `--retry-interval-max=1m` has them do: a copy of a copy waits for each
/// before it.
const RETRY_VOLUMES: RateLimit =
    RateLimit { base: Duration::from_secs(1), longest: Duration::from_secs(60), overall: None };

/// Where the leases of leaders are.
const LEASES: &str = "kube-system";

/// What can be stopped and started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// An API server, by its number from 0. What it has stored stays.
    ApiServer(u8),
    /// A controller manager, by its number from 0.
    Controllers(u8),
    /// A scheduler, by its number from 0.
    Scheduler(u8),
    /// A hollow node, by its number from 0.
    Node(u8),
    /// What asks a driver of volumes for what the cluster wants of it.
    CsiController,
    /// What is done about snapshots whichever driver takes them.
    SnapshotController,
}

impl fmt::Display for Part {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiServer(number) => write!(out, "api-server-{number}"),
            Self::Controllers(number) => write!(out, "controllers-{number}"),
            Self::Scheduler(number) => write!(out, "scheduler-{number}"),
            Self::Node(number) => write!(out, "node-{number}"),
            Self::CsiController => out.write_str("csi-controller"),
            Self::SnapshotController => out.write_str("snapshot-controller"),
        }
    }
}

/// What starts the work of a part.
type Start = Box<dyn FnOnce(&Client) -> Result<(), BoxError> + Send>;

/// Runs the work of a part while it leads; where the lease is lost, all tasks of the part end, as a process does.
pub(crate) fn start_elected(client: &Client, name: &str, identity: &str, start: Start) -> Result<(), BoxError> {
    let config = LeaderConfig::new(LEASES, name, identity, client.rng());
    let (elector, own) = (LeaderElector::new(client, config, None)?, client.clone());
    client.tasks().spawn_cancellable("elector", async move {
        let lead = |_| async {
            if let Err(error) = start(&own) {
                tracing::error!(%error, "The work of a leader did not start");
            }
            std::future::pending::<()>().await;
        };
        let end = elector.run(own.tasks().token(), lead).await;
        tracing::info!(?end, "Led");
        own.tasks().cancel();
    });
    Ok(())
}

/// Runs the controllers until the client's tasks are cancelled, which ends them wherever they are.
pub(crate) fn start_controllers(process: &Client, client_for: ClientFor, gates: &Gates) -> Result<(), BoxError> {
    let selection = Selection::parse(&["*".to_owned()], controllers::ALL)?;
    let set = ControllerSet::new(controllers::ALL, &selection, gates);
    let settings = controllers::Settings { root_ca: ROOT_CA.to_owned(), ..controllers::Settings::default() };
    let environment = Environment { client_for, gates: gates.clone(), ..controllers::environment(process, settings) };
    let stop = process.tasks().token();
    process.tasks().spawn_cancellable("controllers", async move {
        if let Err(error) = set.run(&environment, stop).await {
            tracing::error!(%error, "The controllers did not start");
        }
    });
    Ok(())
}

/// Runs the scheduler until the client's tasks are cancelled.
pub(crate) fn start_scheduler(client: &Client, metrics: &Metrics, gates: &Gates) -> Result<(), BoxError> {
    let watches = Arc::new(Watches::new(client));
    let metrics = Arc::new(SchedulerMetrics::new(metrics));
    let mut configuration = scheduler::default_configuration();
    scheduler::add_gated(&mut configuration, gates);
    let scheduler = scheduler::assemble(&configuration, MAX_IN_UNSCHEDULABLE, gates, client, &watches, metrics)?;
    watches.feed(&scheduler);
    watches.start();
    let tasks = client.tasks().clone();
    client.tasks().spawn_cancellable("scheduler", async move {
        watches.wait_synced().await;
        let stop = tasks.token();
        scheduler.run(tasks, stop).await;
    });
    Ok(())
}

/// Runs what asks a driver for volumes until the client's tasks are cancelled.
pub(crate) fn start_csi_controller(process: &Client, driver: CsiController) {
    let client = process.clone();
    process.tasks().spawn_cancellable("csi-controller", async move {
        let driver = Driver::discover(driver).await;
        run_for_volumes(&client, csi_controller::OF_DRIVER, Some(driver)).await;
    });
}

/// Runs what all drivers share until the client's tasks are cancelled.
pub(crate) fn start_snapshot_controller(process: &Client) {
    let client = process.clone();
    process.tasks().spawn_cancellable("snapshot-controller", async move {
        run_for_volumes(&client, csi_controller::COMMON, None).await;
    });
}

async fn run_for_volumes(client: &Client, known: &'static [Descriptor], driver: Option<Driver>) {
    let set = ControllerSet::new(known, &Selection::all(), &Gates::default());
    let settings = Settings { retry: RETRY_VOLUMES, ..Settings::new(driver, Place::Cluster) };
    let environment = Environment { settings: Arc::new(settings), ..Environment::new(client) };
    if let Err(error) = set.run(&environment, client.tasks().token()).await {
        tracing::error!(%error, "The controllers of volumes did not start");
    }
}
