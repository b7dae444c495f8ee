//! Following definitions: names are granted, versions put into service, and objects cleaned up at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::ListOptions;
use api_machinery::object::Kind;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionNames};
use async_trait::async_trait;
use kinds::apiextensions_v1::FINALIZER;
use parking_lot::Mutex;
use registry::{ChangeKind, Event, Resource};
use tokio::sync::mpsc;

use super::cleanup::Emptied;
use super::facts::CustomInfo;
use super::install::Installed;
use super::served::ServedKinds;
use super::{cleanup, conditions, install, names, standing};
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};
use crate::own_request::server_request;

/// Pause before a watch that ended is begun anew, and before failed work is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the former versions of a definition stay in service while the cache of the new ones fills.
const FILL_LIMIT: Duration = Duration::from_secs(5);
/// How many definitions may have been emptied and not yet noticed; more wait.
const EMPTIED_MAX: usize = 16;

/// What is in service for a definition, and for which state of it.
struct InService {
    uid: String,
    generation: i64,
    names: CustomResourceDefinitionNames,
    installed: Installed,
}

/// The hook `start-apiextensions-controllers`; it is done once the definitions that were there are in service.
pub(super) struct DefinitionController {
    served: Arc<ServedKinds>,
}

impl DefinitionController {
    pub(super) fn new(served: &Arc<ServedKinds>) -> Self {
        Self { served: Arc::clone(served) }
    }
}

#[async_trait]
impl PostStartHook for DefinitionController {
    fn name(&self) -> &'static str {
        "start-apiextensions-controllers"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let of = CustomResourceDefinition::TYPE;
        let Some(resource) = cx.registry().resource(of.group, of.version, of.resource) else { return Ok(()) };
        let (ready, synced) = tokio::sync::oneshot::channel();
        let follower = Follower {
            cx: Arc::clone(cx),
            served: Arc::clone(&self.served),
            definitions: BTreeMap::new(),
            installed: BTreeMap::new(),
            dirty: BTreeSet::new(),
            cleanups: BTreeMap::new(),
            emptied: mpsc::channel(EMPTIED_MAX),
            ready: Mutex::new(Some(ready)),
        };
        cx.tasks().spawn_cancellable("custom-resource-definitions", follower.run(resource));
        synced.await.map_err(|_| HookError::Ending)
    }
}

/// Follows definitions and does what they ask for.
struct Follower {
    cx: Arc<ApiCx>,
    served: Arc<ServedKinds>,
    /// By name.
    definitions: BTreeMap<String, CustomResourceDefinition>,
    installed: BTreeMap<String, InService>,
    /// The groups in which something changed.
    dirty: BTreeSet<String>,
    /// The definitions whose objects are being deleted, by uid, and whether all are gone.
    cleanups: BTreeMap<String, bool>,
    emptied: (mpsc::Sender<Emptied>, mpsc::Receiver<Emptied>),
    ready: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

impl Follower {
    async fn run(mut self, resource: Arc<Resource>) {
        loop {
            resource.ready().await;
            self.follow(&resource).await;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn follow(&mut self, resource: &Arc<Resource>) {
        let options = ListOptions {
            watch: true,
            allow_watch_bookmarks: true,
            send_initial_events: Some(true),
            resource_version_match: "NotOlderThan".to_owned(),
            // Not every store can say that the cache has caught up, and whatever is missing follows.
            resource_version: "0".to_owned(),
            ..ListOptions::default()
        };
        let mut watch = match resource.watch(&server_request(resource.rule_context(), ""), &options, None).await {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "Watching definitions of custom resources failed");
                return;
            }
        };
        let mut unseen: BTreeSet<String> = self.definitions.keys().cloned().collect();
        let mut filled = false;
        loop {
            let event = tokio::select! {
                biased;
                event = watch.next() => event,
                Some(emptied) = self.emptied.1.recv(), if filled => {
                    self.cleanups.insert(emptied.uid, true);
                    self.dirty.insert(emptied.group);
                    self.reconcile().await;
                    continue;
                }
                () = tokio::time::sleep(RETRY_DELAY), if filled && !self.dirty.is_empty() => {
                    self.reconcile().await;
                    continue;
                }
            };
            match event {
                Some(Event::Change(change)) => {
                    let Some(definition) = change.item.object().downcast_ref::<CustomResourceDefinition>() else {
                        continue;
                    };
                    unseen.remove(&definition.metadata.name);
                    self.note(definition, change.kind == ChangeKind::Deleted);
                }
                Some(Event::Bookmark { initial_events_end: true, .. }) => {
                    for name in std::mem::take(&mut unseen) {
                        if let Some(gone) = self.definitions.remove(&name) {
                            let plural = &gone.spec.names.plural;
                            self.cx.custom_kinds().set_terminating(&gone.spec.group, plural, false);
                            self.dirty.insert(gone.spec.group);
                        }
                    }
                    filled = true;
                }
                Some(Event::Bookmark { .. }) => {}
                Some(Event::Error(error)) => {
                    tracing::warn!(%error, "Watching definitions of custom resources failed");
                    return;
                }
                None => return,
            }
            if filled {
                self.reconcile().await;
                if let Some(ready) = self.ready.lock().take() {
                    // The hook may have been cancelled.
                    let _ = ready.send(());
                }
            }
        }
    }

    fn note(&mut self, definition: &CustomResourceDefinition, deleted: bool) {
        let name = definition.metadata.name.clone();
        self.dirty.insert(definition.spec.group.clone());
        let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
        let terminating = !deleted && definition.metadata.deletion_timestamp.is_some();
        self.cx.custom_kinds().set_terminating(group, plural, terminating);
        if deleted {
            self.definitions.remove(&name);
            self.cleanups.remove(&definition.metadata.uid);
        } else {
            self.definitions.insert(name, definition.clone());
        }
    }

    /// Brings the groups in which something changed up to date; those that fail stay noted.
    async fn reconcile(&mut self) {
        for group in std::mem::take(&mut self.dirty) {
            self.withdraw_gone();
            let names: Vec<String> = self.names_in(&group);
            for name in names {
                if let Err(error) = self.reconcile_one(&name).await {
                    tracing::warn!(%error, name, "A definition of custom resources could not be brought into service");
                    self.dirty.insert(group.clone());
                }
            }
        }
    }

    /// The definitions of a group, the oldest first: they keep their names.
    fn names_in(&self, group: &str) -> Vec<String> {
        let mut own: Vec<&CustomResourceDefinition> =
            self.definitions.values().filter(|definition| definition.spec.group == group).collect();
        own.sort_by_key(|definition| (definition.metadata.creation_timestamp, definition.metadata.name.clone()));
        own.into_iter().map(|definition| definition.metadata.name.clone()).collect()
    }

    fn withdraw_gone(&mut self) {
        let gone: Vec<String> =
            self.installed.keys().filter(|name| !self.definitions.contains_key(*name)).cloned().collect();
        for name in gone {
            self.withdraw(&name);
        }
    }

    fn withdraw(&mut self, name: &str) {
        if let Some(former) = self.installed.remove(name) {
            install::withdraw(&self.cx, &self.served, &former.installed.infos);
        }
    }

    async fn reconcile_one(&mut self, name: &str) -> Result<(), ApiError> {
        let Some(definition) = self.definitions.get(name).cloned() else { return Ok(()) };
        if definition.metadata.deletion_timestamp.is_some() {
            return self.finalize(definition).await;
        }
        let others: Vec<&CustomResourceDefinitionNames> = self
            .definitions
            .values()
            .filter(|other| other.spec.group == definition.spec.group && other.metadata.name != name)
            .map(|other| &other.status.accepted_names)
            .collect();
        let next = with_status(&definition, &others, self.cx.clock().wall().into());
        let definition = if next.status == definition.status {
            definition
        } else {
            let Some(written) = self.write_status(next).await? else { return Ok(()) };
            written
        };
        if conditions::is_true(&definition, "Established") {
            self.put_into_service(&definition).await?;
        }
        Ok(())
    }

    /// Nothing where the definition is newer than what was seen of it, or gone: the event that says so is on its way.
    async fn write_status(
        &mut self,
        next: CustomResourceDefinition,
    ) -> Result<Option<CustomResourceDefinition>, ApiError> {
        let api = self.cx.loopback().all::<CustomResourceDefinition>();
        let written = match api.update_status(&next).await {
            Err(error) if error.is_conflict() || error.is_not_found() => return Ok(None),
            written => written.map_err(ApiError::internal)?,
        };
        self.definitions.insert(written.metadata.name.clone(), written.clone());
        Ok(Some(written))
    }

    /// Serves a definition as it is now. What is in service stays until the new versions can take its place.
    async fn put_into_service(&mut self, definition: &CustomResourceDefinition) -> Result<(), ApiError> {
        let (meta, names) = (&definition.metadata, &definition.status.accepted_names);
        let is_current = |former: &InService| {
            former.uid == meta.uid && former.generation == meta.generation && former.names == *names
        };
        let former = self.installed.get(&meta.name);
        if former.is_some_and(is_current) {
            return Ok(());
        }
        let former = former.map(|former| &former.installed);
        let ready = install::make(&self.cx, definition, former);
        if former.is_some() {
            // Objects that cannot be read any more must not keep the former versions in service for ever.
            let _ = tokio::time::timeout(FILL_LIMIT, ready.filled()).await;
        }
        let former = self.installed.remove(&meta.name).map(|former| former.installed);
        let installed = install::put(&self.cx, &self.served, ready, former);
        let (uid, generation, names) = (meta.uid.clone(), meta.generation, names.clone());
        self.installed.insert(meta.name.clone(), InService { uid, generation, names, installed });
        Ok(())
    }

    /// Has the objects deleted, and lets the definition go once none is left.
    async fn finalize(&mut self, mut definition: CustomResourceDefinition) -> Result<(), ApiError> {
        let name = definition.metadata.name.clone();
        if !definition.metadata.finalizers.iter().any(|own| own == FINALIZER) {
            return Ok(());
        }
        if conditions::is_true(&definition, "Established") {
            self.put_into_service(&definition).await?;
        }
        let now = self.cx.clock().wall().into();
        let of_cleanup = self.cleanups.get(&definition.metadata.uid).copied();
        if let Some(info) = self.installed.get(&name).and_then(|own| own.installed.infos.first().cloned())
            && of_cleanup != Some(true)
        {
            if of_cleanup.is_none() {
                let reason = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
                conditions::set(&mut definition, ("Terminating", true), reason, now);
                let Some(written) = self.write_status(definition).await? else { return Ok(()) };
                self.empty(&written, info);
            }
            return Ok(());
        }
        let reason = ("InstanceDeletionCompleted", "removed all instances");
        conditions::set(&mut definition, ("Terminating", false), reason, now);
        let Some(mut definition) = self.write_status(definition).await? else { return Ok(()) };
        definition.metadata.finalizers.retain(|own| own != FINALIZER);
        let api = self.cx.loopback().all::<CustomResourceDefinition>();
        match api.update(&definition).await {
            Err(error) if error.is_conflict() => return Ok(()),
            Err(error) if !error.is_not_found() => return Err(ApiError::internal(error)),
            _ => {}
        }
        self.withdraw(&name);
        Ok(())
    }
}

impl Follower {
    /// Has the objects of a definition deleted.
    fn empty(&mut self, definition: &CustomResourceDefinition, info: Arc<CustomInfo>) {
        let uid = definition.metadata.uid.clone();
        self.cleanups.insert(uid.clone(), false);
        let emptied = Emptied { group: definition.spec.group.clone(), uid };
        let work = cleanup::empty(Arc::clone(&self.cx), info, emptied, self.emptied.0.clone());
        self.cx.tasks().spawn_cancellable("custom-resource-cleanup", work);
    }
}

/// The definition with the status that follows from its names and from what others have been granted.
fn with_status(
    definition: &CustomResourceDefinition,
    others: &[&CustomResourceDefinitionNames],
    now: Time,
) -> CustomResourceDefinition {
    let mut next = definition.clone();
    let (accepted, conflict) = names::grant(&definition.spec.names, &definition.status.accepted_names, others);
    next.status.accepted_names = accepted;
    let was_established = conditions::is_true(definition, "Established");
    match &conflict {
        Some((reason, message)) => {
            conditions::set(&mut next, ("NamesAccepted", false), (reason, message), now);
            if !was_established {
                let reason = ("NotAccepted", "not all names are accepted");
                conditions::set(&mut next, ("Established", false), reason, now);
            }
        }
        None => {
            conditions::set(&mut next, ("NamesAccepted", true), ("NoConflicts", "no conflicts found"), now);
            let reason = ("InitialNamesAccepted", "the initial names have been accepted");
            conditions::set(&mut next, ("Established", true), reason, now);
        }
    }
    standing::judge(&mut next, now);
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_keep_a_new_definition_out_but_not_an_old_one() {
        let mut definition = CustomResourceDefinition::default();
        definition.spec.names.plural = "apples".into();
        definition.spec.names.kind = "Apple".into();
        let taken = definition.spec.names.clone();
        let refused = with_status(&definition, &[&taken], Time::default());
        assert!(!conditions::is_true(&refused, "NamesAccepted") && !conditions::is_true(&refused, "Established"));
        let accepted = with_status(&refused, &[], Time::default());
        assert!(conditions::is_true(&accepted, "NamesAccepted") && conditions::is_true(&accepted, "Established"));
        let later = with_status(&accepted, &[&taken], Time::default());
        assert!(!conditions::is_true(&later, "NamesAccepted") && conditions::is_true(&later, "Established"));
    }
}
