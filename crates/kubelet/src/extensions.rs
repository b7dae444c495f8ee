//! What extends the kubelet over sockets: plugins that register, and what they bring.

use std::path::PathBuf;
use std::sync::Arc;

use api_types::storage_v1::CSIDriver;
use client::{Client, Informers};
use component_base::Lifecycle;
use parking_lot::Mutex;

use crate::csi::{self, CsiHandler, CsiNodes, Drivers};
use crate::devices::{self, DeviceHandler, Devices};
use crate::engine::PodEngine;
use crate::metrics::KubeletMetrics;
use crate::node::NodeSettings;
use crate::plugins::{PluginHandler, PluginWatcher};
use crate::pod_resources::{self, Lister};
use crate::volumes::CsiDeps;

/// The plugins of a node.
pub(crate) struct Extensions {
    /// The drivers of volumes.
    drivers: Arc<Drivers>,
    /// None without an API server.
    csi_nodes: Option<Arc<CsiNodes>>,
    /// Why the node is not ready, as far as it is about plugins.
    not_ready: Arc<Mutex<Option<String>>>,
    /// What plugins offer.
    pub(crate) devices: Arc<Devices>,
    root: PathBuf,
}

impl Extensions {
    pub(crate) fn new(
        node: &NodeSettings,
        client: Option<&Client>,
        metrics: &Arc<KubeletMetrics>,
        lifecycle: &Lifecycle,
    ) -> Self {
        let (clock, tasks) = (lifecycle.clock().clone(), lifecycle.tasks().clone());
        Self {
            drivers: Drivers::new(Some(metrics.clone())),
            csi_nodes: client.map(|client| Arc::new(CsiNodes::new(client, &node.name))),
            not_ready: Arc::new(Mutex::new(client.map(|_| csi::UNINITIALIZED.to_owned()))),
            devices: Devices::new(&node.root_dir.join("device-plugins"), metrics.clone(), clock, tasks),
            root: node.root_dir.clone(),
        }
    }

    /// What volumes of drivers are made with.
    pub(crate) fn csi(&self, informers: Option<&Informers>, node_name: &str) -> CsiDeps {
        let objects = informers.map(Informers::of::<CSIDriver>);
        CsiDeps { drivers: self.drivers.clone(), objects, node_name: node_name.to_owned() }
    }

    pub(crate) fn not_ready(&self) -> Option<String> {
        self.not_ready.lock().clone()
    }

    /// Takes plugins from now on, and tells who has what of theirs.
    pub(crate) fn start(&self, engine: &PodEngine, metrics: &Arc<KubeletMetrics>, lifecycle: &Lifecycle) {
        let tasks = lifecycle.tasks();
        if let Some(nodes) = self.csi_nodes.clone() {
            let not_ready = self.not_ready.clone();
            let made = async move { csi::initialize(&nodes, |error| *not_ready.lock() = error).await };
            tasks.spawn_cancellable("csi-node", made);
        }
        let drivers_of_volumes = CsiHandler { drivers: self.drivers.clone(), nodes: self.csi_nodes.clone() };
        let handlers: Vec<Arc<dyn PluginHandler>> =
            vec![Arc::new(drivers_of_volumes), Arc::new(DeviceHandler(self.devices.clone()))];
        let watcher = PluginWatcher {
            directory: self.root.join("plugins_registry"),
            handlers,
            clock: lifecycle.clock().clone(),
            counts: metrics.clone(),
        };
        tasks.spawn_cancellable("plugin-watcher", watcher.run());
        let registry = devices::serve(self.devices.clone(), tasks.token());
        tasks.spawn("device-registry", async move {
            if let Err(error) = registry.await {
                tracing::error!(%error, "Device plugins cannot register");
            }
        });
        let pods = engine.clone();
        let pods = Box::new(move || pods.active_pods());
        let lister = Lister::new(pods, self.devices.clone(), metrics.clone(), lifecycle.clock().clone());
        let (root, token) = (self.root.clone(), tasks.token());
        tasks.spawn("pod-resources", async move {
            if let Err(error) = pod_resources::serve(&root, lister, token).await {
                tracing::error!(%error, "The pod resources API cannot be served");
            }
        });
    }
}
