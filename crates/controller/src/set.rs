//! Runs the controllers of a process: builds them, starts the shared informers, sets the workers to work, and ends.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_types::core_v1::ResourceQuota;
use base::{CancellationToken, Drained, TaskGroup};
use client::{Client, ConfigError, EventRecorder, InformerOptions, Informers, RestMapper};
use component_base::Gates;
use component_base::health::Check;
use component_base::metrics::{Metrics, MetricsOptions};
use futures_util::future::join_all;
use parking_lot::Mutex;

use crate::build::{Build, BuildError, Queue, Recorders, Shared, Workers};
use crate::cx::{Controller, Cx};
use crate::debug_pages::DebugPages;
use crate::descriptor::Descriptor;
use crate::metrics::QueueMetricFamilies;
use crate::run::Worker;
use crate::select::Selection;

/// How often the age of unfinished work is sampled, as upstream.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(500);

/// Longer than any process waits.
const WITHOUT_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Makes the client of an identity (a service account's name, or the part of the process that asks).
pub type ClientFor = Arc<dyn Fn(&str) -> Result<Client, ConfigError> + Send + Sync>;

/// What the controllers get from their process.
#[derive(Clone)]
pub struct Environment {
    /// Makes clients.
    pub client_for: ClientFor,
    /// The feature gates.
    pub gates: Gates,
    /// The component's own options, for [`Build::settings`].
    pub settings: Arc<dyn Any + Send + Sync>,
    /// Where the queues report to.
    pub metrics: Option<Arc<Metrics>>,
    /// After how long handlers get everything again: this and up to twice as long.
    pub min_resync: Duration,
    /// The pause between the starts of two controllers, and up to twice as long.
    pub start_interval: Duration,
    /// Whether what a quota has refused is tried again as soon as the quota has room; quotas are watched for it.
    pub follows_quotas: bool,
    /// How long work may take to end once the process is asked to stop; zero waits without limit.
    pub shutdown_timeout: Duration,
    /// Where the controllers' pages are shown.
    pub debug_pages: DebugPages,
}

impl Environment {
    /// The usual times, no settings and no metrics; every identity uses the same client.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        let client = client.clone();
        Self {
            client_for: Arc::new(move |identity| client.derive(|config| config.with_user_agent_suffix(identity))),
            gates: Gates::default(),
            settings: Arc::new(()),
            metrics: None,
            min_resync: Duration::from_secs(12 * 3600),
            start_interval: Duration::ZERO,
            follows_quotas: false,
            shutdown_timeout: Duration::from_secs(10),
            debug_pages: DebugPages::default(),
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    /// All work has ended.
    Cleanly,
    /// These tasks were still running at the deadline.
    TimedOut(Vec<String>),
}

/// Controllers that run together.
pub struct ControllerSet {
    descriptors: Vec<Descriptor>,
    running: Mutex<BTreeMap<&'static str, Vec<Arc<dyn Controller>>>>,
}

/// One controller, built.
struct Built {
    name: &'static str,
    workers: Vec<Workers>,
    synced: Vec<futures_util::future::BoxFuture<'static, ()>>,
    client: Client,
    events: EventRecorder,
}

impl ControllerSet {
    /// The controllers that a flag selects and whose gates are on.
    #[must_use]
    pub fn new(known: &[Descriptor], selection: &Selection, gates: &Gates) -> Arc<Self> {
        let descriptors = selection.enabled(known, gates).into_iter().copied().collect();
        Arc::new(Self { descriptors, running: Mutex::default() })
    }

    /// The names of the controllers.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.descriptors.iter().map(|descriptor| descriptor.name).collect()
    }

    /// What the controller of this name says of its health. One that is not built yet is well.
    ///
    /// # Errors
    /// The text to show.
    pub fn health(&self, name: &str) -> Result<(), String> {
        let running = self.running.lock();
        running.get(name).into_iter().flatten().try_for_each(|controller| controller.health())
    }

    /// One health check for each controller.
    #[must_use]
    pub fn checks(self: &Arc<Self>) -> Vec<Check> {
        let check = |descriptor: &Descriptor| {
            let (set, name) = (Arc::clone(self), descriptor.name);
            Check::instant(name, move || set.health(name))
        };
        self.descriptors.iter().map(check).collect()
    }

    /// Builds and runs the controllers until `stop` is cancelled, then waits for the work in hand. Dropping the future
    /// ends all work at its next await point, as losing the leadership must.
    ///
    /// # Errors
    /// When a controller cannot be built.
    pub async fn run(&self, env: &Environment, stop: CancellationToken) -> Result<Stopped, BuildError> {
        let process = (env.client_for)("shared-informers")?;
        let tasks = process.tasks().child("controllers");
        let _hard_stop = CancelOnDrop(tasks.clone());
        let shared = self.shared(env, process)?;
        let built = self.build(env, &shared)?;
        shared.informers.start();
        shared.metadata_informers.start();
        let queues: Vec<Queue> =
            built.iter().flat_map(|one| &one.workers).map(|workers| workers.queue.clone()).collect();
        if let Some(families) = shared.metrics.clone() {
            tasks.spawn_cancellable("queue-metrics", sample(families, queues.clone()));
        }
        let workers = Crew { group: TaskGroup::new("workers"), hard_stop: tasks.token(), stop: stop.clone() };
        let mut offset = Duration::ZERO;
        for one in built {
            workers.start(one, offset);
            if !env.start_interval.is_zero() {
                offset += env.start_interval.mul_f64(1.0 + shared.informers.client().rng().unit());
            }
        }
        stop.cancelled().await;
        for queue in &queues {
            queue.shut_down();
        }
        Ok(workers.end(env.shutdown_timeout).await)
    }

    fn shared(&self, env: &Environment, process: Client) -> Result<Shared, BuildError> {
        let options = InformerOptions { resync: Some(env.min_resync), ..InformerOptions::default() };
        let metadata = (env.client_for)("metadata-informers")?;
        let discovery = (env.client_for)("controller-discovery")?;
        let informers = Informers::new(&process, options.clone());
        Ok(Shared {
            quotas: env.follows_quotas.then(|| informers.of::<ResourceQuota>()),
            informers,
            metadata_informers: Informers::new(&metadata, options),
            mapper: RestMapper::new(&discovery),
            gates: env.gates.clone(),
            settings: Arc::clone(&env.settings),
            debug_pages: env.debug_pages.clone(),
            metrics: env.metrics.as_deref().map(QueueMetricFamilies::new),
            registry: env.metrics.clone().unwrap_or_else(|| Metrics::new(MetricsOptions::default())),
        })
    }

    fn build(&self, env: &Environment, shared: &Shared) -> Result<Vec<Built>, BuildError> {
        let mut recorders = Recorders::new();
        let mut built = Vec::new();
        for descriptor in &self.descriptors {
            let client = (env.client_for)(descriptor.identity)?;
            let make = || EventRecorder::new(&client, descriptor.event_component, "");
            let events = recorders.entry(descriptor.event_component).or_insert_with(make).clone();
            let mut build = Build::new(descriptor, shared, client.clone(), events.clone());
            match (descriptor.build)(&mut build) {
                Ok(()) => {}
                Err(BuildError::Skipped(reason)) => {
                    tracing::warn!(controller = descriptor.name, reason, "Skipping controller");
                    continue;
                }
                Err(error) => return Err(error),
            }
            let Build { workers, synced, .. } = build;
            let controllers = workers.iter().map(|workers| Arc::clone(&workers.controller)).collect();
            self.running.lock().insert(descriptor.name, controllers);
            built.push(Built { name: descriptor.name, workers, synced, client, events });
        }
        Ok(built)
    }
}

/// Ends what was spawned when the run is dropped.
struct CancelOnDrop(TaskGroup);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The workers of all controllers. They end by themselves after `stop`, between two keys; `hard_stop` ends them
/// wherever they are.
#[derive(Clone)]
struct Crew {
    group: TaskGroup,
    hard_stop: CancellationToken,
    stop: CancellationToken,
}

impl Crew {
    fn spawn(&self, name: &str, work: impl Future<Output = ()> + Send + 'static) {
        let hard_stop = self.hard_stop.clone();
        self.group.spawn(name, async move {
            tokio::select! {
                biased;
                () = hard_stop.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Waits for a controller's caches, then sets its workers to work.
    fn start(&self, one: Built, offset: Duration) {
        let crew = self.clone();
        self.spawn(one.name, async move {
            let ready = async {
                tokio::time::sleep(offset).await;
                join_all(one.synced).await;
            };
            tokio::select! {
                biased;
                () = crew.stop.cancelled() => return,
                () = ready => {}
            }
            tracing::info!(controller = one.name, "Caches are synced, starting workers");
            for workers in &one.workers {
                for _ in 0..workers.count {
                    let cx = Cx {
                        client: one.client.clone(),
                        clock: Arc::clone(one.client.clock()),
                        rng: Arc::clone(one.client.rng()),
                        events: one.events.clone(),
                        queue: workers.queue.clone(),
                    };
                    crew.spawn(one.name, Worker::new(one.name, workers, cx).run(crew.stop.clone()));
                }
            }
        });
    }

    /// Waits until the workers have ended by themselves, at most `limit`; zero waits without limit.
    async fn end(&self, limit: Duration) -> Stopped {
        let limit = if limit.is_zero() { WITHOUT_LIMIT } else { limit };
        match self.group.shutdown(limit).await {
            Drained::All => Stopped::Cleanly,
            Drained::Stuck(stuck) => {
                tracing::error!(?stuck, "controller shutdown timeout reached");
                Stopped::TimedOut(stuck.into_iter().map(|(name, _)| name).collect())
            }
        }
    }
}

async fn sample(families: QueueMetricFamilies, queues: Vec<Queue>) {
    loop {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        for queue in &queues {
            families.sample(queue.name(), queue.unfinished());
        }
    }
}
