//! Bindings, statuses, evictions, changes by plugins, and events through the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_machinery::meta::{Condition, DeleteOptions, Status};
use api_machinery::object::{Kind, Object};
use api_machinery::value::{Value, ValueMap, struct_to_map};
use api_types::core_v1::{Binding, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus};
use api_types::resource_v1::ResourceClaim;
use api_types::scheduling_v1alpha2::PodGroup;
use async_trait::async_trait;
use base::Backoff;
use client::{Client, ClientError, EventType, Patch, SeriesEvent, SeriesRecorder, object_reference};
use tokio::sync::Semaphore;

use crate::writer::{ClusterWriter, EventSink, ObjectWriter, PodEvent, Severity, WriteError};

/// How often a status is written when the server cannot take it now. As upstream.
const TRIES: usize = 4;
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Bindings that the API server is asked for at once. It takes 200 writes at a time by default, of all its clients, and
/// sends what comes on top away for a second.
const MAX_BINDINGS: usize = 100;

/// How often the API server is asked what became of a binding, or of a claim's devices, whose answer is in doubt, and how long
/// to wait between: some 13 seconds in all, beside what the requests take. So long the room, or the devices, stay taken.
const LOOKS: usize = 8;
const FIRST_LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Writes through a client.
pub struct ClientWriter {
    client: Client,
    bindings: Semaphore,
}

impl ClientWriter {
    /// A writer.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self { client: client.clone(), bindings: Semaphore::new(MAX_BINDINGS) }
    }

    /// What has become of an object by now; nothing where it is gone or nobody says.
    async fn now<T: Kind + Object>(&self, before: &T) -> Option<T> {
        let meta = before.meta();
        let objects = self.client.namespaced::<T>(&meta.namespace);
        let mut backoff = Backoff::new(FIRST_LOOK, 2.0, LONGEST_LOOK, 0.1);
        for look in 1..=LOOKS {
            match objects.get_opt(&meta.name).await {
                Ok(now) => return now.filter(|now| now.meta().uid == meta.uid),
                Err(error) => {
                    tracing::info!(%error, kind = T::TYPE.kind, name = meta.name, "A write is still in doubt");
                }
            }
            if look < LOOKS {
                tokio::time::sleep(backoff.step(self.client.rng())).await;
            }
        }
        None
    }
}

/// Whether the API server has refused, so that nothing was written. One that has too much to do is not asked more.
fn is_refusal(error: &ClientError) -> bool {
    let refused = error.is_not_found() || error.is_forbidden() || error.is_unauthorized() || error.is_invalid();
    refused || error.is_too_many_requests()
}

/// Whether a claim has the devices, and is reserved for those, that were written.
fn has_what_was_written(now: &ResourceClaim, written: &ResourceClaim) -> bool {
    let devices = |claim: &ResourceClaim| claim.status.allocation.as_ref().map(|own| own.devices.results.clone());
    let consumers = |claim: &ResourceClaim| {
        let uids = claim.status.reserved_for.iter().map(|own| own.uid.clone());
        uids.collect::<BTreeSet<_>>()
    };
    devices(now) == devices(written) && consumers(now) == consumers(written)
}

fn failed(error: &ClientError) -> WriteError {
    let text = error.to_string();
    if error.is_not_found() {
        WriteError::NotFound(text)
    } else if error.is_conflict() {
        WriteError::Conflict(text)
    } else {
        WriteError::Failed(text)
    }
}

/// Takes a consumer off a claim; the uid makes sure that a claim of the same name is left alone.
fn release_patch(claim: &ResourceClaim, consumer: &str) -> Value {
    let object = |fields: [(&str, Value); 2]| -> Value {
        let mut map = ValueMap::new();
        map.extend(fields.map(|(name, value)| (name.into(), value)));
        map.into()
    };
    let entry = object([("$patch", "delete".into()), ("uid", consumer.into())]);
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), claim.metadata.uid.as_str().into());
    let mut status = ValueMap::new();
    status.insert("reservedFor".into(), Value::Array(vec![entry]));
    object([("metadata", metadata.into()), ("status", status.into())])
}

/// Sets a condition of an object; the uid makes sure that one of the same name is left alone.
fn condition_patch(uid: &str, condition: &Condition) -> Value {
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), uid.into());
    let mut status = ValueMap::new();
    status.insert("conditions".into(), Value::Array(vec![Value::Object(struct_to_map(condition))]));
    let mut patch = ValueMap::new();
    patch.insert("metadata".into(), metadata.into());
    patch.insert("status".into(), status.into());
    patch.into()
}

/// Whether the same write may succeed in a moment.
fn is_passing(error: &ClientError) -> bool {
    let unwell = error.api().is_some_and(|error| matches!(&*error.reason, "InternalError" | "ServiceUnavailable"));
    unwell || error.is_conflict() || error.is_connection_refused()
}

/// The differences between two statuses; the uid makes sure that a pod of the same name is left alone.
fn status_patch(pod: &Pod, status: &PodStatus) -> Value {
    let mut fields = ValueMap::new();
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .filter(|condition| !pod.status.conditions.contains(condition))
        .map(|condition| Value::Object(struct_to_map(condition)))
        .collect();
    if !conditions.is_empty() {
        fields.insert("conditions".into(), Value::Array(conditions));
    }
    if status.nominated_node_name != pod.status.nominated_node_name {
        let name = &status.nominated_node_name;
        let value = if name.is_empty() { Value::Null } else { name.as_str().into() };
        fields.insert("nominatedNodeName".into(), value);
    }
    if let Some(extended) = &status.extended_resource_claim_status
        && pod.status.extended_resource_claim_status.as_ref() != Some(extended)
    {
        fields.insert("extendedResourceClaimStatus".into(), Value::Object(struct_to_map(extended)));
    }
    let claims = &status.node_allocatable_resource_claim_statuses;
    if *claims != pod.status.node_allocatable_resource_claim_statuses {
        let all = || Value::Array(claims.iter().map(|claim| Value::Object(struct_to_map(claim))).collect());
        let value = if claims.is_empty() { Value::Null } else { all() };
        fields.insert("nodeAllocatableResourceClaimStatuses".into(), value);
    }
    let mut metadata = ValueMap::new();
    metadata.insert("uid".into(), pod.metadata.uid.as_str().into());
    let mut patch = ValueMap::new();
    patch.insert("metadata".into(), metadata.into());
    patch.insert("status".into(), fields.into());
    patch.into()
}

#[async_trait]
impl ClusterWriter for ClientWriter {
    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), WriteError> {
        let mut binding = Binding::default();
        binding.metadata.namespace.clone_from(&pod.metadata.namespace);
        binding.metadata.name.clone_from(&pod.metadata.name);
        binding.metadata.uid.clone_from(&pod.metadata.uid);
        binding.target = ObjectReference { kind: "Node".into(), name: node.to_owned(), ..ObjectReference::default() };
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let turn = self.bindings.acquire().await.map_err(|closed| WriteError::Failed(closed.to_string()))?;
        let answer = pods.create_subresource::<Binding, Status>(&pod.metadata.name, "binding", &binding).await;
        drop(turn);
        let Err(error) = answer else { return Ok(()) };
        // The binding may have been carried out. To give its room away then would put too much on the node.
        if !is_refusal(&error) && self.now(pod).await.is_some_and(|now| now.spec.node_name == node) {
            return Ok(());
        }
        Err(failed(&error))
    }

    async fn patch_status(&self, pod: &Pod, status: &PodStatus) -> Result<(), WriteError> {
        let patch = Patch::Strategic(status_patch(pod, status));
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        let mut backoff = Backoff::new(FIRST_DELAY, 5.0, LONGEST_DELAY, 0.1);
        let mut tries = 1;
        loop {
            match pods.patch_status(&pod.metadata.name, &patch).await {
                Ok(_) => return Ok(()),
                Err(error) if tries < TRIES && is_passing(&error) => {
                    tokio::time::sleep(backoff.step(self.client.rng())).await;
                    tries += 1;
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    async fn delete(&self, pod: &Pod) -> Result<(), WriteError> {
        let pods = self.client.namespaced::<Pod>(&pod.metadata.namespace);
        match pods.delete_this(&pod.metadata, DeleteOptions::default()).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(WriteError::NotFound(format!("pods {:?} not found", pod.metadata.name))),
            Err(error) => Err(failed(&error)),
        }
    }
}

#[async_trait]
impl ObjectWriter for ClientWriter {
    async fn update_volume(&self, volume: &PersistentVolume) -> Result<PersistentVolume, WriteError> {
        self.client.all::<PersistentVolume>().update(volume).await.map_err(|error| failed(&error))
    }

    async fn update_claim(&self, claim: &PersistentVolumeClaim) -> Result<PersistentVolumeClaim, WriteError> {
        let claims = self.client.namespaced::<PersistentVolumeClaim>(&claim.metadata.namespace);
        claims.update(claim).await.map_err(|error| failed(&error))
    }

    async fn device_claim(&self, namespace: &str, name: &str) -> Result<ResourceClaim, WriteError> {
        self.client.namespaced::<ResourceClaim>(namespace).get(name).await.map_err(|error| failed(&error))
    }

    async fn create_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        let claims = self.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        claims.create(claim).await.map_err(|error| failed(&error))
    }

    async fn delete_device_claim(&self, claim: &ResourceClaim) -> Result<(), WriteError> {
        let claims = self.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        claims.delete_this(&claim.metadata, DeleteOptions::default()).await.map(drop).map_err(|error| failed(&error))
    }

    async fn update_device_claim(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        let claims = self.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        claims.update(claim).await.map_err(|error| failed(&error))
    }

    async fn update_device_claim_status(&self, claim: &ResourceClaim) -> Result<ResourceClaim, WriteError> {
        let claims = self.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        let error = match claims.update_status(claim).await {
            Ok(written) => return Ok(written),
            Err(error) => error,
        };
        // The claim may have its devices. Who thought that it has not would give them to another.
        if !is_refusal(&error)
            && let Some(now) = self.now(claim).await.filter(|now| has_what_was_written(now, claim))
        {
            return Ok(now);
        }
        Err(failed(&error))
    }

    async fn patch_group_status(&self, group: &PodGroup, condition: &Condition) -> Result<(), WriteError> {
        let groups = self.client.namespaced::<PodGroup>(&group.metadata.namespace);
        let patch = Patch::Strategic(condition_patch(&group.metadata.uid, condition));
        groups.patch_status(&group.metadata.name, &patch).await.map(drop).map_err(|error| failed(&error))
    }

    async fn release_device_claim(&self, claim: &ResourceClaim, consumer: &str) -> Result<ResourceClaim, WriteError> {
        let claims = self.client.namespaced::<ResourceClaim>(&claim.metadata.namespace);
        let patch = Patch::Strategic(release_patch(claim, consumer));
        claims.patch_status(&claim.metadata.name, &patch).await.map_err(|error| failed(&error))
    }
}

/// Records events, each scheduler name with its own recorder.
pub(super) struct ClientEvents {
    recorders: BTreeMap<String, SeriesRecorder>,
}

impl ClientEvents {
    pub(super) fn new(client: &Client, schedulers: &[&str]) -> Self {
        const HOSTNAME_FILE: &str = "/proc/sys/kernel/hostname";
        let hostname = std::fs::read_to_string(HOSTNAME_FILE).unwrap_or_default();
        // Events have a rate limit of their own, so that they never hold bindings up.
        let client = client.derive(|config| config).unwrap_or_else(|_| client.clone());
        let recorder = |name: &&str| ((*name).to_owned(), SeriesRecorder::new(&client, name, hostname.trim()));
        Self { recorders: schedulers.iter().map(recorder).collect() }
    }
}

impl EventSink for ClientEvents {
    fn event(&self, event: &PodEvent<'_>) {
        let Some(recorder) = self.recorders.get(event.scheduler) else { return };
        recorder.event(SeriesEvent {
            regarding: object_reference(event.about),
            related: event.related.clone(),
            kind: match event.severity {
                Severity::Normal => EventType::Normal,
                Severity::Warning => EventType::Warning,
            },
            reason: event.reason.to_owned(),
            action: event.action.to_owned(),
            note: event.note.clone(),
        });
    }
}

#[cfg(test)]
#[path = "client_writer_tests.rs"]
mod tests;
