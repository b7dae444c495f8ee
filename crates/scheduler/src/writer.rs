//! What the scheduler writes: bindings, pod statuses and evictions; and what its plugins write, claims and volumes. Traits,
//! so that the scheduler runs without an API server in tests and benchmarks.

use api_machinery::meta::Condition;
use api_machinery::object::Kind;
use api_types::core_v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus};
use api_types::resource_v1::ResourceClaim;
use api_types::scheduling_v1alpha2::PodGroup;
use async_trait::async_trait;

use crate::listers::NotFound;

/// Why a write failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The pod is gone.
    #[error("{0}")]
    NotFound(String),
    /// It is not the version any more that the change was made from.
    #[error("{0}")]
    Conflict(String),
    /// Something else, in the API server's words.
    #[error("{0}")]
    Failed(String),
}

/// Writes to the cluster.
#[async_trait]
pub trait ClusterWriter: Send + Sync {
    /// Binds a pod to a node. Never repeated. Fails only where the pod is not on the node, as far as can be found out: its
    /// room is given away then, and the pod is tried again.
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError>;

    /// Changes a pod's status from what `pod` says to `status`; only the differences are written.
    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError>;

    /// The same for a pod that is about to be deleted.
    async fn patch_victim(&self, victim: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        self.patch_status(victim, status).await
    }

    /// Deletes a pod with its own grace period; one that has its name by now but is another stays.
    async fn delete(&self, pod: &Pod) -> Result<(), WriteError>;
}

/// There is no object that could be changed.
fn refused<T: Kind>(name: &str) -> WriteError {
    WriteError::NotFound(NotFound::of::<T>(name).to_string())
}

/// Writes of plugins. Each replaces an object whole, where it says nothing else, and fails where it is not the version that it
/// was made from any more. By default there is nothing that could be changed.
#[async_trait]
pub trait ObjectWriter: Send + Sync {
    /// Changes a volume; what it is afterwards.
    async fn update_volume(&self, volume: &PersistentVolume) -> Result<PersistentVolume, WriteError> {
        Err(refused::<PersistentVolume>(&volume.metadata.name))
    }

    /// Changes a claim; what it is afterwards.
    async fn update_claim(&self, claim: &PersistentVolumeClaim) -> Result<PersistentVolumeClaim, WriteError> {
        Err(refused::<PersistentVolumeClaim>(&claim.metadata.name))
    }

    /// A claim for devices as the API server has it.
    async fn device_claim(&self, _namespace: &str, name: &str) -> Result<ResourceClaim, WriteError> {
        Err(refused::<ResourceClaim>(name))
    }

    /// Makes a claim for devices; what it is then.
    async fn create_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        Err(refused::<ResourceClaim>(&claim.metadata.generate_name))
    }

    /// Deletes a claim for devices; one that has its name by now but is another stays.
    async fn delete_device_claim(&self, claim: &ResourceClaim) -> Result<(), WriteError> {
        Err(refused::<ResourceClaim>(&claim.metadata.name))
    }

    /// Changes a claim for devices, but for its status; what it is afterwards.
    async fn update_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        Err(refused::<ResourceClaim>(&claim.metadata.name))
    }

    /// Changes the status of a claim for devices; what the claim is afterwards.
    async fn update_device_claim_status(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        Err(refused::<ResourceClaim>(&claim.metadata.name))
    }

    /// A claim for devices is not reserved for a consumer any more, whatever else has become of it; what it is afterwards.
    async fn release_device_claim(&self, claim: &ResourceClaim, _consumer: &str) -> Result<ResourceClaim, WriteError> {
        Err(refused::<ResourceClaim>(&claim.metadata.name))
    }

    /// Sets a condition in the status of a group of pods.
    async fn patch_group_status(&self, group: &PodGroup, _condition: &Condition) -> Result<(), WriteError> {
        Err(refused::<PodGroup>(&group.metadata.name))
    }
}

/// Refuses every change, where there is nothing that plugins could change.
pub struct NoObjects;

impl ObjectWriter for NoObjects {}

/// How important an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For information.
    Normal,
    /// Something is wrong.
    Warning,
}

/// An event that people read.
#[derive(Debug, Clone)]
pub struct PodEvent<'a> {
    /// The scheduler name that reports it.
    pub scheduler: &'a str,
    /// The pod it is about.
    pub about: &'a Pod,
    /// What else it has to do with.
    pub related: Option<ObjectReference>,
    /// How important it is.
    pub severity: Severity,
    /// Why, for machines.
    pub reason: &'static str,
    /// What the scheduler was doing.
    pub action: &'static str,
    /// The text.
    pub note: String,
}

/// Takes events; must not wait.
pub trait EventSink: Send + Sync {
    /// Takes one.
    fn event(&self, event: &PodEvent<'_>);
}

/// Drops events.
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _: &PodEvent<'_>) {}
}
