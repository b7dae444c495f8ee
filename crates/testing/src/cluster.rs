//! The cluster: the server, its clients, and the parts that can be stopped and started.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_types::core_v1::{Namespace, Node, Service, ServiceAccount};
use apiserver::config::{ServerConfig, StaticToken};
use base::{Rng, SharedClock, SharedRng, TaskGroup, TokioClock};
use client::{Client, ClientConfig, ClientCx, ConfigError, ContentType, Credentials, FaultLayer, Faults, Transport};
use component_base::Gates;
use component_base::metrics::{Metrics, MetricsOptions};
use component_base::serving::BoxError;
use node_api::csi::CsiController;
use parking_lot::Mutex;

use crate::api_server::ApiServer;
use crate::balancer::Servers;
use crate::clock::{ClockFault, PartClock};
use crate::node::{Container, HollowNode};
use crate::node_volumes::NodeDriver;
use crate::parts::{
    Part, start_controllers, start_csi_controller, start_elected, start_scheduler, start_snapshot_controller,
};
use crate::store::{Faulty, Opened, Store};
use crate::trace::Trace;

const ADMIN: &str = "admin";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
/// The accounts that the addons give to the controllers of volumes.
const CSI_CONTROLLER: &str = "system:serviceaccount:kube-system:csi-local";
const SNAPSHOT_CONTROLLER: &str = "system:serviceaccount:kube-system:snapshot-controller";
/// There where a driver is.
const OF_VOLUMES: [Part; 2] = [Part::CsiController, Part::SnapshotController];
/// How many nodes there are.
pub const NODES: u8 = 3;
/// How long the cluster may take to be ready, in its own time.
const START: Duration = Duration::from_secs(120);
/// The counter of pods that the scheduler bound only after its flush.
const AFTER_FLUSH: &str = "scheduler_pod_scheduled_after_flush_total";
const POLL: Duration = Duration::from_secs(1);
/// How long tasks may take to end at the end.
const DRAIN: Duration = Duration::from_secs(30);

/// A control plane and three hollow nodes in one process, on the runtime's time.
///
/// Each component has its own credentials (so that roles and node restriction are in force), its own randomness, its
/// own tasks, and a layer of faults between it and the server; the administrator's client has no faults.
pub struct Cluster {
    shape: Shape,
    gates: Gates,
    servers: Arc<Servers>,
    tasks: TaskGroup,
    clock: SharedClock,
    rng: SharedRng,
    admin: Client,
    nodes: Vec<Arc<HollowNode>>,
    trace: Trace,
    faults: Mutex<Faults>,
    running: Mutex<BTreeMap<Part, Running>>,
    faulty: Option<Faulty>,
    /// The driver that the controllers of volumes ask; they do not run without.
    csi: Mutex<Option<CsiController>>,
    clocks: BTreeMap<Part, Arc<PartClock>>,
    /// The parts that have ever stood still.
    stalled: Mutex<BTreeSet<Part>>,
    /// Of all schedulers there were.
    schedulers: Mutex<Vec<Arc<Metrics>>>,
}

/// How many there are of what a control plane has at least one of. Of several controller managers and schedulers one
/// leads; each has its own API server as long as that is there.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// API servers over one store.
    pub api_servers: u8,
    /// Controller managers.
    pub controllers: u8,
    /// Schedulers.
    pub schedulers: u8,
}

impl Shape {
    /// One of each: nobody has to be elected.
    pub const SINGLE: Self = Self { api_servers: 1, controllers: 1, schedulers: 1 };
    /// Two of each.
    pub const DOUBLE: Self = Self { api_servers: 2, controllers: 2, schedulers: 2 };
}

/// A component that runs.
struct Running {
    tasks: TaskGroup,
    layer: Arc<FaultLayer>,
    faults: Faults,
}

impl Running {
    fn set(&mut self, faults: Faults) {
        self.layer.set(faults.clone());
        self.faults = faults;
    }
}

/// What a part reaches the server through.
struct Connection {
    transport: Arc<dyn Transport>,
    cx: ClientCx,
}

impl Connection {
    fn client(&self, user: &str, qps: f64, burst: u32) -> Result<Client, ConfigError> {
        Client::with_transport(Arc::clone(&self.transport), config(user, qps, burst), self.cx.clone())
    }

    /// As the controllers of volumes have it: what definitions bring is not served as protobuf.
    fn json_client(&self, user: &str) -> Result<Client, ConfigError> {
        let config = ClientConfig { content: ContentType::Json, ..config(user, 50.0, 100) };
        Client::with_transport(Arc::clone(&self.transport), config, self.cx.clone())
    }
}

impl Cluster {
    /// Starts everything and waits until pods can be run.
    ///
    /// # Errors
    /// When a component does not start.
    pub async fn new(seed: u64) -> Result<Self, BoxError> {
        Self::with(seed, |_| {}).await
    }

    /// Starts everything, with a server whose configuration was changed.
    ///
    /// # Errors
    /// When a component does not start.
    pub async fn with(seed: u64, configure: impl FnOnce(&mut ServerConfig)) -> Result<Self, BoxError> {
        Self::over(&Store::Memory, Shape::SINGLE, seed, configure).await
    }

    /// Starts everything over a store, with a server whose configuration was changed.
    ///
    /// # Errors
    /// When the store or a component does not start.
    pub async fn over(
        store: &Store,
        shape: Shape,
        seed: u64,
        configure: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, BoxError> {
        Self::gated(store, shape, seed, &Gates::default(), configure).await
    }

    /// The same with gates, which all components have.
    ///
    /// # Errors
    /// When the store or a component does not start.
    pub async fn gated(
        store: &Store,
        shape: Shape,
        seed: u64,
        gates: &Gates,
        configure: impl FnOnce(&mut ServerConfig),
    ) -> Result<Self, BoxError> {
        let mut server = ServerConfig::in_memory(tokens());
        configure(&mut server);
        let (clock, rng) = (TokioClock::shared(), Rng::seeded(seed));
        let tasks = TaskGroup::new("cluster");
        let group = tasks.child("store");
        let Opened { ways, faulty } = store.open(shape.api_servers, &mut server.storage, &clock, &rng, &group).await?;
        let server = |backend| ApiServer::new((server.clone(), gates.clone()), backend, &clock, split(&rng), &group);
        let servers = Servers::new(ways.into_iter().map(server).collect());
        let trace = Trace::new();
        let transport = trace.recording(ADMIN, servers.preferring(0));
        let cx = ClientCx::new(Arc::clone(&clock), split(&rng), tasks.child(ADMIN));
        let admin = Client::with_transport(transport, config(ADMIN, -1.0, 0), cx)?;
        let nodes = (0..NODES).map(|number| HollowNode::new(Part::Node(number).to_string(), number)).collect();
        let clock_of = |part| (part, Arc::new(PartClock::new(Arc::clone(&clock))));
        let clocks = parts_of(shape).into_iter().chain(OF_VOLUMES).map(clock_of).collect();
        let cluster = Self {
            shape,
            gates: gates.clone(),
            servers,
            tasks,
            clock,
            rng,
            admin,
            nodes,
            trace,
            faults: Mutex::default(),
            running: Mutex::default(),
            faulty,
            csi: Mutex::default(),
            clocks,
            stalled: Mutex::default(),
            schedulers: Mutex::default(),
        };
        for part in cluster.parts() {
            cluster.start(part)?;
        }
        cluster.wait_serving().await?;
        cluster.wait_ready().await?;
        Ok(cluster)
    }

    /// The administrator's client: without faults and without a rate limit.
    #[must_use]
    pub fn admin(&self) -> &Client {
        &self.admin
    }

    /// The administrator's client of one API server, whatever state that is in.
    ///
    /// # Errors
    /// When there is no such server.
    pub fn admin_of(&self, number: u8) -> Result<Client, BoxError> {
        let server = Arc::clone(self.servers.get(number).ok_or("there is no such server")?);
        let cx = ClientCx::new(Arc::clone(&self.clock), split(&self.rng), self.tasks.child(ADMIN));
        Ok(Client::with_transport(self.trace.recording(ADMIN, server), config(ADMIN, -1.0, 0), cx)?)
    }

    /// Cuts an API server off its store, or joins it again. While it is cut off, nothing comes back from the store.
    pub fn cut_off(&self, number: u8, is_cut: bool) {
        if let Some(server) = self.servers.get(number) {
            server.cut(is_cut);
        }
    }

    /// Has an API server hear of changes in the store this much later, as from a store under load.
    pub fn set_lag(&self, number: u8, lag: Duration) {
        if let Some(server) = self.servers.get(number) {
            server.set_lag(lag);
        }
    }

    /// Has components leave an API server alone, or use it again, as a balancer does that looks at `/readyz`.
    pub fn drain(&self, number: u8, is_drained: bool) {
        self.servers.drain(number, is_drained);
    }

    /// All requests of components and the administrator.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// A source of randomness of its own, that follows from the seed.
    #[must_use]
    pub fn split_rng(&self) -> SharedRng {
        split(&self.rng)
    }

    /// What can be stopped and started.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let of_volumes = self.csi.lock().is_some().then_some(OF_VOLUMES);
        parts_of(self.shape).into_iter().chain(of_volumes.into_iter().flatten()).collect()
    }

    /// Puts faults between all components and the server.
    pub fn set_faults(&self, faults: &Faults) {
        *self.faults.lock() = faults.clone();
        for running in self.running.lock().values_mut() {
            running.set(faults.clone());
        }
    }

    /// Puts faults between one component and the servers, until its faults are set anew.
    pub fn set_faults_of(&self, part: Part, faults: &Faults) {
        if let Some(running) = self.running.lock().get_mut(&part) {
            running.set(faults.clone());
        }
    }

    /// Lets nothing pass between one component and the servers, in neither direction, as when a signal has stopped it; or
    /// lets it go on.
    pub fn stall(&self, part: Part, stalled: bool) {
        self.stalled.lock().insert(part);
        if let Some(running) = self.running.lock().get_mut(&part) {
            running.set(Faults { stalled, ..running.faults.clone() });
        }
    }

    /// Whether one of several schedulers has stood still. What it was about to bind is bound when it goes on, whoever leads by
    /// then and whatever was given the room meanwhile, as with upstream: only a node can refuse that.
    #[must_use]
    pub fn may_bind_late(&self) -> bool {
        let is_scheduler = |part: &Part| matches!(part, Part::Scheduler(_));
        self.shape.schedulers > 1 && self.stalled.lock().iter().any(is_scheduler)
    }

    /// Makes the clock of one part wrong, or right again.
    pub fn set_clock(&self, part: Part, fault: ClockFault) {
        if let Part::ApiServer(number) = part {
            if let Some(server) = self.servers.get(number) {
                server.set_clock(fault);
            }
        } else if let Some(clock) = self.clocks.get(&part) {
            clock.set(fault);
        }
    }

    /// The wall time that parts have whose clocks are right.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.clock.wall()
    }

    /// Whether the store is one whose disk can fail.
    #[must_use]
    pub fn has_faulty_disk(&self) -> bool {
        self.faulty.is_some()
    }

    /// Whether a component was started and has not ended; an API server counts as running.
    #[must_use]
    pub fn is_running(&self, part: Part) -> bool {
        let is_server = matches!(part, Part::ApiServer(_));
        is_server || self.running.lock().get(&part).is_some_and(|own| !own.tasks.token().is_cancelled())
    }

    /// Lets so many more writes to the disk through, all where there is no number; only with [`Store::Faulty`].
    pub fn set_writes_left(&self, writes: Option<u64>) {
        if let Some(faulty) = &self.faulty {
            faulty.set_writes_left(writes);
        }
    }

    /// Has the disk bring nothing to stable storage any more, until [`Self::cut_power`]; only with [`Store::Faulty`].
    pub fn fail_syncs(&self) {
        if let Some(faulty) = &self.faulty {
            faulty.fail_syncs();
        }
    }

    /// Ends all API servers and their store as a power cut does, and starts them over what is left on the disk; only with
    /// [`Store::Faulty`].
    ///
    /// # Errors
    /// When what is left cannot be read, or a server does not start.
    pub async fn cut_power(&self) -> Result<(), BoxError> {
        let Some(faulty) = &self.faulty else { return Err("the disk has no faults".into()) };
        let servers = || (0..self.shape.api_servers).filter_map(|number| self.servers.get(number));
        servers().for_each(|server| server.crash());
        let store = faulty.cut_power().await?;
        for server in servers() {
            server.replace_store(Arc::clone(&store));
            server.start()?;
        }
        Ok(())
    }

    /// The containers that run on the nodes, whether or not their kubelets do.
    #[must_use]
    pub fn containers(&self) -> Vec<Container> {
        self.nodes.iter().flat_map(|node| node.containers()).collect()
    }

    /// Says which containers run, as [`Self::containers`] does, to somebody who does not have the cluster.
    pub fn container_source(&self) -> impl Fn() -> Vec<Container> + Send + Sync + 'static + use<> {
        let nodes = self.nodes.clone();
        move || nodes.iter().flat_map(|node| node.containers()).collect()
    }

    /// Volumes of all nodes are served by a driver from now on.
    pub fn set_node_driver(&self, driver: &Arc<dyn NodeDriver>) {
        self.nodes.iter().for_each(|node| node.set_driver(Arc::clone(driver)));
    }

    /// Starts the controllers of volumes, which ask this driver. What they need of the API is the administrator's to declare:
    /// the kinds of snapshots, and the roles of the addons `volume-snapshots` and `csi-local`.
    ///
    /// # Errors
    /// When a controller cannot be put together.
    pub fn start_volumes(&self, driver: CsiController) -> Result<(), BoxError> {
        *self.csi.lock() = Some(driver);
        OF_VOLUMES.into_iter().try_for_each(|part| self.start(part))
    }

    /// How many pods were bound only after they had waited in vain for an event for as long as the scheduler lets them.
    #[must_use]
    pub fn bound_after_flush(&self) -> u64 {
        let of_one = |metrics: &Arc<Metrics>| {
            let text = metrics.text();
            let lines = text.lines().filter(|line| line.starts_with(AFTER_FLUSH));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum::<u64>()
        };
        self.schedulers.lock().iter().map(of_one).sum()
    }

    /// Ends a part as a crash does: its tasks end wherever they wait.
    pub fn stop(&self, part: Part) {
        if let Part::ApiServer(number) = part {
            if let Some(server) = self.servers.get(number) {
                server.crash();
            }
        } else if let Some(running) = self.running.lock().remove(&part) {
            running.tasks.cancel();
        }
    }

    /// Starts a part; one that runs is stopped first. An API server answers only some time later.
    ///
    /// # Errors
    /// When it cannot be put together.
    pub fn start(&self, part: Part) -> Result<(), BoxError> {
        self.stop(part);
        match part {
            Part::ApiServer(number) => self.servers.get(number).ok_or("there is no such server")?.start(),
            Part::Controllers(number) => self.start_client(part, number, |connection| {
                let (transport, cx) = (Arc::clone(&connection.transport), connection.cx.clone());
                let client_for = move |identity: &str| controller_client(identity, &transport, &cx);
                let client = connection.client(CONTROLLER_MANAGER, 20.0, 30)?;
                let gates = self.gates.clone();
                let start = move |client: &Client| start_controllers(client, Arc::new(client_for), &gates);
                run_one(self.shape.controllers, &client, "kube-controller-manager", part, start)
            }),
            Part::Scheduler(number) => self.start_client(part, number, |connection| {
                let client = connection.client(SCHEDULER, 50.0, 100)?;
                let metrics = Metrics::new(MetricsOptions::default());
                self.schedulers.lock().push(Arc::clone(&metrics));
                let gates = self.gates.clone();
                let start = move |client: &Client| start_scheduler(client, &metrics, &gates);
                run_one(self.shape.schedulers, &client, "kube-scheduler", part, start)
            }),
            Part::Node(number) => {
                let node = self.nodes.get(usize::from(number)).ok_or("there is no such node")?;
                self.start_client(part, number, |connection| {
                    node.start(&connection.client(&format!("system:node:{part}"), 50.0, 100)?)
                })
            }
            Part::CsiController => {
                let driver = self.csi.lock().clone().ok_or("there is no driver")?;
                self.start_client(part, 0, |connection| {
                    start_csi_controller(&connection.json_client(CSI_CONTROLLER)?, driver);
                    Ok(())
                })
            }
            Part::SnapshotController => self.start_client(part, 0, |connection| {
                start_snapshot_controller(&connection.json_client(SNAPSHOT_CONTROLLER)?);
                Ok(())
            }),
        }
    }

    /// Starts a part that is a client of the servers, the `number`th of its kind.
    fn start_client(
        &self,
        part: Part,
        number: u8,
        start: impl FnOnce(&Connection) -> Result<(), BoxError>,
    ) -> Result<(), BoxError> {
        let tasks = self.tasks.child(&part.to_string());
        let servers = self.servers.preferring(number % self.shape.api_servers.max(1));
        let faults = self.faults.lock().clone();
        let layer = FaultLayer::new(servers, faults.clone(), split(&self.rng)).outlived_in(self.tasks.child("network"));
        let layer = Arc::new(layer);
        let transport = self.trace.recording(&part.to_string(), Arc::clone(&layer) as _);
        let clock = self.clocks.get(&part).ok_or("there is no such part")?;
        let cx = ClientCx::new(Arc::clone(clock) as _, split(&self.rng), tasks.clone());
        start(&Connection { transport, cx })?;
        self.running.lock().insert(part, Running { tasks, layer, faults });
        Ok(())
    }

    /// Ends everything.
    pub async fn shutdown(self) {
        for part in self.parts() {
            self.stop(part);
        }
        self.tasks.shutdown(DRAIN).await;
    }

    /// Waits until the API server answers the administrator.
    ///
    /// # Errors
    /// When it does not within two minutes.
    pub async fn wait_serving(&self) -> Result<(), BoxError> {
        let deadline = tokio::time::Instant::now() + START;
        while let Err(error) = self.admin.all::<Namespace>().get("default").await {
            if tokio::time::Instant::now() > deadline {
                return Err(error.into());
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Waits for what running pods needs: nodes, a service account to run as, and the server's address.
    async fn wait_ready(&self) -> Result<(), BoxError> {
        let deadline = tokio::time::Instant::now() + START;
        loop {
            let missing = self.missing().await?;
            if missing.is_empty() {
                return Ok(());
            }
            if tokio::time::Instant::now() > deadline {
                return Err(format!("the cluster did not get ready: {}", missing.join(", ")).into());
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn missing(&self) -> Result<Vec<String>, BoxError> {
        let mut missing = Vec::new();
        if self.admin.all::<Namespace>().get_opt("default").await?.is_none() {
            missing.push("namespace default".to_owned());
        }
        if self.admin.namespaced::<ServiceAccount>("default").get_opt("default").await?.is_none() {
            missing.push("service account default".to_owned());
        }
        if self.admin.namespaced::<Service>("default").get_opt("kubernetes").await?.is_none() {
            missing.push("service kubernetes".to_owned());
        }
        for number in 0..NODES {
            let name = Part::Node(number).to_string();
            // The taint of a new node goes when the node controller has seen that it is ready.
            let node = self.admin.all::<Node>().get_opt(&name).await?;
            if node.is_none_or(|node| !node.spec.taints.is_empty()) {
                missing.push(name);
            }
        }
        Ok(missing)
    }
}

fn parts_of(shape: Shape) -> Vec<Part> {
    let Shape { api_servers, controllers, schedulers } = shape;
    let servers = (0..api_servers).map(Part::ApiServer);
    let clients = (0..controllers).map(Part::Controllers).chain((0..schedulers).map(Part::Scheduler));
    servers.chain(clients).chain((0..NODES).map(Part::Node)).collect()
}

/// Starts the only one of its kind at once, and one of several when it is elected.
fn run_one(
    count: u8,
    client: &Client,
    lease: &str,
    part: Part,
    start: impl FnOnce(&Client) -> Result<(), BoxError> + Send + 'static,
) -> Result<(), BoxError> {
    if count == 1 { start(client) } else { start_elected(client, lease, &part.to_string(), Box::new(start)) }
}

/// A source that follows from another.
fn split(rng: &Rng) -> SharedRng {
    Rng::seeded(rng.below(u64::MAX))
}

/// The clients of the controllers, each with its service account, as kube-controller-manager has them with
/// `--use-service-account-credentials`.
fn controller_client(identity: &str, transport: &Arc<dyn Transport>, cx: &ClientCx) -> Result<Client, ConfigError> {
    let of_controller = controllers::ALL.iter().any(|descriptor| descriptor.identity == identity);
    let user =
        if of_controller { format!("system:serviceaccount:kube-system:{identity}") } else { CONTROLLER_MANAGER.into() };
    Client::with_transport(Arc::clone(transport), config(&user, 20.0, 30).with_user_agent_suffix(identity), cx.clone())
}

/// The token of a user is its name.
fn config(user: &str, qps: f64, burst: u32) -> ClientConfig {
    let mut config = ClientConfig::for_server("https://in-process").with_component("simulated").with_rate(qps, burst);
    config.credentials = Credentials::Token(user.to_owned());
    config
}

fn tokens() -> Vec<StaticToken> {
    let token = |user: String, groups: &[&str]| StaticToken {
        token: user.clone(),
        user,
        uid: String::new(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
    };
    let identities: BTreeSet<&str> = controllers::ALL.iter().map(|descriptor| descriptor.identity).collect();
    let accounts = identities.iter().map(|identity| format!("system:serviceaccount:kube-system:{identity}"));
    let accounts = accounts.chain([CSI_CONTROLLER, SNAPSHOT_CONTROLLER].map(str::to_owned));
    let mut tokens = vec![
        token(ADMIN.to_owned(), &["system:masters"]),
        token(CONTROLLER_MANAGER.to_owned(), &[]),
        token(SCHEDULER.to_owned(), &[]),
    ];
    tokens.extend((0..NODES).map(|number| token(format!("system:node:{}", Part::Node(number)), &["system:nodes"])));
    tokens.extend(
        accounts.map(|account| token(account, &["system:serviceaccounts", "system:serviceaccounts:kube-system"])),
    );
    tokens
}
