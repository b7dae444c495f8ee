//! The server itself: flags in, its parts wired together, until it is asked to end.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::PartialObjectMetadata;
use api_machinery::object::Object;
use api_types::core_v1::{Node, Pod};
use client::{Client, ClientCx, Informer, InformerOptions, Informers, RequestMetrics, ResourceInfo, Scope};
use component_base::flags::{Errors, Options};
use component_base::health::{Check, Endpoint as HealthEndpoint, Health};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::{BoxError, ServerHandle};
use component_base::{Component, Known, Lifecycle, no_config_file};
use controller::process::{Access, self_signed};

use crate::endpoint::{Api, Endpoint};
use crate::kubelet::{Kubelets, Rounds};
use crate::metrics::Monitor;
use crate::options::{Config, FLAGS, NAME};
use crate::usage::Usages;

const DRAIN: Duration = Duration::from_secs(5);

/// The binary.
pub const COMPONENT: Component = Component {
    name: NAME,
    about: "The metrics server asks kubelets what nodes and pods use, and tells it as the API metrics.k8s.io, for kubectl \
            top and for autoscalers.",
    flags: FLAGS,
    gates: Known::KUBERNETES,
    prepare: no_config_file,
    drain: DRAIN,
};

/// Runs the server until it is asked to end.
///
/// # Errors
/// When a flag is wrong, or it cannot serve.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let mut errors = Errors::new();
    let config = Config::from_options(&options, lifecycle.gates(), &mut errors)?;
    errors.into_result()?;
    let metrics = Metrics::of_process(config.metrics.clone());
    metrics.show_versions(lifecycle.versions());
    let stop = lifecycle.events().shutdown_initiated.token();
    let (server, health) = start(&config, &lifecycle, metrics).await?;
    component_base::notify::ready();
    stop.cancelled().await;
    health.begin_shutdown();
    drop(server.shutdown(DRAIN).await);
    Ok(())
}

/// Wires the parts together and begins to serve.
async fn start(
    config: &Config,
    lifecycle: &Lifecycle,
    metrics: Arc<Metrics>,
) -> Result<(ServerHandle, Arc<Health>), BoxError> {
    let cx = ClientCx::new(Arc::clone(lifecycle.clock()), Arc::clone(lifecycle.rng()), lifecycle.tasks().clone())
        .behind(lifecycle.proxies());
    let client = Client::new(config.api.clone(), cx.clone().with_metrics(RequestMetrics::new(&metrics)))?;
    let (access, client_cas) = Access::new(&config.access, NAME, &cx, lifecycle.rng(), Some(&client))?;
    let access = Arc::new(access);
    let mut serving = config.serving.clone();
    serving.asks_for_certificates = access.follow_cluster().await?;
    let watched = Watched::start(&client, &config.node_selector);
    let usages = Arc::new(Usages::default());
    let rounds = Arc::new(Rounds::default());
    let monitor = Arc::new(Monitor::new(&metrics));
    let kubelets = Kubelets::new(config.kubelets.clone(), cx, config.addressing.clone(), config.timeout, monitor);
    let kubelets = Arc::new(kubelets);
    kubelets.follow(&watched.nodes);
    let slis = Metrics::new(MetricsOptions::default());
    let health = Health::new(&slis, Duration::ZERO);
    add_checks(&health, &watched, &usages, (&rounds, config.resolution), lifecycle)?;
    let endpoint = Endpoint {
        access,
        api: Api {
            nodes: watched.nodes.clone(),
            pods: watched.pods.clone(),
            usages: Arc::clone(&usages),
            clock: Arc::clone(lifecycle.clock()),
        },
        health: Arc::clone(&health),
        metrics,
        slis,
    };
    let (clock, rng) = (Arc::clone(lifecycle.clock()), Arc::clone(lifecycle.rng()));
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certs = serving.certificates(&names, &move |names: &[String]| self_signed(names, &clock, &rng))?;
    let server = serving.serve(lifecycle.tasks(), certs, &client_cas, Arc::new(endpoint))?;
    let resolution = config.resolution;
    lifecycle.tasks().spawn_cancellable("rounds", async move {
        rounds.run(&kubelets, &watched.nodes, &usages, resolution).await;
    });
    Ok((server, health))
}

/// What is known of the cluster.
struct Watched {
    nodes: Informer<Node>,
    /// Names and labels are all that is needed of pods.
    pods: Informer<PartialObjectMetadata>,
}

impl Watched {
    fn start(client: &Client, node_selector: &str) -> Self {
        let options = InformerOptions { transform: Some(Arc::new(reduce)), ..InformerOptions::default() };
        let informers = Informers::new(client, options);
        let selected = Scope { label_selector: node_selector.to_owned(), ..Scope::default() };
        let nodes = informers.scoped::<Node>(&selected);
        let pods = informers.metadata(&ResourceInfo::of::<Pod>());
        informers.start();
        Self { nodes, pods }
    }
}

/// Drops what nobody here looks at, which is most of an object.
fn reduce(object: &mut dyn Object) {
    let meta = object.meta_mut();
    meta.annotations.clear();
    meta.owner_references.clear();
    meta.finalizers.clear();
    if let Some(node) = object.downcast_mut::<Node>() {
        node.spec = Default::default();
        node.status.images.clear();
        node.status.conditions.clear();
    }
}

fn add_checks(
    health: &Health,
    watched: &Watched,
    usages: &Arc<Usages>,
    (rounds, resolution): (&Arc<Rounds>, Duration),
    lifecycle: &Lifecycle,
) -> Result<(), BoxError> {
    let (rounds, clock) = (Arc::clone(rounds), Arc::clone(lifecycle.clock()));
    let timely = Check::instant("metric-collection-timely", move || rounds.check(clock.monotonic(), resolution));
    health.add(&[HealthEndpoint::Healthz, HealthEndpoint::Livez], &timely)?;
    let usages = Arc::clone(usages);
    let is_stored = move || if usages.is_ready() { Ok(()) } else { Err("no metrics to serve".to_owned()) };
    health.add(&[HealthEndpoint::Readyz], &Check::instant("metric-storage-ready", is_stored))?;
    let (nodes, pods) = (watched.nodes.clone(), watched.pods.clone());
    let is_known = move || {
        if nodes.has_synced() && pods.has_synced() {
            Ok(())
        } else {
            Err("metadata informers are not synced".to_owned())
        }
    };
    health.add(&[HealthEndpoint::Readyz], &Check::instant("metadata-informer-sync", is_known))?;
    Ok(())
}
