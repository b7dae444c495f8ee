//! Which versions of its resources this server stores, reads and serves, for whoever has to know that of all servers of the
//! cluster before it rewrites what is stored (KEP-2339, gate `StorageVersionAPI`). Until that is written, requests that
//! would write such objects are turned away (`chain`): what is stored must not be of a version that nobody has heard of.

mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use api_machinery::meta::ObjectMeta;
use api_types::apiserverinternal_v1alpha1::{ServerStorageVersion, StorageVersion};
use api_types::coordination_v1::Lease;
use async_trait::async_trait;
use client::ClientError;
use component_helpers::api_server_leases;
use component_helpers::storage_versions::{object_name, set_common_version};
use parking_lot::Mutex;
use registry::Registry;

use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::server_id::server_id;
use stored::StoredResources;

/// How often this server's words are written again, should somebody have lost them.
const PERIOD: Duration = Duration::from_secs(600);
/// How soon a round that failed is repeated: writes wait for it.
const RETRY: Duration = Duration::from_secs(10);
/// How soon a write that failed is repeated within a round.
const PAUSE: Duration = Duration::from_secs(1);
/// How often a write is tried in a round.
const TRIES: u32 = 3;
/// How often others may be faster in a round: each of them writes a resource once.
const CONFLICTS: u32 = 30;
/// How often it is looked whether the lease of this server is there.
const LEASE_PAUSE: Duration = Duration::from_millis(100);

/// What this server has to say, and what of it has been written.
pub(crate) struct StorageVersions {
    entries: Vec<Entry>,
    /// Once everything has been written, nobody waits any more, whatever comes later.
    is_done: AtomicBool,
}

struct Entry {
    told: StoredResources,
    state: Mutex<State>,
}

enum State {
    /// Not written yet, and why the last try failed.
    Pending(Option<String>),
    Written,
}

impl State {
    fn note(&mut self, outcome: Result<(), String>) {
        match (outcome, &mut *self) {
            (Ok(()), _) => *self = Self::Written,
            (Err(error), Self::Pending(last)) => *last = Some(error),
            (Err(_), Self::Written) => {}
        }
    }
}

/// A resource that waits.
pub(crate) struct Pending {
    /// Why the last try to write its versions failed, if there was one.
    pub(crate) last_error: Option<String>,
}

impl StorageVersions {
    /// Of the resources that a server has now; nothing of it has been written yet.
    pub(crate) fn of(registry: &Registry) -> Arc<Self> {
        let entry = |told| Entry { told, state: Mutex::new(State::Pending(None)) };
        Arc::new(Self {
            entries: stored::of(registry).into_iter().map(entry).collect(),
            is_done: AtomicBool::new(false),
        })
    }

    /// Whether writes of a resource have to wait, and what for.
    pub(crate) fn pending(&self, group: &str, resource: &str) -> Option<Pending> {
        if self.is_done.load(Ordering::Acquire) {
            return None;
        }
        let is_named = |own: &GroupResource| own.group == group && own.resource == resource;
        let entry = self.entries.iter().find(|entry| entry.told.resources.iter().any(is_named))?;
        match &*entry.state.lock() {
            State::Pending(last_error) => Some(Pending { last_error: last_error.clone() }),
            State::Written => None,
        }
    }

    /// Writes all that is to be said, one after another; says whether all of it is there.
    async fn write_all(&self, cx: &ApiCx) -> bool {
        let id = server_id(&cx.config().host_name());
        let mut all_written = true;
        for Entry { told, state } in &self.entries {
            let Some(resource) = told.resources.first() else { continue };
            let outcome = write(cx, resource, &told.by(&id)).await;
            if let Err(error) = &outcome {
                tracing::error!(%error, %resource, "Writing the storage version of a resource failed");
                all_written = false;
            }
            state.lock().note(outcome.map_err(|error| error.to_string()));
        }
        if all_written {
            self.is_done.store(true, Ordering::Release);
        }
        all_written
    }
}

async fn write(cx: &ApiCx, resource: &GroupResource, own: &ServerStorageVersion) -> Result<(), ClientError> {
    let name = object_name(&resource.group, &resource.resource);
    let (mut failures, mut conflicts) = (0, 0);
    loop {
        let Err(error) = write_once(cx, &name, own).await else { return Ok(()) };
        let others_were_faster = error.is_conflict() || error.is_already_exists();
        let (count, most) = if others_were_faster { (&mut conflicts, CONFLICTS) } else { (&mut failures, TRIES) };
        *count += 1;
        if *count == most {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn write_once(cx: &ApiCx, name: &str, own: &ServerStorageVersion) -> Result<(), ClientError> {
    let api = cx.loopback().all::<StorageVersion>();
    let stored = match api.get_opt(name).await? {
        Some(stored) => stored,
        None => {
            let metadata = ObjectMeta { name: name.to_owned(), ..ObjectMeta::default() };
            api.create(&StorageVersion { metadata, ..StorageVersion::default() }).await?
        }
    };
    let mut next = stored.clone();
    record(&mut next, own);
    set_common_version(&mut next, cx.clock().wall().into());
    if next == stored { Ok(()) } else { api.update_status(&next).await.map(drop) }
}

/// Puts the word of a server in the place of what it said before.
fn record(object: &mut StorageVersion, own: &ServerStorageVersion) {
    let all = &mut object.status.storage_versions;
    match all.iter_mut().find(|server| server.api_server_id == own.api_server_id) {
        Some(former) => *former = own.clone(),
        None => all.push(own.clone()),
    }
}

/// The hook `built-in-resources-storage-version-updater`. It is done once everything has been written.
pub(crate) struct Updater(pub(crate) Arc<StorageVersions>);

#[async_trait]
impl PostStartHook for Updater {
    fn name(&self) -> &'static str {
        "built-in-resources-storage-version-updater"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        // Whoever has no lease is taken for gone, and its words with it. A server that does not listen never has one.
        if cx.config().serving.is_some() {
            lease(cx).await;
        }
        while !self.0.write_all(cx).await {
            tokio::time::sleep(RETRY).await;
        }
        let (versions, context) = (Arc::clone(&self.0), Arc::clone(cx));
        cx.tasks().spawn_cancellable("storage-versions", async move {
            loop {
                tokio::time::sleep(PERIOD).await;
                versions.write_all(&context).await;
            }
        });
        Ok(())
    }
}

/// Waits for the lease of this server.
async fn lease(cx: &ApiCx) {
    let (leases, name) =
        (cx.loopback().namespaced::<Lease>(api_server_leases::NAMESPACE), server_id(&cx.config().host_name()));
    loop {
        match leases.get_opt(&name).await {
            Ok(Some(_)) => return,
            Ok(None) => {}
            Err(error) => tracing::debug!(%error, name, "The lease of this server cannot be read yet"),
        }
        tokio::time::sleep(LEASE_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_word() {
        let said = |id: &str, version: &str| ServerStorageVersion {
            api_server_id: id.to_owned(),
            encoding_version: version.to_owned(),
            ..ServerStorageVersion::default()
        };
        let mut object = StorageVersion::default();
        for own in [said("a", "v1"), said("b", "v1"), said("a", "v2")] {
            record(&mut object, &own);
        }
        assert_eq!(object.status.storage_versions, [said("a", "v2"), said("b", "v1")]);
    }

    #[test]
    fn what_was_written_stays_written() {
        let mut state = State::Pending(None);
        state.note(Err("first".to_owned()));
        state.note(Err("second".to_owned()));
        assert!(matches!(&state, State::Pending(Some(error)) if error == "second"));
        state.note(Ok(()));
        state.note(Err("third".to_owned()));
        assert!(matches!(state, State::Written));
    }
}
