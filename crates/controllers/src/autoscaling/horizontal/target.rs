//! What is scaled: found by its kind, whatever that is, and read and set through its subresource `scale`.
//!
//! Workloads of the kinds that everybody has are at hand in informers. What those say is good enough to see that nothing
//! is to be done, which is what nearly every look ends with; whoever scales asks the server first.

use std::time::Duration;

use api_machinery::gvk::{GroupKind, GroupVersion, GroupVersionError};
use api_machinery::object::{Kind, Object};
use api_types::apps_v1::{Deployment, ReplicaSet, StatefulSet};
use api_types::autoscaling_v1::Scale;
use api_types::autoscaling_v2::CrossVersionObjectReference;
use api_types::core_v1::ReplicationController;
use client::{Client, ClientError, Informer, Informers, ResourceInfo, RestMapper, retry_on_conflict};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long what the server said of its kinds is believed, as upstream.
const BELIEVED: Duration = Duration::from_secs(30);

/// Why the target's scale is not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error(transparent)]
    Version(#[from] GroupVersionError),
    #[error("no matches for kind \"{kind}\" in group \"{group}\"")]
    NoMatch { kind: String, group: String },
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The kinds that the server has.
pub(super) struct Kinds {
    mapper: RestMapper,
    client: Client,
    refreshed: Mutex<Option<Instant>>,
}

impl Kinds {
    pub(super) fn new(mapper: RestMapper, client: Client) -> Self {
        Self { mapper, client, refreshed: Mutex::default() }
    }

    /// The first resource of a kind.
    pub(super) async fn resource_of(&self, kind: &GroupKind) -> Result<ResourceInfo, TargetError> {
        let none = || TargetError::NoMatch { kind: kind.kind.to_string(), group: kind.group.to_string() };
        self.resources_of(kind).await?.into_iter().next().ok_or_else(none)
    }

    /// All resources of a kind, each in the version that its group prefers.
    async fn resources_of(&self, kind: &GroupKind) -> Result<Vec<ResourceInfo>, TargetError> {
        self.refresh().await?;
        Ok(self.mapper.preferred_resources_of(kind))
    }

    async fn refresh(&self) -> Result<(), ClientError> {
        let mut refreshed = self.refreshed.lock().await;
        let now = self.client.clock().monotonic();
        if refreshed.is_none_or(|at| now.saturating_duration_since(at) >= BELIEVED) {
            self.mapper.refresh().await?;
            *refreshed = Some(now);
        }
        Ok(())
    }
}

/// The workloads that are at hand.
pub(super) struct AtHand {
    deployments: Informer<Deployment>,
    replica_sets: Informer<ReplicaSet>,
    stateful_sets: Informer<StatefulSet>,
    controllers: Informer<ReplicationController>,
}

impl AtHand {
    /// Nobody waits for these informers: what is not there yet is asked for.
    pub(super) fn of(informers: &Informers) -> Self {
        Self {
            deployments: informers.of(),
            replica_sets: informers.of(),
            stateful_sets: informers.of(),
            controllers: informers.of(),
        }
    }

    fn size(&self, group: &str, namespace: &str, target: &CrossVersionObjectReference) -> Option<Size> {
        let name = &target.name;
        match (group, target.kind.as_str()) {
            ("apps", "Deployment") => size_in(&self.deployments, namespace, name),
            ("apps", "ReplicaSet") => size_in(&self.replica_sets, namespace, name),
            ("apps", "StatefulSet") => size_in(&self.stateful_sets, namespace, name),
            ("", "ReplicationController") => size_in(&self.controllers, namespace, name),
            _ => None,
        }
    }
}

/// What the subresource `scale` would show of an object.
fn size_in<T: Kind + Object>(informer: &Informer<T>, namespace: &str, name: &str) -> Option<Size> {
    let (object, kind) = (informer.find(namespace, name)?, T::TYPE);
    let scale = kinds::find(kind.group, kind.version, kind.resource)?.scale(&*object)?;
    let (status_replicas, selector) = (scale.status_replicas, scale.selector);
    Some(Size { spec_replicas: scale.spec_replicas.ok()?, status_replicas, selector })
}

/// What a scale says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Size {
    /// Wanted replicas.
    pub(super) spec_replicas: i32,
    /// Present replicas.
    pub(super) status_replicas: i32,
    /// The selector in text form.
    pub(super) selector: String,
}

/// The scale of a workload as the server has it, and where it was found.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) size: Size,
    /// What a write says that it is about.
    scale: Scale,
    resource: ResourceInfo,
}

impl Target {
    fn new(scale: Scale, resource: ResourceInfo) -> Self {
        let size = Size {
            spec_replicas: scale.spec.replicas,
            status_replicas: scale.status.replicas,
            selector: scale.status.selector.clone(),
        };
        Self { size, scale, resource }
    }
}

/// Reads and sets scales.
pub(super) struct Targets {
    pub(super) at_hand: AtHand,
    pub(super) kinds: Kinds,
    /// Speaks JSON: custom resources have scales, too.
    pub(super) client: Client,
}

impl Targets {
    /// The size of what a reference names, where it is at hand. It may have changed a moment ago.
    pub(super) fn at_hand(&self, namespace: &str, target: &CrossVersionObjectReference) -> Option<Size> {
        let group = GroupVersion::parse(&target.api_version).ok()?.group;
        self.at_hand.size(&group, namespace, target)
    }

    /// Reads the scale of what a reference names: of the first of its resources that has one.
    pub(super) async fn read(
        &self,
        namespace: &str,
        target: &CrossVersionObjectReference,
    ) -> Result<Target, TargetError> {
        let group = GroupVersion::parse(&target.api_version)?.group;
        let kind = GroupKind::named(&group, &target.kind);
        let mut first = None;
        for resource in self.kinds.resources_of(&kind).await? {
            let objects = self.client.dynamic(&resource, namespace);
            match objects.get_subresource::<Scale>(&target.name, "scale").await {
                Ok(scale) => return Ok(Target::new(scale, resource)),
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        let none = || TargetError::NoMatch { kind: target.kind.clone(), group: group.to_string() };
        Err(first.map_or_else(none, TargetError::Client))
    }

    /// Sets the wanted number of replicas. Whoever changed something else in the meantime is no obstacle.
    pub(super) async fn set(&self, namespace: &str, target: &Target, replicas: i32) -> Result<(), ClientError> {
        let objects = self.client.dynamic(&target.resource, namespace);
        let read = parking_lot::Mutex::new(Some(target.scale.clone()));
        let name = &target.scale.metadata.name;
        retry_on_conflict(self.client.rng(), || async {
            let known = read.lock().take();
            let mut scale = match known {
                Some(scale) => scale,
                None => objects.get_subresource::<Scale>(name, "scale").await?,
            };
            scale.spec.replicas = replicas;
            objects.update_subresource(name, "scale", &scale).await.map(drop)
        })
        .await
    }
}
