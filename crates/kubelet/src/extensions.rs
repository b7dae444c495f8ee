//! What extends the kubelet over sockets: plugins that register, and what they bring.

use std::path::PathBuf;
use std::sync::Arc;

use api_types::storage_v1::CSIDriver;
use client::{Client, Informers};
use component_base::Lifecycle;
use component_base::health::Check;
use component_helpers::group_claims::Whose;
use kubelet_node::topology::TopologyManager;
use parking_lot::Mutex;

use crate::config::gates;
use crate::csi::{self, Counts, CsiHandler, CsiNodes, Drivers};
use crate::devices::{self, DeviceHandler, Devices, DevicesDeps};
use crate::dra::{DraDrivers, DraHandler, DriverDeps, DynamicResources, DynamicResourcesDeps, Healths, StateError};
use crate::engine::PodEngine;
use crate::metrics::KubeletMetrics;
use crate::node::NodeSettings;
use crate::plugins::{PluginHandler, PluginWatcher};
use crate::pod_resources::{self, Lister};
use crate::pods_api::{self, PodsServer};
use crate::volumes::CsiDeps;

/// The plugins of a node.
pub(crate) struct Extensions {
    /// The drivers of volumes.
    drivers: Arc<Drivers>,
    /// None without an API server.
    csi_nodes: Option<Arc<CsiNodes>>,
    /// How many volumes of each driver fit the node; none without an API server.
    counts: Option<Arc<Counts>>,
    /// Why the node is not ready, as far as it is about plugins.
    not_ready: Arc<Mutex<Option<String>>>,
    /// Why device plugins cannot register.
    unregistrable: Arc<Mutex<Option<String>>>,
    /// What plugins offer.
    pub(crate) devices: Arc<Devices>,
    /// None without an API server.
    dynamic: Option<Dynamic>,
    root: PathBuf,
}

/// The claims of pods, and the drivers that make their devices ready.
struct Dynamic {
    drivers: Arc<DraDrivers>,
    claims: Arc<DynamicResources>,
}

impl Dynamic {
    fn new(
        node: &NodeSettings,
        client: &Client,
        metrics: &Arc<KubeletMetrics>,
        lifecycle: &Lifecycle,
    ) -> Result<Self, StateError> {
        let (clock, gates) = (lifecycle.clock(), lifecycle.gates());
        let told = gates.enabled(gates::RESOURCE_HEALTH);
        let healths = told.then(|| Arc::new(Healths::new(&node.root_dir, clock.clone())));
        let drivers = DraDrivers::new(DriverDeps {
            client: client.clone(),
            node_name: node.name.clone(),
            observer: Some(metrics.clone()),
            healths: healths.clone(),
            rng: lifecycle.rng().clone(),
            tasks: lifecycle.tasks().clone(),
        });
        let deps = DynamicResourcesDeps {
            client: client.clone(),
            drivers: drivers.clone(),
            healths,
            observer: metrics.clone(),
            clock: clock.clone(),
            extended: gates.enabled(gates::EXTENDED_RESOURCE),
            whose: if gates.enabled(gates::GROUP_CLAIMS) { Whose::OwnOrGroups } else { Whose::Own },
            health_messages: gates.enabled(gates::RESOURCE_HEALTH_MESSAGE),
        };
        Ok(Self { claims: DynamicResources::new(&node.root_dir, deps)?, drivers })
    }
}

impl Extensions {
    /// # Errors
    /// It cannot be told which claims an earlier kubelet had in use.
    pub(crate) fn new(
        node: &NodeSettings,
        client: Option<&Client>,
        informers: Option<&Informers>,
        metrics: &Arc<KubeletMetrics>,
        lifecycle: &Lifecycle,
    ) -> Result<Self, StateError> {
        let deps = DevicesDeps {
            counts: metrics.clone(),
            clock: lifecycle.clock().clone(),
            tasks: lifecycle.tasks().clone(),
            extended: lifecycle.gates().enabled(gates::EXTENDED_RESOURCE),
        };
        let drivers = Drivers::new(Some(metrics.clone()));
        let csi_nodes = client.map(|client| Arc::new(CsiNodes::new(client, &node.name)));
        let counts = informers.zip(csi_nodes.as_ref());
        Ok(Self {
            counts: counts
                .map(|(informers, nodes)| Counts::new(drivers.clone(), nodes.clone(), informers.of::<CSIDriver>())),
            drivers,
            csi_nodes,
            not_ready: Arc::new(Mutex::new(client.map(|_| csi::UNINITIALIZED.to_owned()))),
            unregistrable: Arc::default(),
            devices: Devices::new(&node.root_dir.join("device-plugins"), deps),
            dynamic: client.map(|client| Dynamic::new(node, client, metrics, lifecycle)).transpose()?,
            root: node.root_dir.clone(),
        })
    }

    /// The claims of pods; none without an API server.
    pub(crate) fn claims(&self) -> Option<Arc<DynamicResources>> {
        self.dynamic.as_ref().map(|dynamic| dynamic.claims.clone())
    }

    /// What volumes of drivers are made with.
    pub(crate) fn csi(&self, informers: Option<&Informers>, node_name: &str) -> CsiDeps {
        let objects = informers.map(Informers::of::<CSIDriver>);
        let (drivers, counts) = (self.drivers.clone(), self.counts.clone());
        CsiDeps { drivers, objects, counts, node_name: node_name.to_owned() }
    }

    pub(crate) fn not_ready(&self) -> Option<String> {
        self.not_ready.lock().clone()
    }

    /// Whether device plugins can register.
    pub(crate) fn registration(&self) -> Check {
        let unregistrable = self.unregistrable.clone();
        Check::instant("device-plugin", move || match unregistrable.lock().as_deref() {
            None => Ok(()),
            Some(error) => Err(format!(
                "device registration error: device plugin registration gRPC server failed and no device plugins can \
                 register: {error}"
            )),
        })
    }

    /// Takes plugins from now on, and tells who has what of theirs.
    pub(crate) fn start(
        &self,
        engine: &PodEngine,
        topology: &Arc<TopologyManager>,
        metrics: &Arc<KubeletMetrics>,
        lifecycle: &Lifecycle,
    ) {
        let tasks = lifecycle.tasks();
        if let Some(nodes) = self.csi_nodes.clone() {
            let not_ready = self.not_ready.clone();
            let made = async move { csi::initialize(&nodes, |error| *not_ready.lock() = error).await };
            tasks.spawn_cancellable("csi-node", made);
        }
        if let Some(counts) = self.counts.clone() {
            tasks.spawn_cancellable("csi-counts", counts.run());
        }
        let drivers_of_volumes = CsiHandler { drivers: self.drivers.clone(), nodes: self.csi_nodes.clone() };
        let mut handlers: Vec<Arc<dyn PluginHandler>> =
            vec![Arc::new(drivers_of_volumes), Arc::new(DeviceHandler(self.devices.clone()))];
        if let Some(dynamic) = &self.dynamic {
            dynamic.drivers.start();
            handlers.push(Arc::new(DraHandler(dynamic.drivers.clone())));
        }
        let watcher = PluginWatcher {
            directory: self.root.join("plugins_registry"),
            handlers,
            clock: lifecycle.clock().clone(),
            counts: metrics.clone(),
        };
        tasks.spawn_cancellable("plugin-watcher", watcher.run());
        let registry = devices::serve(self.devices.clone(), tasks.token());
        let unregistrable = self.unregistrable.clone();
        tasks.spawn("device-registry", async move {
            if let Err(error) = registry.await {
                tracing::error!(%error, "Device plugins cannot register");
                *unregistrable.lock() = Some(error.to_string());
            }
        });
        let (pods, active_alone) = (engine.clone(), lifecycle.gates().enabled(gates::LIST_ACTIVE_PODS));
        let pods = Box::new(move || if active_alone { pods.active_pods() } else { pods.pods() });
        let lister = Lister::new(pods, topology.clone(), self.claims(), metrics.clone(), lifecycle.clock().clone());
        let (root, token) = (self.root.clone(), tasks.token());
        tasks.spawn("pod-resources", async move {
            if let Err(error) = pod_resources::serve(&root, lister, token).await {
                tracing::error!(%error, "The pod resources API cannot be served");
            }
        });
        if lifecycle.gates().enabled(gates::PODS_API) {
            self.serve_pods(engine, metrics, lifecycle);
        }
    }

    /// Tells whoever runs on the machine of the pods.
    fn serve_pods(&self, engine: &PodEngine, metrics: &Arc<KubeletMetrics>, lifecycle: &Lifecycle) {
        let (tasks, known, root) = (lifecycle.tasks(), Arc::new(engine.clone()), self.root.clone());
        let server = PodsServer::new(known, metrics.clone(), lifecycle.clock().clone(), tasks.token());
        tasks.spawn("pods-api", async move {
            if let Err(error) = pods_api::serve(&root, server).await {
                tracing::error!(%error, "The pods API cannot be served");
            }
        });
    }
}
