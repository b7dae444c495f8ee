//! From flags to a running kubelet.

mod credentials;
mod groups;
mod serving;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::{Node, Service};
use api_types::node_v1::RuntimeClass;
use client::{Client, ClientCx, EventRecorder, InformerOptions, Informers, RequestMetrics, Scope};
use component_base::flags::Options;
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::BoxError;
use component_base::{Gates, Lifecycle};
use kubelet_node::shutdown::{Period, ShutdownManager};
use kubelet_node::topology::TopologyManager;
use kubelet_node::user_namespaces::UserNamespaces;
use node_api::cri::v1::StatusResponse;
use node_api::cri::{ClientOptions, CriClient, Images, Observer};
use sys::cgroups::{Cgroups, LinuxCgroups, Version};
use sys::exec::LinuxExec;
use sys::mounts::LinuxMounts;
use sys::net::{IpRoute, Network};
use sys::selinux::SeLinux;
use tracing_otlp::Tracer;

use crate::certificates;
use crate::config::{self, Plan, gates};
use crate::engine::{EngineDeps, PodEngine};
use crate::events::{ApiEvents, LoggedEvents};
use crate::eviction::{Evictor, Gauge, Measure};
use crate::extensions::Extensions;
use crate::host;
use crate::interfaces::{Events, Level, NodeSide, NodeView};
use crate::metrics::KubeletMetrics;
use crate::node::{self, AddressSource, Facts, LeaseKeeper, Memory, NodeState, Reporter, RuntimeHealth, Start};
use crate::objects::{ApiObjects, NoObjects, Objects};
use crate::pod_certificates::PodCertificates;
use crate::resource_managers;
use crate::resources::{PodGroups, all_pods_limits, allocatable};
use crate::server::Source;
use crate::setup::Setup;
use crate::shutdown;
use crate::traces;
use crate::trust_bundles::TrustBundles;
use crate::volume_health;
use crate::volumes::{CsiDeps, Labels, Layout, ScratchQuotas, VolumeDeps, VolumeSet};
use crate::watchdog;

/// Objects that nobody reads are forgotten after this many sync periods.
const IDLE_SYNCS: u32 = 5;
/// Time that an event gets to be sent before the process ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Time that the last spans of traces get to be sent.
const LAST_SPANS: Duration = Duration::from_secs(2);
/// Time that requests get to end.
const SERVER_DRAIN: Duration = Duration::from_secs(1);

/// Runs the kubelet until it is told to stop. Containers go on running.
///
/// # Errors
/// When the kubelet cannot start.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let config = config::load(&options)?;
    let facts = Facts::system();
    config::check_gated(&config, lifecycle.gates())?;
    let plan = config::plan(&options, config, &facts.proc().hostname()?)?;
    let mut plan = plan.with_gates(lifecycle.gates());
    plan.pods.enforces_app_armor = host::enforces_app_armor();
    let cgroups: Arc<dyn Cgroups> = Arc::new(LinuxCgroups::detect());
    let watchdog = watchdog::interval(|name| std::env::var(name).ok())?;
    let warnings = host::check(&plan, &facts, cgroups.as_ref(), &LinuxMounts)?;
    let metrics = Registries::new(lifecycle.gates());
    let access = certificates::client_config(&plan, &lifecycle, &metrics.own).await?;
    let cx = ClientCx::of(&lifecycle, lifecycle.tasks().clone()).with_metrics(RequestMetrics::new(&metrics.all));
    let clients = access.map(|access| Clients::new(access, &plan, cx)).transpose()?;
    let dependencies = Dependencies::new(&plan, &lifecycle, facts, cgroups, clients, metrics).await?;
    for (reason, message) in warnings {
        dependencies.events.event(node::reference(&plan.node.name), Level::Warning, reason, &message);
    }
    for message in crate::dns::check_machine_file(&plan.dns) {
        let about = node::reference(&plan.node.name);
        dependencies.events.event(about, Level::Warning, "CheckLimitsForResolvConf", &message);
    }
    if let Err(error) = dependencies.start(&plan, &lifecycle).await {
        let about = node::reference(&plan.node.name);
        dependencies.events.event(about, Level::Warning, "KubeletSetupFailed", &error.to_string());
        // So that somebody hears of it.
        tokio::time::sleep(LAST_WORDS).await;
        return Err(error);
    }
    let api = Arc::new(serving::api(&dependencies, &plan, &lifecycle)?);
    let servers = serving::serve(&dependencies, &plan, &lifecycle, &api).await?;
    if let Some(interval) = watchdog {
        let tell = || component_base::notify::notify("WATCHDOG=1");
        lifecycle.tasks().spawn_cancellable("watchdog", watchdog::run(interval, api.health.clone(), tell));
    }
    dependencies.events.event(node::reference(&plan.node.name), Level::Normal, "Starting", "Starting kubelet.");
    component_base::notify::ready();
    lifecycle.shutdown_requested().await;
    for server in servers {
        server.shutdown(SERVER_DRAIN).await;
    }
    if let Some(tracer) = &dependencies.tracer {
        tracer.shut_down(LAST_SPANS).await;
    }
    Ok(())
}

/// The three clients of a kubelet, so that a flood of events does not hold up heartbeats.
struct Clients {
    main: Client,
    events: Client,
    heartbeat: Client,
}

impl Clients {
    fn new(access: certificates::ClientAccess, plan: &Plan, cx: ClientCx) -> Result<Self, BoxError> {
        let config = &plan.config;
        let mut base = access.config.with_component("kubelet");
        base.content = config::content_type(&config.content_type).unwrap_or_default();
        let rate = |qps: i32| if qps == 0 { -1.0 } else { f64::from(qps) };
        let burst = |burst: i32| u32::try_from(burst).unwrap_or_default();
        let (qps, events_qps) = (config.kube_api_qps.unwrap_or(50), config.event_record_qps.unwrap_or(50));
        let main = Client::new(base.with_rate(rate(qps), burst(config.kube_api_burst)), cx)?;
        let events = main.derive(|config_| config_.with_rate(rate(events_qps), burst(config.event_burst)))?;
        let lease = Duration::from_secs(u64::try_from(config.node_lease_duration_seconds).unwrap_or(40));
        let limit = config.node_status_update_frequency.to_std().min(lease);
        let heartbeat = main.derive(|config| config.with_rate(-1.0, 0).with_timeout(limit))?;
        if let Some(rotation) = access.rotation {
            rotation.start(&main);
        }
        Ok(Self { main, events, heartbeat })
    }
}

/// What is counted, and where it is shown.
struct Registries {
    all: Arc<Metrics>,
    probes: Arc<Metrics>,
    own: Arc<KubeletMetrics>,
}

impl Registries {
    fn new(gates: &Gates) -> Self {
        let options = MetricsOptions::default().obeying(gates);
        let all = Metrics::of_process(options.clone());
        let probes = Metrics::new(options);
        let own = KubeletMetrics::new(&all, &probes);
        Self { all, probes, own }
    }

    /// What does not change as long as the kubelet runs.
    fn show_facts(&self, plan: &Plan, version: Version, source: Source) {
        self.own.node_name.with(&[&plan.node.name]).set(1.0);
        self.own.provider.with(&[source.provider()]).set(1.0);
        self.own.cgroup_version.with(&[]).set(if version == Version::V2 { 2.0 } else { 1.0 });
    }
}

/// What the engine, its volumes and the drivers of volumes tell the node's reporter.
struct EngineHealth {
    engine: PodEngine,
    volumes: Arc<VolumeSet>,
    csi: Arc<Extensions>,
}

impl RuntimeHealth for EngineHealth {
    fn ready_errors(&self) -> Vec<String> {
        self.engine.ready_errors().into_iter().chain(self.csi.not_ready()).collect()
    }

    fn runtime_status(&self) -> Option<StatusResponse> {
        self.engine.runtime_status()
    }

    fn volumes_in_use(&self) -> Option<Vec<String>> {
        self.volumes.volumes_in_use()
    }
}

/// Everything that is made before something runs.
struct Dependencies {
    metrics: Registries,
    clients: Option<Clients>,
    informers: Option<Informers>,
    runtime: Arc<CriClient>,
    images: Arc<dyn Images>,
    groups: Arc<PodGroups>,
    state: Arc<NodeState>,
    engine: PodEngine,
    volumes: Arc<VolumeSet>,
    extensions: Arc<Extensions>,
    topology: Arc<TopologyManager>,
    gauge: Arc<dyn Gauge>,
    events: Arc<dyn Events>,
    facts: Facts,
    tracer: Option<Tracer>,
}

impl Dependencies {
    async fn new(
        plan: &Plan,
        lifecycle: &Lifecycle,
        facts: Facts,
        cgroups: Arc<dyn Cgroups>,
        clients: Option<Clients>,
        metrics: Registries,
    ) -> Result<Self, BoxError> {
        let tracer = traces::start(plan, lifecycle, &metrics.all)?;
        let own_metrics = metrics.own.clone();
        metrics.show_facts(plan, cgroups.version(), serving::source(lifecycle.gates()));
        let observer: Arc<dyn Observer> = own_metrics.clone();
        let list_streaming = lifecycle.gates().enabled(gates::LIST_STREAMING);
        let options = ClientOptions { observer: Some(observer), list_streaming, ..cri_options(plan) };
        let runtime = Arc::new(CriClient::connect(&options).await?);
        let driver = groups::cgroup_driver(&runtime, plan, &own_metrics).await?;
        let groups = groups::pod_groups(plan, &facts, cgroups, driver, &own_metrics).await?;
        let events = events_by(clients.as_ref(), plan);
        let informers = clients.as_ref().map(|clients| Informers::new(&clients.main, InformerOptions::default()));
        let client = clients.as_ref().map(|clients| clients.main.clone());
        let state = node_state(plan, client.clone(), informers.as_ref());
        let extensions = Extensions::new(&plan.node, client.as_ref(), informers.as_ref(), &own_metrics, lifecycle)
            .map_err(|error| format!("failed to initialize the claims of dynamic resources: {error}"))?;
        let extensions = Arc::new(extensions);
        let csi = extensions.csi(informers.as_ref(), &plan.node.name);
        let topology = resource_managers::make(plan, lifecycle, &facts, &extensions.devices, &groups, &own_metrics)?;
        let (mut side, volumes) = node_side(
            plan,
            lifecycle,
            &facts,
            &groups,
            &state,
            &events,
            client.as_ref(),
            informers.as_ref(),
            csi,
            &extensions,
            &topology,
            Arc::new(resource_managers::user_namespaces(plan).await?),
            &own_metrics,
        );
        side.credentials = credentials::providers(plan, lifecycle, client.clone(), &own_metrics)?;
        let images: Arc<dyn Images> = runtime.clone();
        let engine = PodEngine::new(EngineDeps {
            settings: plan.pods.clone(),
            side,
            client,
            runtime: runtime.clone(),
            images: images.clone(),
            processors: Arc::new(sys::proc::Proc::system()),
            clock: lifecycle.clock().clone(),
            rng: lifecycle.rng().clone(),
            metrics: own_metrics,
            tasks: lifecycle.tasks().clone(),
            tracer: tracer.clone(),
        });
        let (told, csi) = (volumes.clone(), extensions.clone());
        state.set_health(Arc::new(EngineHealth { engine: engine.clone(), volumes: told, csi }));
        let gauge = gauge(plan, lifecycle, &facts, &runtime, &groups, &metrics.own);
        Ok(Self {
            metrics,
            clients,
            informers,
            runtime,
            images,
            groups,
            state,
            engine,
            volumes,
            extensions,
            topology,
            gauge,
            events,
            facts,
            tracer,
        })
    }

    async fn start(&self, plan: &Plan, lifecycle: &Lifecycle) -> Result<(), BoxError> {
        let layout = Layout::new(&plan.node.root_dir);
        host::make_directories(&layout, plan)?;
        let capacity = self.facts.capacity(&plan.node);
        plan.node.reservations.check(&capacity)?;
        let most = self.facts.proc().threads().ok().map(|(_, most)| most);
        let left = most.map(|most| plan.node.reservations.processes_left(most)).transpose()?;
        let enforced = plan.config.enforce_node_allocatable.iter().any(|what| what == "pods");
        let ((cpu, memory), pids) = if enforced {
            (plan.node.reservations.enforced(&capacity), left)
        } else {
            (crate::resources::reserve::Reservations::default().enforced(&capacity), most)
        };
        self.groups.start().await?;
        let (groups, events, about) = (self.groups.clone(), self.events.clone(), node::reference(&plan.node.name));
        lifecycle.tasks().spawn_cancellable("node-allocatable", async move {
            let tell = |level, reason: &'static str, text: &str| events.event(about.clone(), level, reason, text);
            allocatable::enforce(&groups, &all_pods_limits(cpu, memory, pids), tell).await;
        });
        if let Some(informers) = &self.informers {
            informers.start();
        }
        let reporter = Arc::new(self.reporter(plan, lifecycle));
        // Pods are admitted by what the node has.
        reporter.prime().await;
        let tasks = lifecycle.tasks();
        tasks.spawn_cancellable("node-status", reporter.run());
        if let Some(clients) = &self.clients {
            let keeper = LeaseKeeper::new(&clients.heartbeat, &plan.node.name, plan.node.lease_seconds);
            tasks.spawn_cancellable("node-lease", async move { keeper.run().await });
        }
        self.engine.restore()?;
        self.engine.start();
        self.extensions.start(&self.engine, &self.topology, &self.metrics.own, lifecycle);
        if plan.config.make_ip_tables_util_chains == Some(true) {
            tasks.spawn_cancellable("host-rules", crate::host_rules::keep(Arc::new(LinuxExec)));
        }
        let watch = crate::oom_watch::run(self.events.clone(), plan.node.name.clone());
        tasks.spawn_cancellable("oom-watch", watch);
        let periods = shutdown::configured(plan, lifecycle.gates())?;
        if !periods.is_empty() {
            tasks.spawn_cancellable("shutdown", shutdown::run(self.shutdown(plan, lifecycle, periods)));
        }
        self.watch_volumes(plan, lifecycle);
        let evictor = self.evictor(plan, lifecycle);
        tasks.spawn_cancellable("eviction", evictor.run());
        Ok(())
    }

    /// The watch over volumes whose drivers tell how they are.
    fn watch_volumes(&self, plan: &Plan, lifecycle: &Lifecycle) {
        let period = plan.config.volume_stats_agg_period.to_std();
        if period.is_zero() || !lifecycle.gates().enabled(gates::VOLUME_HEALTH) {
            return;
        }
        let watch = volume_health::watch(self.engine.clone(), self.volumes.clone(), self.events.clone(), period);
        lifecycle.tasks().spawn_cancellable("volume-health", watch);
    }

    /// The watch over what the node has left.
    fn evictor(&self, plan: &Plan, lifecycle: &Lifecycle) -> Evictor {
        let metrics = self.metrics.own.clone();
        Evictor {
            settings: plan.eviction.clone(),
            node_name: plan.node.name.clone(),
            gauge: self.gauge.clone(),
            pods: Arc::new(self.engine.clone()),
            state: self.state.clone(),
            events: self.events.clone(),
            clock: lifecycle.clock().clone(),
            count: Box::new(move |signal, age| {
                metrics.evictions.with(&[signal]).inc();
                if let Some(age) = age {
                    metrics.stats_age.with(&[signal]).observe(age.as_secs_f64());
                }
            }),
        }
    }

    /// Who ends the pods when the machine goes down.
    fn shutdown(&self, plan: &Plan, lifecycle: &Lifecycle, periods: Vec<Period>) -> ShutdownManager {
        let metrics = self.metrics.own.clone();
        ShutdownManager {
            periods,
            root: plan.node.root_dir.clone(),
            node: node::reference(&plan.node.name),
            pods: Arc::new(shutdown::Pods(self.engine.clone())),
            view: self.state.clone(),
            events: self.events.clone(),
            clock: lifecycle.clock().clone(),
            count: Box::new(move |started, ended| {
                metrics.shutdown_started.with(&[]).set(started);
                metrics.shutdown_ended.with(&[]).set(ended);
            }),
        }
    }

    fn reporter(&self, plan: &Plan, lifecycle: &Lifecycle) -> Reporter {
        let network: Arc<dyn Network> = Arc::new(IpRoute::new(Arc::new(LinuxExec), None));
        let addresses: Arc<dyn AddressSource> = Arc::new(network);
        let booted = self.facts.proc().boot_time_seconds().ok();
        let booted = booted.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        Reporter {
            settings: plan.node.clone(),
            state: self.state.clone(),
            facts: self.facts.clone(),
            addresses,
            runtime: self.runtime.clone(),
            images: self.images.clone(),
            events: self.events.clone(),
            clock: lifecycle.clock().clone(),
            rng: lifecycle.rng().clone(),
            client: self.clients.as_ref().map(|clients| clients.heartbeat.clone()),
            memory: Memory::default(),
            devices: Some(self.extensions.devices.clone()),
            start: Some(Start::new(self.metrics.own.clone(), booted, lifecycle.started()).into()),
        }
    }
}

/// Who is told of events.
fn events_by(clients: Option<&Clients>, plan: &Plan) -> Arc<dyn Events> {
    match clients {
        Some(clients) => Arc::new(ApiEvents(EventRecorder::new(&clients.events, "kubelet", &plan.node.name))),
        None => Arc::new(LoggedEvents),
    }
}

/// What is known of the node, as the API has it.
fn node_state(plan: &Plan, client: Option<Client>, informers: Option<&Informers>) -> Arc<NodeState> {
    let scope = Scope::fields(&format!("metadata.name={}", plan.node.name));
    let informer = informers.map(|informers| informers.scoped::<Node>(&scope));
    NodeState::new(&plan.node.name, client, informer)
}

/// Who measures what the pods use.
fn gauge(
    plan: &Plan,
    lifecycle: &Lifecycle,
    facts: &Facts,
    runtime: &Arc<CriClient>,
    groups: &Arc<PodGroups>,
    metrics: &Arc<KubeletMetrics>,
) -> Arc<dyn Gauge> {
    Arc::new(Measure {
        runtime: runtime.clone(),
        images: runtime.clone(),
        groups: groups.clone(),
        proc: facts.proc().clone(),
        layout: Layout::new(&plan.node.root_dir),
        pod_logs_dir: plan.pods.pod_logs_dir.clone(),
        pods_memory: plan.eviction.pods_are_limited.then(|| {
            let (_, memory) = plan.node.reservations.enforced(&facts.capacity(&plan.node));
            memory
        }),
        walk_period: plan.config.volume_stats_agg_period.to_std(),
        separate_disks: lifecycle.gates().enabled(gates::SEPARATE_DISKS),
        quotas: lifecycle.gates().enabled(gates::SCRATCH_QUOTAS).then(ScratchQuotas::of_machine),
        source: serving::source(lifecycle.gates()),
        metrics: metrics.clone(),
        clock: lifecycle.clock().clone(),
        walked: Default::default(),
    })
}

#[expect(clippy::too_many_arguments, reason = "the dependencies are named here once and nowhere else")]
fn node_side(
    plan: &Plan,
    lifecycle: &Lifecycle,
    facts: &Facts,
    groups: &Arc<PodGroups>,
    state: &Arc<NodeState>,
    events: &Arc<dyn Events>,
    client: Option<&Client>,
    informers: Option<&Informers>,
    csi: CsiDeps,
    extensions: &Extensions,
    topology: &Arc<TopologyManager>,
    users: Arc<UserNamespaces>,
    metrics: &Arc<KubeletMetrics>,
) -> (NodeSide, Arc<VolumeSet>) {
    let objects: Arc<dyn Objects> = match client {
        Some(client) => {
            let idle = (plan.pods.sync_frequency * IDLE_SYNCS).max(Duration::from_secs(60));
            ApiObjects::new(client, plan.strategy, idle)
        }
        None => Arc::new(NoObjects),
    };
    let view: Arc<dyn NodeView> = state.clone();
    let volumes = VolumeSet::new(VolumeDeps {
        layout: Layout::new(&plan.node.root_dir),
        mounts: Arc::new(LinuxMounts),
        objects: objects.clone(),
        client: client.cloned(),
        node: view.clone(),
        clock: lifecycle.clock().clone(),
        rng: lifecycle.rng().clone(),
        csi,
        exec: Arc::new(LinuxExec),
        events: events.clone(),
        labels: Labels::of_machine(&SeLinux::system(), lifecycle.gates().enabled(gates::MOUNT_WITH_LABELS)),
        quotas: lifecycle.gates().enabled(gates::SCRATCH_QUOTAS).then(ScratchQuotas::of_machine),
        trust_bundles: lifecycle
            .gates()
            .enabled(gates::TRUST_BUNDLES)
            .then(|| TrustBundles::new(informers.cloned(), lifecycle.rng())),
        certificates: client
            .filter(|_| lifecycle.gates().enabled(gates::POD_CERTIFICATES))
            .map(|client| PodCertificates::new(client.clone(), view.clone(), events.clone(), lifecycle.rng().clone())),
        metrics: metrics.clone(),
    });
    let setup = Setup {
        volumes: volumes.clone(),
        groups: groups.clone(),
        limits: groups::container_limits(plan, facts, groups.cgroups()),
        objects,
        node: view.clone(),
        events: events.clone(),
        dns: plan.dns.clone(),
        services: informers.map(Informers::of::<Service>),
        runtime_classes: informers.map(Informers::of::<RuntimeClass>),
        node_reference: node::reference(&plan.node.name),
        topology: Some(topology.clone()),
        claims: extensions.claims(),
        users: Some(users),
        lifts_quota: lifecycle.gates().enabled(gates::DISABLE_CPU_QUOTA),
    };
    let (setup, cgroups) = (Arc::new(setup), groups.clone());
    let side = NodeSide {
        volumes: volumes.clone(),
        setup,
        cgroups,
        node: view,
        events: events.clone(),
        topology: Some(topology.clone()),
        claims: extensions.claims(),
        credentials: None,
    };
    (side, volumes)
}

fn cri_options(plan: &Plan) -> ClientOptions {
    ClientOptions {
        image_endpoint: plan.config.image_service_endpoint.clone(),
        request_timeout: plan.config.runtime_request_timeout.to_std(),
        ..ClientOptions::new(&plan.config.container_runtime_endpoint)
    }
}
