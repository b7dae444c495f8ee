//! The pod engine: takes pods from their sources, gives each a worker, and answers what others ask about pods.
//!
//! The rest of the kubelet uses [`PodEngine`]. What happens inside: [`sync_loop`] reacts to sources, the runtime and
//! probes; [`worker`] drives one pod through the stages of [`state`]; [`housekeeping`] finds what was left behind.

mod admit;
#[cfg(test)]
mod api_tests;
mod claims;
#[cfg(test)]
mod claims_tests;
#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod containerd_test;
mod cpu_sets;
#[cfg(test)]
mod cpu_sets_tests;
#[cfg(test)]
mod ending_tests;
#[cfg(test)]
mod evented_tests;
#[cfg(test)]
mod gated_tests;
mod health;
mod housekeeping;
#[cfg(test)]
mod namesake_tests;
mod present;
mod queries;
mod reclaim;
mod resize;
#[cfg(test)]
mod resize_tests;
#[cfg(test)]
mod restart_all_tests;
mod state;
mod sync_loop;
#[cfg(any(test, feature = "fake"))]
pub mod test_node;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traces_tests;
mod worker;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::time::Time;
use api_types::core_v1::{Pod, PodStatus};
use base::{SharedClock, SharedRng, TaskGroup};
use client::{Client, InformerOptions, Informers};
use component_base::tls::CaBundle;
use node_api::cri::{Images, Runtime};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing_otlp::Tracer;

use crate::admission::{Admission, Allocations};
use crate::collect;
use crate::interfaces::{NodeSide, PodSettings};
use crate::metrics::KubeletMetrics;
use crate::pleg::{self, Pleg, PodChange};
use crate::pod::adopt::Adopted;
use crate::pod::file_source::FileSource;
use crate::pod::http_source::HttpSource;
use crate::pod::news::Herald;
use crate::pod::publish::{Liveness, StatusBoard};
use crate::pod::store::PodStore;
use crate::pod::{Delivery, Source, api_source};
use crate::probe::{News, ProbeDependencies, Probes, RESULT_QUEUE, Results, Statuses};
use crate::runtime::PodRuntime;
use crate::runtime::back_off::KeyedBackOff;
use crate::runtime::checkpoint::CheckpointError;
use crate::runtime::starts::{Processors, Starts};
use health::RuntimeHealth;
use workers::Workers;

pub use crate::pod::news::PodNews;
pub use queries::{Eviction, LogSource, LookupError};

/// Volumes that failed are tried again after this, then after twice as long, up to the second.
const MOUNT_RETRY: Duration = Duration::from_millis(500);
const MOUNT_RETRY_MAX: Duration = Duration::from_secs(122);

/// What the engine is made of.
pub struct EngineDeps {
    /// From flags and the configuration file.
    pub settings: PodSettings,
    /// Volumes, environments, groups, the node, events.
    pub side: NodeSide,
    /// The API server; `None` for a kubelet on its own.
    pub client: Option<Client>,
    /// Sandboxes and containers.
    pub runtime: Arc<dyn Runtime>,
    /// Images.
    pub images: Arc<dyn Images>,
    /// What starts of pods take turns by.
    pub processors: Arc<dyn Processors>,
    /// Time.
    pub clock: SharedClock,
    /// Randomness.
    pub rng: SharedRng,
    /// What is counted.
    pub metrics: Arc<KubeletMetrics>,
    /// Everything the engine starts ends with this.
    pub tasks: TaskGroup,
    /// Records what the engine does, where traces are recorded.
    pub tracer: Option<Tracer>,
}

/// The pods of this node. Clones share it.
#[derive(Clone)]
pub struct PodEngine {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Arc<PodSettings>,
    side: NodeSide,
    client: Option<Client>,
    runtime: Arc<PodRuntime>,
    store: Arc<PodStore>,
    board: Arc<StatusBoard>,
    herald: Arc<Herald>,
    workers: Arc<Workers>,
    admission: Admission,
    allocations: Arc<Allocations>,
    /// How long pods wait before their volumes are tried again, by uid.
    mounting: KeyedBackOff,
    probes: Probes,
    pleg: Pleg,
    health: RuntimeHealth,
    /// Sources that will deliver, and those that have.
    sources: BTreeSet<Source>,
    delivered: Mutex<BTreeSet<Source>>,
    /// Static pods that another kubelet started.
    adopted: Mutex<Adopted>,
    /// Pods that were refused; their objects are left alone.
    refused: Mutex<BTreeSet<String>>,
    /// Whether what nobody knows of has been looked for once.
    housekept: Mutex<bool>,
    loop_seen: Mutex<Instant>,
    channels: Mutex<Option<Channels>>,
    delivery_sender: mpsc::Sender<Delivery>,
    dead: collect::containers::DeadContainers,
    images: tokio::sync::Mutex<collect::images::ImageCollector>,
    metrics: Arc<KubeletMetrics>,
    clock: SharedClock,
    rng: SharedRng,
    tasks: TaskGroup,
    tracer: Option<Tracer>,
}

/// What the sync loop listens to.
struct Channels {
    deliveries: mpsc::Receiver<Delivery>,
    changes: mpsc::Receiver<PodChange>,
    news: mpsc::Receiver<News>,
}

/// What probe workers read.
struct StatusView {
    store: Arc<PodStore>,
    board: Arc<StatusBoard>,
}

impl Statuses for StatusView {
    fn pod(&self, uid: &str) -> Option<Arc<Pod>> {
        self.store.get(uid)
    }

    fn status(&self, uid: &str) -> Option<Arc<PodStatus>> {
        self.board.get(uid)
    }
}

impl PodEngine {
    /// An engine that does nothing yet.
    #[must_use]
    pub fn new(deps: EngineDeps) -> Self {
        let EngineDeps { settings, side, client, runtime, images, processors, .. } = deps;
        let EngineDeps { clock, rng, metrics, tasks, tracer, .. } = deps;
        let settings = Arc::new(settings);
        let (delivery_sender, deliveries) = mpsc::channel(crate::pod::DELIVERY_QUEUE);
        let (change_sender, changes) = mpsc::channel(pleg::EVENT_QUEUE);
        let (news_sender, news) = mpsc::channel(RESULT_QUEUE);
        let herald = Arc::<Herald>::default();
        let store = Arc::new(PodStore::new(Arc::clone(&herald)));
        let board = Arc::new(StatusBoard::new(Arc::clone(&herald), Arc::clone(&clock), Arc::clone(&metrics)));
        let pods = PodRuntime::new(
            (Arc::clone(&runtime), images),
            side.clone(),
            Arc::clone(&settings),
            Arc::clone(&clock),
            Arc::clone(&rng),
            Arc::clone(&metrics),
            Starts::new(processors),
        );
        let pods = Arc::new(pods);
        let probes = Probes::new(ProbeDependencies {
            runtime: Arc::clone(&runtime),
            node: Arc::clone(&side.node),
            events: Arc::clone(&side.events),
            statuses: Arc::new(StatusView { store: Arc::clone(&store), board: Arc::clone(&board) }),
            results: Arc::new(Results::default()),
            news: news_sender,
            metrics: Arc::clone(&metrics),
            clock: Arc::clone(&clock),
            rng: Arc::clone(&rng),
            tasks: tasks.clone(),
            keeps_readiness: settings.keeps_readiness,
        });
        let allocations = Arc::new(Allocations::new(&settings.root_dir));
        let inner = Inner {
            sources: sources(&settings, client.is_some()),
            pleg: Pleg::new(runtime, Arc::clone(&pods.cache), change_sender, Arc::clone(&metrics), Arc::clone(&clock))
                .evented(settings.evented_pleg),
            health: RuntimeHealth::new(Arc::clone(&clock)),
            delivered: Mutex::default(),
            adopted: Mutex::default(),
            refused: Mutex::default(),
            housekept: Mutex::new(false),
            loop_seen: Mutex::new(Instant::now()),
            channels: Mutex::new(Some(Channels { deliveries, changes, news })),
            dead: collect::containers::DeadContainers::default(),
            images: tokio::sync::Mutex::default(),
            workers: Arc::default(),
            admission: Admission::new(&allocations, side.topology.as_ref()),
            allocations,
            mounting: KeyedBackOff::new(MOUNT_RETRY, MOUNT_RETRY_MAX, MOUNT_RETRY_MAX * 2),
            settings,
            side,
            client,
            runtime: pods,
            store,
            board,
            herald,
            probes,
            delivery_sender,
            metrics,
            clock,
            rng,
            tasks,
            tracer,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes over what an earlier kubelet gave its pods; to be called before the start.
    ///
    /// # Errors
    /// A file that says so is there and cannot be read.
    pub fn restore(&self) -> Result<(), CheckpointError> {
        self.inner.admission.restore()?;
        self.inner.runtime.actuated.restore()
    }

    /// Starts everything, in the engine's task group. Does nothing the second time.
    pub fn start(&self) {
        let inner = &self.inner;
        let Some(channels) = inner.channels.lock().take() else { return };
        inner.start_sources();
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("runtime-health", async move { me.health.run(&*me.runtime.runtime).await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("pleg", async move { me.pleg.run().await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("starts", async move { me.runtime.starts.run().await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("sync-loop", async move { me.sync_loop(channels).await });
        if let Some(client) = inner.client.clone() {
            let me = Arc::clone(inner);
            inner.tasks.spawn_cancellable("status", async move { me.board.run(&client, &me.store, &*me).await });
        }
        inner.follow_resources();
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("dead-containers", async move { me.dead.run(&*me.runtime.runtime).await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("container-gc", async move { me.collect_containers().await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("image-gc", async move { me.collect_images().await });
        let me = Arc::clone(inner);
        inner.tasks.spawn_cancellable("log-rotation", async move { me.rotate_logs().await });
        if inner.side.topology.as_ref().is_some_and(|topology| topology.cpus.is_static()) {
            let me = Arc::clone(inner);
            inner.tasks.spawn_cancellable("cpu-sets", async move { me.keep_cpu_sets().await });
        }
    }
}

fn sources(settings: &PodSettings, api: bool) -> BTreeSet<Source> {
    let mut out = BTreeSet::new();
    out.extend(settings.static_pod_path.as_ref().map(|_| Source::File));
    out.extend(settings.static_pod_url.as_ref().map(|_| Source::Http));
    out.extend(api.then_some(Source::Api));
    out
}

impl Inner {
    fn start_sources(self: &Arc<Self>) {
        let settings = &self.settings;
        if let Some(path) = &settings.static_pod_path {
            let source = FileSource {
                path: path.clone(),
                node_name: settings.node_name.clone(),
                period: settings.file_check_frequency,
                refuse_references: settings.prevent_static_pod_api_references,
            };
            self.tasks.spawn_cancellable("file-source", source.run(self.delivery_sender.clone()));
        }
        if let Some(url) = &settings.static_pod_url {
            let source = HttpSource {
                url: url.clone(),
                headers: settings.static_pod_url_header.clone(),
                node_name: settings.node_name.clone(),
                period: settings.http_check_frequency,
                refuse_references: settings.prevent_static_pod_api_references,
                roots: CaBundle::system().into_shared(),
            };
            self.tasks.spawn_cancellable("http-source", source.run(self.delivery_sender.clone()));
        }
        if let Some(client) = &self.client {
            // What the sync loop makes of a pod is kept there.
            let options = InformerOptions { identities_only: true, ..InformerOptions::default() };
            let informers = Informers::new(client, options);
            let source = api_source::run(informers, settings.node_name.clone(), self.delivery_sender.clone());
            self.tasks.spawn_cancellable("api-source", source);
        }
    }

    fn sources_ready(&self) -> bool {
        self.delivered.lock().is_superset(&self.sources)
    }

    fn now(&self) -> Time {
        Time::from(self.clock.wall())
    }

    /// A period, up to half longer.
    fn jittered(&self, period: Duration) -> Duration {
        period.mul_f64(1.0 + 0.5 * self.rng.unit())
    }
}

impl Liveness for Inner {
    fn could_run(&self, uid: &str) -> bool {
        self.workers
            .state(uid)
            .map_or_else(|| !*self.housekept.lock() && !self.is_refused(uid), |state| state.could_run())
    }
}

impl Inner {
    fn is_refused(&self, uid: &str) -> bool {
        self.refused.lock().contains(uid)
    }
}
