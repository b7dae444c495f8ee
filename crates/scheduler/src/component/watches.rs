//! What the scheduler watches: pods and nodes feed it, the rest is there to be looked up.

use std::sync::Arc;

use api_types::apps_v1::{ReplicaSet, StatefulSet};
use api_types::core_v1::{Namespace, Node, Pod, ReplicationController, Service};
use api_types::policy_v1::PodDisruptionBudget;
use client::{Change, Client, Informer, InformerOptions, Informers, Scope};

use crate::cycle::Scheduler;
use crate::listers::Listers;

/// Pods that have ended take no room and wait for none.
const LIVE_PODS: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The informers of a scheduler.
pub struct Watches {
    informers: Informers,
    pods: Informer<Pod>,
    nodes: Informer<Node>,
    namespaces: Informer<Namespace>,
    services: Informer<Service>,
    replication_controllers: Informer<ReplicationController>,
    replica_sets: Informer<ReplicaSet>,
    stateful_sets: Informer<StatefulSet>,
    budgets: Informer<PodDisruptionBudget>,
}

impl Watches {
    /// Watches through a client; nothing is asked before [`Watches::start`].
    #[must_use]
    pub fn new(client: &Client) -> Self {
        let options = InformerOptions { resync: None, drop_managed_fields: true, ..InformerOptions::default() };
        let informers = Informers::new(client, options);
        Self {
            pods: informers.scoped(&Scope::fields(LIVE_PODS)),
            nodes: informers.of(),
            namespaces: informers.of(),
            services: informers.of(),
            replication_controllers: informers.of(),
            replica_sets: informers.of(),
            stateful_sets: informers.of(),
            budgets: informers.of(),
            informers,
        }
    }

    /// Begins to watch; once is enough.
    pub fn start(&self) {
        self.informers.start();
    }

    /// Whether everything has been listed.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.pods.has_synced()
            && self.nodes.has_synced()
            && self.namespaces.has_synced()
            && self.services.has_synced()
            && self.replication_controllers.has_synced()
            && self.replica_sets.has_synced()
            && self.stateful_sets.has_synced()
            && self.budgets.has_synced()
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

    /// Tells a scheduler of nodes and pods, those that are known already first.
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
    }
}

impl Listers for Watches {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods.find(namespace, name)
    }
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.namespaces.find("", name)
    }
    fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.list()
    }
    fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        self.services.in_namespace(namespace)
    }
    fn replication_controller(&self, namespace: &str, name: &str) -> Option<Arc<ReplicationController>> {
        self.replication_controllers.find(namespace, name)
    }
    fn replica_set(&self, namespace: &str, name: &str) -> Option<Arc<ReplicaSet>> {
        self.replica_sets.find(namespace, name)
    }
    fn stateful_set(&self, namespace: &str, name: &str) -> Option<Arc<StatefulSet>> {
        self.stateful_sets.find(namespace, name)
    }
    fn disruption_budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
        self.budgets.list()
    }
}
