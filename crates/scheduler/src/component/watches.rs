//! What the scheduler watches: pods and nodes feed it, and further kinds as far as its plugins read or hear of them.

use std::sync::Arc;

use api_types::core_v1::{Node, Pod};
use client::{Change, Client, Informer, InformerOptions, Informers, Scope};

use crate::cycle::Scheduler;
use crate::listers::{Lister, Listers};

/// Pods that have ended take no room and wait for none.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The informers of a scheduler.
pub struct Watches {
    informers: Informers,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    listers: Arc<Listers>,
}

impl Watches {
    /// Watches pods and nodes through a client; nothing is asked before [`Watches::start`].
    #[must_use]
    pub fn new(client: &Client) -> Self {
        let options = InformerOptions { resync: None, drop_managed_fields: true, ..InformerOptions::default() };
        let informers = Informers::new(client, options);
        let (pods, nodes) = (informers.scoped(&Scope::fields(LIVE_PODS)), informers.of());
        let listers = Arc::new(Listers::watched(informers.clone()));
        listers.set(Lister::Watched(pods.clone()));
        Self { informers, pods, nodes, listers }
    }

    /// What plugins are built with: whatever they ask for is watched, too.
    #[must_use]
    pub fn listers(&self) -> &Arc<Listers> {
        &self.listers
    }

    /// Begins to watch what is asked for by now; once more does no harm.
    pub fn start(&self) {
        self.informers.start();
    }

    /// Whether everything has been listed.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.informers.has_synced()
    }

    /// The pods that have not ended.
    #[must_use]
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        self.pods.list()
    }

    /// Waits until everything has been listed.
    pub async fn wait_synced(&self) {
        self.informers.wait_synced().await;
    }

    /// Tells a scheduler of nodes, pods, and what its plugins want to hear of; of those that are known already first.
    pub fn feed(&self, scheduler: &Arc<Scheduler>) {
        let to = Arc::clone(scheduler);
        self.nodes.subscribe(move |change| match change {
            Change::Added { object, .. } => to.node_added(object),
            Change::Updated { old, new } => to.node_updated(old, new),
            Change::Deleted { object, .. } => to.node_deleted(object),
        });
        let to = Arc::clone(scheduler);
        self.pods.subscribe(move |change| match change {
            Change::Added { object, .. } => to.pod_added(object),
            Change::Updated { old, new } => to.pod_updated(old, new),
            Change::Deleted { object, stale: false } => to.pod_deleted(object),
            Change::Deleted { object, stale: true } => to.pod_lost(object),
        });
        for kind in scheduler.other_kinds() {
            let to = Arc::clone(scheduler);
            kind.subscribe(&self.informers, Arc::new(move |event, object| to.other_changed(event, object)));
        }
    }
}
