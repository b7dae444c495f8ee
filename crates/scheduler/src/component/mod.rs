//! kube-scheduler itself: flags, configuration file, watches, leader election, endpoints.

#[cfg(test)]
mod claims_tests;
mod client_writer;
#[cfg(test)]
mod end_tests;
mod flags;
#[cfg(test)]
mod obeyed_tests;
#[cfg(test)]
mod own_plugin_tests;
mod resource_metrics;
mod settings;
#[cfg(test)]
mod tests;
mod watches;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::value::{Value, ValueMap};
use api_types::scheduler_config_v1::KubeSchedulerConfiguration;
use base::TaskGroup;
use client::Client;
use component_base::flags::Options;
use component_base::health::Check;
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::{BoxError, text};
use component_base::shared_gates::COORDINATED_ELECTION;
use component_base::{Component, Gates, Known, Lifecycle, Part};
use controller::process::{Leading, run_process};
use http::StatusCode;

pub use client_writer::ClientWriter;
pub use watches::Watches;

use crate::config;
use crate::cycle::{NODE_EXPECTATION, Scheduler, SchedulerOptions};
use crate::dispatcher::{ASYNC_CALLS, Dispatcher};
use crate::framework::{BuildCx, Descriptor};
use crate::metrics::SchedulerMetrics;
use crate::parallel::Parallelism;
use crate::plugins;
use crate::preemption::execute::ASYNC_PREEMPTION;
use crate::queue::{EARLY, QueueOptions};
use crate::writer::{ClusterWriter, EventSink, NoEvents};
use client_writer::ClientEvents;
use settings::Settings;

const NAME: &str = "kube-scheduler";
/// How long bindings and recorders may take to end.
const DRAIN: Duration = Duration::from_secs(5);
/// How long is waited for the answers to what was being written when the scheduler was asked to end.
const LAST_WRITES: Duration = Duration::from_secs(3);

/// The binary.
pub const COMPONENT: Component = Component {
    name: NAME,
    about: "The Kubernetes scheduler decides on which node each pod runs: it looks for nodes that can run the pod, \
            scores them, and binds the pod to the best one.",
    flags: flags::FLAGS,
    gates: Known::switching(&[
        &[COORDINATED_ELECTION, config::BATCHING, NODE_EXPECTATION, ASYNC_CALLS, ASYNC_PREEMPTION, EARLY],
        crate::cache::COUNTED_GATES,
        plugins::PLACING_GATES,
        controller::process::UID_GATES,
        component_base::zpages::GATES,
        client::features::GATES,
        component_base::logging::GATES,
        component_base::metrics::GATES,
        plugins::VOLUME_GATES,
        plugins::DEVICE_GATES,
        plugins::GROUP_GATES,
        dra::Features::GATES,
    ])
    .of(Part::Scheduler),
    prepare: settings::prepare,
    drain: DRAIN,
};

/// Runs the component until it is asked to end.
///
/// # Errors
/// When a flag or the configuration is wrong, a plugin cannot be built, or the leadership is lost.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let gates = lifecycle.gates().clone();
    let configuration = settings::configuration(&options, &gates)?;
    let target = options.string("write-config-to");
    if !target.is_empty() {
        let value = api_machinery::json::parse_value(&config::encode(&configuration))?;
        std::fs::write(target, api_machinery::yaml::to_yaml(&value))?;
        tracing::info!(file = target, "Wrote configuration to file");
        return Ok(());
    }
    let settings = Settings::new(configuration, &options, lifecycle.rng(), &gates)?;
    let cx = settings.process.client_cx(&lifecycle);
    let client = Client::new(settings.process.client.clone().with_user_agent_suffix("scheduler"), cx)?;
    let watches = Arc::new(Watches::new(&client));
    try_profiles(&settings.configuration, &gates, &client, &watches)?;
    if !settings.configuration.delay_cache_until_active {
        watches.start();
    }
    let synced = Arc::clone(&watches);
    let check = Check::instant("sched-handler-sync", move || {
        if synced.has_synced() { Ok(()) } else { Err("handlers are not fully synchronized".to_owned()) }
    });
    let (leads, shown_pods) = (Arc::new(AtomicBool::new(false)), Arc::clone(&watches));
    let leading_now = Arc::clone(&leads);
    let page = move || {
        // Those that wait show nothing, so that sums over all instances are right.
        let pods = if leading_now.load(Ordering::Relaxed) { shown_pods.pods() } else { Vec::new() };
        text(StatusCode::OK, resource_metrics::page(&pods))
    };
    // As upstream, the first profile's name stands for the scheduler there.
    let profile = settings.configuration.profiles.first().and_then(|profile| profile.scheduler_name.as_deref());
    let process = settings.process.clone().with_probes(vec![check]).with_page("/metrics/resources", page);
    let process = process.with_election_reporter(profile.unwrap_or_default());
    let shown = config_shown(&settings.configuration)?;
    let work = |leading| {
        leads.store(true, Ordering::Relaxed);
        lead(settings, gates, client, watches, leading)
    };
    run_process(process.coordinated(), &lifecycle, Vec::new(), shown, work).await
}

/// Plugins that cannot be built are a reason not to start, not one to fail when the election is won. What they ask for is
/// watched from the start on.
fn try_profiles(
    configuration: &KubeSchedulerConfiguration,
    gates: &Gates,
    client: &Client,
    watches: &Watches,
) -> Result<(), BoxError> {
    let metrics = Arc::new(SchedulerMetrics::new(&Metrics::new(MetricsOptions::default())));
    let tasks = client.tasks().clone();
    let place = Place { gates, client, watches, metrics, tasks };
    let cx = build_cx(&place, Arc::new(NoEvents), Parallelism::default());
    config::build_profiles(configuration, plugins::ALL, &cx)?;
    Ok(())
}

/// Where a scheduler works.
struct Place<'a> {
    gates: &'a Gates,
    client: &'a Client,
    watches: &'a Watches,
    metrics: Arc<SchedulerMetrics>,
    /// Where its work lives, but for what is told of it.
    tasks: TaskGroup,
}

/// What plugins are built with where there is an API server.
fn build_cx(place: &Place<'_>, events: Arc<dyn EventSink>, parallelism: Parallelism) -> BuildCx {
    let Place { gates, client, watches, metrics, tasks } = place;
    let through = Arc::new(ClientWriter::new(client));
    let mut writer: Arc<dyn ClusterWriter> = through.clone();
    if gates.enabled(ASYNC_CALLS) {
        writer = Arc::new(Dispatcher::new(writer, client.clock().clone(), Arc::clone(metrics)));
    }
    BuildCx {
        listers: Arc::clone(watches.listers()),
        gates: (*gates).clone(),
        writer,
        objects: through,
        events,
        gate: Arc::default(),
        waiting: Arc::default(),
        groups: Arc::default(),
        metrics: Arc::clone(metrics),
        clock: client.clock().clone(),
        rng: client.rng().clone(),
        tasks: tasks.clone(),
        proxies: Arc::clone(client.cx().proxies()),
        parallelism,
    }
}

/// Schedules for as long as this process leads. Nothing of it goes on when it returns.
async fn lead(
    settings: Settings,
    gates: Gates,
    client: Client,
    watches: Arc<Watches>,
    leading: Leading,
) -> Result<(), BoxError> {
    let metrics = Arc::new(SchedulerMetrics::new(&leading.metrics));
    let limit = settings.max_in_unschedulable;
    let tasks = client.tasks().child("scheduling");
    let place = Place { gates: &gates, client: &client, watches: &watches, metrics, tasks: tasks.clone() };
    let scheduler = assemble_in(place, plugins::ALL, &settings.configuration, limit)?;
    watches.feed(&scheduler);
    watches.start();
    tokio::select! {
        biased;
        () = leading.stop.cancelled() => return Ok(()),
        () = watches.wait_synced() => {}
    }
    tracing::info!("Starting scheduling");
    let overdue = async {
        leading.stop.cancelled().await;
        tokio::time::sleep(LAST_WRITES).await;
    };
    tokio::select! {
        biased;
        () = async {
            Arc::clone(&scheduler).run(tasks.clone(), leading.stop.clone()).await;
            scheduler.writes_end().await;
        } => {}
        () = overdue => tracing::warn!("What is being written has not been answered in time"),
    }
    tasks.shutdown(DRAIN).await;
    Ok(())
}

/// The numbers of a configuration that are not a profile's.
#[derive(Debug)]
struct Tuning {
    parallelism: i32,
    percentage_of_nodes_to_score: i32,
    queue: QueueOptions,
}

impl Tuning {
    fn of(configuration: &KubeSchedulerConfiguration, max_in_unschedulable: Duration) -> Self {
        let seconds = |value: Option<i64>| Duration::from_secs(u64::try_from(value.unwrap_or(1)).unwrap_or(1));
        Self {
            parallelism: configuration.parallelism.unwrap_or(1),
            percentage_of_nodes_to_score: configuration.percentage_of_nodes_to_score.unwrap_or(0),
            queue: QueueOptions {
                initial_backoff: seconds(configuration.pod_initial_backoff_seconds),
                max_backoff: seconds(configuration.pod_max_backoff_seconds),
                max_in_unschedulable,
            },
        }
    }
}

/// A scheduler that works through a client.
///
/// # Errors
/// When the profiles cannot be built.
pub fn assemble(
    configuration: &KubeSchedulerConfiguration,
    max_in_unschedulable: Duration,
    gates: &Gates,
    client: &Client,
    watches: &Watches,
    metrics: Arc<SchedulerMetrics>,
) -> Result<Arc<Scheduler>, BoxError> {
    let tasks = client.tasks().clone();
    let place = Place { gates, client, watches, metrics, tasks };
    assemble_in(place, plugins::ALL, configuration, max_in_unschedulable)
}

/// The same from other plugins.
fn assemble_in(
    place: Place<'_>,
    plugins: &[Descriptor],
    configuration: &KubeSchedulerConfiguration,
    max_in_unschedulable: Duration,
) -> Result<Arc<Scheduler>, BoxError> {
    let Tuning { parallelism, percentage_of_nodes_to_score, queue } = Tuning::of(configuration, max_in_unschedulable);
    let names: Vec<&str> =
        configuration.profiles.iter().filter_map(|profile| profile.scheduler_name.as_deref()).collect();
    let events: Arc<dyn EventSink> = Arc::new(ClientEvents::new(place.client, &names));
    let parallelism = Parallelism::of_machine(parallelism);
    let cx = build_cx(&place, Arc::clone(&events), parallelism);
    let profiles = config::build_profiles(configuration, plugins, &cx)?;
    let (clock, rng) = (place.client.clock().clone(), place.client.rng().clone());
    let parts = SchedulerOptions { profiles, percentage_of_nodes_to_score, queue, cx, events, clock, rng };
    Scheduler::new(parts).ok_or_else(|| "at least one profile is required".into())
}

/// What `/configz` shows.
fn config_shown(configuration: &KubeSchedulerConfiguration) -> Result<Value, BoxError> {
    let mut document = ValueMap::new();
    document.insert("componentconfig".into(), api_machinery::json::parse_value(&config::encode(configuration))?);
    Ok(document.into())
}

/// The configuration in a file, defaults filled in; without a file the default one.
fn load(path: &str) -> Result<KubeSchedulerConfiguration, BoxError> {
    if path.is_empty() {
        return Ok(config::default_configuration());
    }
    Ok(config::decode(&component_base::config_file::load(Path::new(path))?)?)
}
