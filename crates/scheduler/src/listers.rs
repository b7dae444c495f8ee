//! Objects that plugins look at besides nodes and pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::apps_v1::{ReplicaSet, StatefulSet};
use api_types::core_v1::{Namespace, Pod, ReplicationController, Service};
use api_types::policy_v1::PodDisruptionBudget;
use parking_lot::RwLock;

/// Reads of what the watches have brought in. Nothing here goes over the network.
pub trait Listers: Send + Sync {
    /// A pod in its newest version.
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>>;
    /// All namespaces.
    fn namespaces(&self) -> Vec<Arc<Namespace>>;
    /// The services of a namespace.
    fn services(&self, namespace: &str) -> Vec<Arc<Service>>;
    /// A replication controller.
    fn replication_controller(&self, namespace: &str, name: &str) -> Option<Arc<ReplicationController>>;
    /// A replica set.
    fn replica_set(&self, namespace: &str, name: &str) -> Option<Arc<ReplicaSet>>;
    /// A stateful set.
    fn stateful_set(&self, namespace: &str, name: &str) -> Option<Arc<StatefulSet>>;
    /// All disruption budgets.
    fn disruption_budgets(&self) -> Vec<Arc<PodDisruptionBudget>>;
}

/// Objects in memory, for tests and benchmarks.
#[derive(Default)]
pub struct MemoryListers {
    /// Pods by namespace and name.
    pub pods: RwLock<BTreeMap<(String, String), Arc<Pod>>>,
    /// Namespaces.
    pub namespaces: Vec<Arc<Namespace>>,
    /// Services.
    pub services: Vec<Arc<Service>>,
    /// Replication controllers.
    pub replication_controllers: Vec<Arc<ReplicationController>>,
    /// Replica sets.
    pub replica_sets: Vec<Arc<ReplicaSet>>,
    /// Stateful sets.
    pub stateful_sets: Vec<Arc<StatefulSet>>,
    /// Disruption budgets.
    pub disruption_budgets: Vec<Arc<PodDisruptionBudget>>,
}

macro_rules! find {
    ($list:expr, $namespace:expr, $name:expr) => {
        $list.iter().find(|object| object.metadata.namespace == $namespace && object.metadata.name == $name).cloned()
    };
}

impl MemoryListers {
    /// Adds or replaces a pod.
    pub fn put_pod(&self, pod: Arc<Pod>) {
        self.pods.write().insert((pod.metadata.namespace.clone(), pod.metadata.name.clone()), pod);
    }
}

impl Listers for MemoryListers {
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.pods.read().get(&(namespace.to_owned(), name.to_owned())).cloned()
    }
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        find!(self.namespaces, "", name)
    }
    fn namespaces(&self) -> Vec<Arc<Namespace>> {
        self.namespaces.clone()
    }
    fn services(&self, namespace: &str) -> Vec<Arc<Service>> {
        self.services.iter().filter(|service| service.metadata.namespace == namespace).cloned().collect()
    }
    fn replication_controller(&self, namespace: &str, name: &str) -> Option<Arc<ReplicationController>> {
        find!(self.replication_controllers, namespace, name)
    }
    fn replica_set(&self, namespace: &str, name: &str) -> Option<Arc<ReplicaSet>> {
        find!(self.replica_sets, namespace, name)
    }
    fn stateful_set(&self, namespace: &str, name: &str) -> Option<Arc<StatefulSet>> {
        find!(self.stateful_sets, namespace, name)
    }
    fn disruption_budgets(&self) -> Vec<Arc<PodDisruptionBudget>> {
        self.disruption_budgets.clone()
    }
}
