//! From flags to a running kubelet.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_machinery::time::{GoDuration, Time};
use api_types::core_v1::{Node, Service};
use api_types::node_v1::RuntimeClass;
use authn::{Anonymous, Authenticator, BearerHeader, Chain, ClientCertificate, SubjectUid, TokenCache};
use client::{Client, ClientCx, EventRecorder, InformerOptions, Informers, RequestMetrics, Scope};
use component_base::Lifecycle;
use component_base::debugging::{Contention, Debugging};
use component_base::flags::Options;
use component_base::health::{Check, Endpoint, Health};
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::reload::{Reload, spawn_reloader};
use component_base::serving::{BoxError, Limits, PortSharing, Security, Server, bind, handler_fn, text};
use component_base::tls::{CaFile, CertFiles, ServerTls, ServingCerts, TlsOptions};
use component_base::zpages::Zpages;
use http::StatusCode;
use kubelet_node::shutdown::{Period, ShutdownManager};
use kubelet_node::topology::TopologyManager;
use kubelet_node::user_namespaces::UserNamespaces;
use node_api::cri::v1::StatusResponse;
use node_api::cri::{ClientOptions, Code, CriClient, CriError, Images, Observer, Runtime as _};
use pki::{CaBundle, CaPool};
use sys::cgroups::{Cgroups, LinuxCgroups, Version};
use sys::exec::LinuxExec;
use sys::mounts::LinuxMounts;
use sys::net::{IpRoute, Network};

use crate::certificates;
use crate::config::{self, LIMITED_SWAP, Plan, gates};
use crate::engine::{EngineDeps, PodEngine};
use crate::events::{ApiEvents, LoggedEvents};
use crate::eviction::{Evictor, Gauge, Measure};
use crate::extensions::Extensions;
use crate::host;
use crate::interfaces::{Events, Level, NodeSide, NodeView};
use crate::metrics::KubeletMetrics;
use crate::node::{self, AddressSource, Facts, LeaseKeeper, Memory, NodeState, Reporter, RuntimeHealth};
use crate::objects::{ApiObjects, NoObjects, Objects};
use crate::resource_managers;
use crate::resources::container::ContainerLimits;
use crate::resources::swap::SwapBehavior;
use crate::resources::{Driver, PodGroups, Systemd, all_pods_limits};
use crate::server::{Access, Api, Authorizer, Everyone, ReadOnly, ReviewAuthorizer, ReviewTokens, Secured, Stats};
use crate::setup::Setup;
use crate::shutdown;
use crate::volumes::{CsiDeps, Layout, VolumeDeps, VolumeSet};
use crate::watchdog;

/// How often the runtime is asked for its cgroup driver, and the pause in between.
const DRIVER_TRIES: usize = 3;
const DRIVER_PAUSE: Duration = Duration::from_secs(2);
/// Objects that nobody reads are forgotten after this many sync periods.
const IDLE_SYNCS: u32 = 5;
/// Time that an event gets to be sent before the process ends.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// From this version of upstream on, a runtime must tell its driver of control groups.
const DRIVER_REQUIRED_FROM: &str = "1.37.0";
/// Time that requests get to end.
const SERVER_DRAIN: Duration = Duration::from_secs(1);

/// Runs the kubelet until it is told to stop. Containers go on running.
///
/// # Errors
/// When the kubelet cannot start.
pub async fn run(options: Options, lifecycle: Lifecycle) -> Result<(), BoxError> {
    let config = config::load(&options)?;
    let facts = Facts::system();
    let plan = config::plan(&options, config, &facts.proc().hostname()?)?;
    let mut plan = plan.with_gates(lifecycle.gates());
    plan.pods.enforces_app_armor = host::enforces_app_armor();
    let cgroups: Arc<dyn Cgroups> = Arc::new(LinuxCgroups::detect());
    let watchdog = watchdog::interval(|name| std::env::var(name).ok())?;
    let warnings = host::check(&plan, &facts, cgroups.as_ref(), &LinuxMounts)?;
    let metrics = Registries::new();
    let access = certificates::client_config(&plan, &lifecycle, &metrics.own).await?;
    let cx = ClientCx::new(lifecycle.clock().clone(), lifecycle.rng().clone(), lifecycle.tasks().clone())
        .with_metrics(RequestMetrics::new(&metrics.all));
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
    let api = Arc::new(api(&dependencies, &plan, &lifecycle)?);
    let servers = serve(&dependencies, &plan, &lifecycle, &api).await?;
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
    fn new() -> Self {
        let all = Metrics::of_process(MetricsOptions::default());
        let probes = Metrics::new(MetricsOptions::default());
        let own = KubeletMetrics::new(&all, &probes);
        Self { all, probes, own }
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
        let own_metrics = metrics.own.clone();
        own_metrics.node_name.with(&[&plan.node.name]).set(1.0);
        own_metrics.cgroup_version.with(&[]).set(if cgroups.version() == Version::V2 { 2.0 } else { 1.0 });
        let observer: Arc<dyn Observer> = own_metrics.clone();
        let options = ClientOptions { observer: Some(observer), ..cri_options(plan) };
        let runtime = Arc::new(CriClient::connect(&options).await?);
        let driver = cgroup_driver(&runtime, plan, &own_metrics).await?;
        let groups = pod_groups(plan, cgroups, driver).await?;
        let events: Arc<dyn Events> = match &clients {
            Some(clients) => Arc::new(ApiEvents(EventRecorder::new(&clients.events, "kubelet", &plan.node.name))),
            None => Arc::new(LoggedEvents),
        };
        let informers = clients.as_ref().map(|clients| Informers::new(&clients.main, InformerOptions::default()));
        let client = clients.as_ref().map(|clients| clients.main.clone());
        let scope = Scope::fields(&format!("metadata.name={}", plan.node.name));
        let informer = informers.as_ref().map(|informers| informers.scoped::<Node>(&scope));
        let state = NodeState::new(&plan.node.name, client.clone(), informer);
        let extensions = Extensions::new(&plan.node, client.as_ref(), &own_metrics, lifecycle)
            .map_err(|error| format!("failed to initialize the claims of dynamic resources: {error}"))?;
        let extensions = Arc::new(extensions);
        let csi = extensions.csi(informers.as_ref(), &plan.node.name);
        let topology = resource_managers::make(plan, lifecycle, &facts, &extensions.devices, &groups, &own_metrics)?;
        let (side, volumes) = node_side(
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
        );
        let images: Arc<dyn Images> = runtime.clone();
        let engine = PodEngine::new(EngineDeps {
            settings: plan.pods.clone(),
            side,
            client,
            runtime: runtime.clone(),
            images: images.clone(),
            clock: lifecycle.clock().clone(),
            rng: lifecycle.rng().clone(),
            metrics: own_metrics,
            tasks: lifecycle.tasks().clone(),
        });
        let (told, csi) = (volumes.clone(), extensions.clone());
        state.set_health(Arc::new(EngineHealth { engine: engine.clone(), volumes: told, csi }));
        let gauge = gauge(plan, lifecycle, &facts, &runtime, &groups, &engine);
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
        })
    }

    async fn start(&self, plan: &Plan, lifecycle: &Lifecycle) -> Result<(), BoxError> {
        let layout = Layout::new(&plan.node.root_dir);
        host::make_directories(&layout, plan)?;
        let capacity = self.facts.capacity(&plan.node);
        plan.node.reservations.check(&capacity)?;
        let enforced = plan.config.enforce_node_allocatable.iter().any(|what| what == "pods");
        let (cpu, memory) = if enforced {
            plan.node.reservations.enforced(&capacity)
        } else {
            crate::resources::reserve::Reservations::default().enforced(&capacity)
        };
        self.groups.start(&all_pods_limits(cpu, memory, None)).await?;
        if enforced {
            let text = "Updated Node Allocatable limit across pods";
            self.events.event(node::reference(&plan.node.name), Level::Normal, "NodeAllocatableEnforced", text);
        }
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
        let evictor = self.evictor(plan, lifecycle);
        tasks.spawn_cancellable("eviction", evictor.run());
        Ok(())
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
        }
    }
}

/// Who measures what the pods use.
fn gauge(
    plan: &Plan,
    lifecycle: &Lifecycle,
    facts: &Facts,
    runtime: &Arc<CriClient>,
    groups: &Arc<PodGroups>,
    engine: &PodEngine,
) -> Arc<dyn Gauge> {
    let pods = engine.clone();
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
        clock: lifecycle.clock().clone(),
        pods: Box::new(move || pods.active_pods()),
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
        events: events.clone(),
    });
    let setup = Setup {
        volumes: volumes.clone(),
        groups: groups.clone(),
        limits: container_limits(plan, facts, groups.cgroups()),
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
    };
    (side, volumes)
}

fn container_limits(plan: &Plan, facts: &Facts, cgroups: &dyn Cgroups) -> ContainerLimits {
    let config = &plan.config;
    let version = cgroups.version();
    let period = config.cpu_cfs_quota_period.map_or(Duration::from_millis(100), GoDuration::to_std);
    let (memory, swap) =
        facts.proc().memory().map(|memory| (memory.total_bytes, memory.swap_total_bytes)).unwrap_or_default();
    ContainerLimits {
        cpu_quota: config.cpu_cfs_quota != Some(false),
        cpu_period_us: i64::try_from(period.as_micros()).unwrap_or(100_000),
        version,
        swap_accounting: host::counts_swap(version),
        swap: match config.memory_swap.swap_behavior.as_str() {
            LIMITED_SWAP => SwapBehavior::Limited { swap_bytes: i64::try_from(swap).unwrap_or(i64::MAX) },
            _ => SwapBehavior::NoSwap,
        },
        single_process_oom_kill: config.single_process_oom_kill.unwrap_or(version == Version::V1),
        huge_pages: facts.huge_page_names(),
        memory_capacity: i64::try_from(memory).unwrap_or(i64::MAX),
    }
}

fn cri_options(plan: &Plan) -> ClientOptions {
    ClientOptions {
        image_endpoint: plan.config.image_service_endpoint.clone(),
        request_timeout: plan.config.runtime_request_timeout.to_std(),
        ..ClientOptions::new(&plan.config.container_runtime_endpoint)
    }
}

/// The groups of pods, made by the driver.
async fn pod_groups(plan: &Plan, cgroups: Arc<dyn Cgroups>, driver: Driver) -> Result<Arc<PodGroups>, BoxError> {
    let settings = plan.cgroups(driver).ok_or("invalid cgroup root")?;
    Ok(match driver {
        Driver::Cgroupfs => PodGroups::new(cgroups, settings),
        Driver::Systemd => PodGroups::of_systemd(cgroups, Arc::new(systemd().await?), settings),
    })
}

/// The machine's systemd, which the driver of this name needs.
async fn systemd() -> Result<Systemd, BoxError> {
    let failed = |error| {
        format!(
            "the cgroup driver is systemd, by the runtime's word or cgroupDriver, but {error}; on a machine without \
             systemd, set both to cgroupfs"
        )
    };
    Ok(Systemd::connect().await.map_err(failed)?)
}

/// What the runtime says wins; one that does not know the question leaves it to the configuration.
async fn cgroup_driver(runtime: &CriClient, plan: &Plan, metrics: &KubeletMetrics) -> Result<Driver, BoxError> {
    use node_api::cri::v1::CgroupDriver;
    let configured = Driver::from_name(&plan.config.cgroup_driver).ok_or("unknown cgroup driver")?;
    let mut last = None;
    for _ in 0..DRIVER_TRIES {
        match runtime.runtime_config().await {
            Ok(answer) => {
                let driver = answer.linux.map(|linux| linux.cgroup_driver());
                return Ok(match driver {
                    Some(CgroupDriver::Systemd) => Driver::Systemd,
                    Some(CgroupDriver::Cgroupfs) => Driver::Cgroupfs,
                    None => configured,
                });
            }
            Err(CriError::Rpc { code: Code::Unimplemented, .. }) => {
                tracing::warn!(
                    "CRI implementation should be updated to support RuntimeConfig. Falling back to the configured cgroup driver"
                );
                metrics.losing_support.with(&[DRIVER_REQUIRED_FROM]).set(1.0);
                return Ok(configured);
            }
            Err(error) => last = Some(error),
        }
        tokio::time::sleep(DRIVER_PAUSE).await;
    }
    Err(last.map_or_else(|| "no answer".into(), Into::into))
}

/// Starts the servers that the configuration asks for.
async fn serve(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
    api: &Arc<Api>,
) -> Result<Vec<component_base::serving::ServerHandle>, BoxError> {
    let (config, tasks) = (&plan.config, lifecycle.tasks());
    let mut servers = Vec::new();
    if config.enable_server != Some(false) {
        let (tls, authentication) = secure(dependencies, plan, lifecycle).await?;
        let access = Access { authentication, authorizer: authorizer(dependencies, plan)? };
        let listener =
            bind(SocketAddr::new(config.address.parse()?, u16::try_from(config.port)?), PortSharing::Exclusive)?;
        let secured = Arc::new(Secured { api: api.clone(), access });
        let server = Server::new(secured, Security::Tls(tls)).with_limits(Limits::default());
        servers.push(server.spawn(tasks, listener)?);
        tracing::info!(address = config.address, port = config.port, "Starting to listen");
    }
    if config.read_only_port > 0 {
        let address = SocketAddr::new(config.address.parse()?, u16::try_from(config.read_only_port)?);
        let listener = bind(address, PortSharing::Exclusive)?;
        servers.push(Server::new(Arc::new(ReadOnly(api.clone())), Security::Plain).spawn(tasks, listener)?);
    }
    let port = config.healthz_port.unwrap_or(10248);
    if port > 0 {
        let address = SocketAddr::new(config.healthz_bind_address.parse()?, u16::try_from(port)?);
        let listener = bind(address, PortSharing::Exclusive)?;
        let handler = handler_fn(async |request: component_base::serving::Request| match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "ok"),
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n"),
        });
        servers.push(Server::new(Arc::new(handler), Security::Plain).spawn(tasks, listener)?);
    }
    Ok(servers)
}

fn api(dependencies: &Dependencies, plan: &Plan, lifecycle: &Lifecycle) -> Result<Api, BoxError> {
    let volumes = dependencies.volumes.clone();
    let (metrics, slis) = (dependencies.metrics.all.clone(), Metrics::new(MetricsOptions::default()));
    metrics.show_gates(lifecycle.gates());
    metrics.show_versions(lifecycle.versions());
    let health = Health::new(&slis, Duration::ZERO);
    let engine = dependencies.engine.clone();
    let sync_loop = move || engine.sync_loop_health().map_err(|error| error.to_string());
    health.add(&[Endpoint::Healthz], &Check::instant("syncloop", sync_loop))?;
    if let Some(logging) = lifecycle.logging().cloned() {
        health.add(&[Endpoint::Healthz], &Check::instant("log", move || logging.check()))?;
    }
    let boot = dependencies.facts.proc().boot_time_seconds().ok().and_then(|seconds| i64::try_from(seconds).ok());
    let memory = dependencies.facts.proc().memory().map(|memory| memory.total_bytes).unwrap_or_default();
    let boot = Time::from_unix_seconds(boot.unwrap_or_default());
    Ok(Api {
        engine: dependencies.engine.clone(),
        runtime: dependencies.runtime.clone(),
        config: Arc::new(plan.config.clone()),
        health,
        metrics,
        slis,
        probes: dependencies.metrics.probes.clone(),
        own: dependencies.metrics.own.clone(),
        claims: Box::new(move |pods| {
            let volumes = volumes.clone();
            Box::pin(async move { volumes.claimed_rooms(&pods).await })
        }),
        claims_shown: Default::default(),
        cert_dir: plan.cert_dir.clone(),
        stats: Stats::new(
            &plan.node.name,
            &plan.node.root_dir,
            dependencies.groups.clone(),
            dependencies.images.clone(),
            boot,
            memory,
            dependencies.gauge.clone(),
        ),
        clock: lifecycle.clock().clone(),
        tasks: lifecycle.tasks().clone(),
        translates: lifecycle.gates().enabled(gates::EXTEND_WEBSOCKETS),
        zpages: Zpages::new("kubelet", lifecycle, &["/configz", "/healthz", "/metrics", "/pods"]),
        debugging: Debugging::new(lifecycle, Contention::Untold),
    })
}

/// The certificate that is shown, and who is recognised.
async fn secure(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
) -> Result<(Arc<ServerTls>, Chain), BoxError> {
    let config = &plan.config;
    let certs = serving_certs(dependencies, plan, lifecycle).await?;
    let options = TlsOptions {
        min_version: config.tls_min_version.clone(),
        cipher_suites: config.tls_cipher_suites.clone(),
        curve_preferences: config.tls_curve_preferences.iter().map(|curve| i64::from(*curve)).collect(),
        ..TlsOptions::default()
    };
    let tls = ServerTls::new(certs.clone(), options)?;
    let mut targets: Vec<Arc<dyn Reload>> = vec![certs];
    let mut members: Vec<Arc<dyn Authenticator>> = Vec::new();
    let ca = &config.authentication.x509.client_ca_file;
    if !ca.is_empty() {
        let file = CaFile::load(ca)?;
        tls.request_client_certs(&[&file.bundle().load_full()])?;
        let pool = Arc::new(CaPool::new(CaBundle::from_pem(&file.pem())?));
        follow(&file, &pool, &tls, ca);
        members.push(Arc::new(ClientCertificate::new(pool, lifecycle.clock().clone(), SubjectUid::Ignored)));
        targets.push(file);
    }
    if config.authentication.webhook.enabled == Some(true) {
        let client = dependencies.clients.as_ref().ok_or("no client provided, cannot use webhook authentication")?;
        let tokens = Arc::new(ReviewTokens(client.main.clone()));
        let ttl = config.authentication.webhook.cache_ttl.to_std();
        let cache = TokenCache::new(tokens, ttl, lifecycle.clock().clone(), lifecycle.rng(), lifecycle.tasks().clone());
        members.push(Arc::new(BearerHeader(Arc::new(cache))));
    }
    spawn_reloader(lifecycle.tasks(), targets);
    let anonymous = (config.authentication.anonymous.enabled == Some(true)).then(Anonymous::default);
    Ok((tls, Chain::new(members, anonymous, Vec::new())))
}

/// A changed bundle is in force for new connections and for open ones.
fn follow(file: &Arc<CaFile>, pool: &Arc<CaPool>, tls: &Arc<ServerTls>, path: &str) {
    let (pool, tls, path) = (Arc::downgrade(pool), Arc::downgrade(tls), Path::new(path).to_owned());
    file.on_change(move |bundle| {
        let (Some(pool), Some(tls)) = (pool.upgrade(), tls.upgrade()) else { return };
        if let Err(error) = tls.request_client_certs(&[bundle]) {
            tracing::error!(%error, "Applying a new client CA bundle failed");
        }
        if let Err(error) = pool.reload(&path) {
            tracing::error!(%error, "Applying a new client CA bundle failed");
        }
    });
}

async fn serving_certs(
    dependencies: &Dependencies,
    plan: &Plan,
    lifecycle: &Lifecycle,
) -> Result<Arc<ServingCerts>, BoxError> {
    let config = &plan.config;
    if !config.tls_cert_file.is_empty() {
        let files =
            CertFiles { cert: config.tls_cert_file.clone().into(), key: config.tls_private_key_file.clone().into() };
        return Ok(ServingCerts::load(Some(&files), &[])?);
    }
    let requested = config.server_tls_bootstrap && lifecycle.gates().enabled(gates::ROTATE_SERVER_CERTIFICATE);
    if let (true, Some(clients)) = (requested, &dependencies.clients) {
        return Ok(certificates::request_serving(
            plan,
            lifecycle,
            &clients.main,
            dependencies.state.clone(),
            &dependencies.metrics.own,
        )?);
    }
    let now: SystemTime = lifecycle.clock().wall();
    Ok(certificates::self_signed(plan, lifecycle.rng(), now)?)
}

fn authorizer(dependencies: &Dependencies, plan: &Plan) -> Result<Arc<dyn Authorizer>, BoxError> {
    let settings = &plan.config.authorization;
    if settings.mode == "AlwaysAllow" {
        return Ok(Arc::new(Everyone));
    }
    let clients = dependencies.clients.as_ref().ok_or("no client provided, cannot use webhook authorization")?;
    let (yes, no) = (settings.webhook.cache_authorized_ttl.to_std(), settings.webhook.cache_unauthorized_ttl.to_std());
    Ok(Arc::new(ReviewAuthorizer::new(&clients.main, &plan.node.name, yes, no)))
}
