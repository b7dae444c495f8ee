//! Carries a plan out: creates, updates, deletes, in this order; the first failure ends it.

use std::sync::Arc;

use api_machinery::meta::DeleteOptions;
use api_machinery::time::Time;
use api_types::core_v1::Service;
use api_types::discovery_v1::EndpointSlice;
use client::ObjectKey;
use controller::{Cx, ReconcileError};

use super::layout::is_owned;
use super::pack::Writes;
use super::tracker::Tracker;
use crate::network::trigger_time::annotate;

/// Writes.
pub(super) async fn apply(
    cx: &Cx,
    tracker: &Tracker,
    service: &Service,
    writes: Writes,
    trigger: Option<Time>,
) -> Result<(), ReconcileError> {
    let key = ObjectKey::of(&service.metadata);
    let slices = cx.client.namespaced::<EndpointSlice>(&key.namespace);
    if service.metadata.deletion_timestamp.is_none() {
        for mut slice in writes.create {
            annotate(&mut slice.metadata, trigger);
            match slices.create(&slice).await {
                Ok(written) => tracker.written(&key, &written),
                Err(error) if error.is_namespace_terminating() => return Ok(()),
                Err(error) => {
                    let why = format!("failed to create EndpointSlice for Service {key}: {error}");
                    return Err(ReconcileError::failed(why));
                }
            }
        }
    }
    for mut slice in writes.update {
        annotate(&mut slice.metadata, trigger);
        let written = slices.update(&slice).await.map_err(|error| {
            let name = &slice.metadata.name;
            ReconcileError::failed(format!("failed to update {name} EndpointSlice for Service {key}: {error}"))
        })?;
        tracker.written(&key, &written);
    }
    for slice in writes.delete {
        match slices.delete_this(&slice.metadata, DeleteOptions::default()).await {
            Ok(_) => tracker.deleted(&key, &slice),
            Err(error) => {
                let why = format!("failed to delete {} EndpointSlice for Service {key}: {error}", slice.metadata.name);
                return Err(ReconcileError::failed(why));
            }
        }
    }
    Ok(())
}

/// A new slice takes the place of one that goes, so that watchers see one change instead of two.
pub(super) fn reuse_names(service: &Service, writes: &mut Writes) {
    let mut at = 0;
    while at < writes.delete.len() {
        let old = Arc::clone(&writes.delete[at]);
        let pair = writes.create.iter().rposition(|new| new.address_type == old.address_type);
        match pair.filter(|_| is_owned(&old, service)) {
            None => at += 1,
            Some(found) => {
                let mut new = writes.create.remove(found);
                new.metadata.name.clone_from(&old.metadata.name);
                writes.delete.remove(at);
                writes.update.push(new);
            }
        }
    }
}
