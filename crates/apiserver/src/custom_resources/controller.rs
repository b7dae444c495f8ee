//! Following definitions: names are granted, versions put into service, and objects cleaned up at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::Kind;
use api_machinery::status::ApiError;
use api_machinery::time::Time;
use api_types::apiextensions_v1::{CustomResourceDefinition, CustomResourceDefinitionNames};
use async_trait::async_trait;
use kinds::apiextensions_v1::{FINALIZER, has_readable_bundle};
use parking_lot::Mutex;
use registry::{ChangeKind, Event, Resource, Stored};
use tokio::sync::mpsc;

use super::cleanup::{Cleanup, Progress, Report};
use super::facts::CustomInfo;
use super::install::Installed;
use super::known::{Definitions, Known, NameKind};
use super::served::ServedKinds;
use super::standing::Judgements;
use super::{cleanup, conditions, install, names, standing};
use crate::cx::ApiCx;
use crate::hooks::{HookError, PostStartHook};

/// Pause before a watch that ended is begun anew, and before failed work is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// How long the former versions of a definition stay in service while the cache of the new ones fills.
const FILL_LIMIT: Duration = Duration::from_secs(5);
/// How many reports of objects that are deleted may not have been noticed yet; more wait.
const REPORTS_MAX: usize = 16;
/// How many events are taken note of before anything is done about them: whoever installs a thousand definitions changes
/// some of them again at once.
const EVENTS_MAX: usize = 500;

/// What is in service for a definition, and for which state of it.
struct InService {
    uid: String,
    generation: i64,
    names: CustomResourceDefinitionNames,
    installed: Installed,
}

/// How far the objects of a definition have gone, and whether the definition tells so. That is told once: several servers
/// would tell each other for ever.
struct Ending {
    progress: Progress,
    is_told: bool,
}

/// Groups and resources of which the objects of a definition would be those that the server itself has.
const BUILT_IN: [(&str, &str); 2] =
    [("apiregistration.k8s.io", "apiservices"), ("apiextensions.k8s.io", "customresourcedefinitions")];

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
            resource,
            served: Arc::clone(&self.served),
            definitions: Definitions::default(),
            installed: BTreeMap::new(),
            dirty: BTreeMap::new(),
            heard: BTreeMap::new(),
            cleanups: BTreeMap::new(),
            judgements: Judgements::default(),
            reports: mpsc::channel(REPORTS_MAX),
            ready: Mutex::new(Some(ready)),
        };
        cx.tasks().spawn_cancellable("custom-resource-definitions", follower.run());
        synced.await.map_err(|_| HookError::Ending)
    }
}

/// How far the first events of a watch, which tell of what there is, have come.
struct Filling {
    /// What was known before and has not been told of.
    unseen: BTreeSet<String>,
    is_done: bool,
}

/// Follows definitions and does what they ask for.
struct Follower {
    cx: Arc<ApiCx>,
    /// That of definitions.
    resource: Arc<Resource>,
    served: Arc<ServedKinds>,
    definitions: Definitions,
    installed: BTreeMap<String, InService>,
    /// The definitions that something has to be done about, by name, as they were last seen. No other is kept: all of
    /// them with their schemas would be most of what a server of many definitions takes.
    dirty: BTreeMap<String, Option<Known>>,
    /// The definitions that events have told of and nobody has looked at yet, as the last of them had it: they may be at rest
    /// already.
    heard: BTreeMap<String, Arc<Stored>>,
    /// The definitions whose objects are being deleted, by uid.
    cleanups: BTreeMap<String, Ending>,
    judgements: Judgements,
    reports: (mpsc::Sender<Report>, mpsc::Receiver<Report>),
    ready: Mutex<Option<tokio::sync::oneshot::Sender<()>>>,
}

impl Follower {
    async fn run(mut self) {
        loop {
            self.resource.ready().await;
            self.follow().await;
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn follow(&mut self) {
        let mut watch = match self.resource.follow().await {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "Watching definitions of custom resources failed");
                return;
            }
        };
        let mut filling = Filling { unseen: self.definitions.names().cloned().collect(), is_done: false };
        loop {
            let event = tokio::select! {
                biased;
                event = watch.next() => event,
                Some(report) = self.reports.1.recv(), if filling.is_done => {
                    if let Some(ending) = self.cleanups.get_mut(&report.uid) {
                        *ending = Ending { progress: report.progress, is_told: false };
                        self.dirty.entry(report.name).or_default();
                    }
                    self.reconcile().await;
                    continue;
                }
                () = tokio::time::sleep(RETRY_DELAY), if filling.is_done && !self.dirty.is_empty() => {
                    self.reconcile().await;
                    continue;
                }
            };
            let mut next = event;
            for _ in 0..EVENTS_MAX {
                if self.take(next, &mut filling).is_break() {
                    return;
                }
                next = watch.try_next();
                if next.is_none() {
                    break;
                }
            }
            if let Some(last) = next
                && self.take(Some(last), &mut filling).is_break()
            {
                return;
            }
            if filling.is_done {
                self.reconcile().await;
                if let Some(ready) = self.ready.lock().take() {
                    // The hook may have been cancelled.
                    let _ = ready.send(());
                }
            }
        }
    }

    /// Takes note of an event; breaks where the watch has ended.
    fn take(&mut self, event: Option<Event>, filling: &mut Filling) -> ControlFlow<()> {
        match event {
            Some(Event::Change(change)) => {
                // They are in no namespace: their names are their keys.
                let name = change.item.key().to_string();
                filling.unseen.remove(&name);
                if change.kind == ChangeKind::Deleted {
                    self.heard.remove(&name);
                    self.forget(&name);
                } else {
                    self.heard.insert(name, change.item);
                }
            }
            Some(Event::Bookmark { initial_events_end: true, .. }) => {
                std::mem::take(&mut filling.unseen).iter().for_each(|name| self.forget(name));
                filling.is_done = true;
            }
            Some(Event::Bookmark { .. }) => {}
            Some(Event::Error(error)) => {
                tracing::warn!(%error, "Watching definitions of custom resources failed");
                return ControlFlow::Break(());
            }
            None => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Looks at what was heard of, each as it was last.
    fn learn_what_was_heard(&mut self) {
        let heard = std::mem::take(&mut self.heard).into_values();
        heard.filter_map(|item| Known::new(item.shared_for_once())).for_each(|known| self.learn(known));
    }

    fn learn(&mut self, known: Known) {
        let definition = known.get();
        let (spec, status) = (&definition.spec, &definition.status);
        let terminating = definition.metadata.deletion_timestamp.is_some();
        self.cx.custom_kinds().set_terminating(&spec.group, &spec.names.plural, terminating);
        let former = self.definitions.insert(definition);
        if former.is_some_and(|former| former.granted != status.accepted_names) {
            // A name may have become free.
            self.look_at_waiting(&spec.group);
        }
        self.dirty.insert(definition.metadata.name.clone(), Some(known.clone()));
    }

    fn look_at_waiting(&mut self, group: &str) {
        for name in self.definitions.waiting(group) {
            self.dirty.entry(name.clone()).or_default();
        }
    }

    fn forget(&mut self, name: &str) {
        let Some(gone) = self.definitions.remove(name) else { return };
        self.cx.custom_kinds().set_terminating(&gone.group, &gone.wanted.plural, false);
        self.cleanups.remove(&gone.uid);
        self.judgements.forget(name);
        self.dirty.insert(name.to_owned(), None);
        self.look_at_waiting(&gone.group);
    }

    /// Brings the definitions that something has to be done about up to date, the oldest first, as they keep their names;
    /// those that fail stay noted.
    async fn reconcile(&mut self) {
        self.learn_what_was_heard();
        let age = |name: &String| self.definitions.get(name).map(|own| own.created);
        let mut due: Vec<_> =
            std::mem::take(&mut self.dirty).into_iter().map(|(name, known)| (age(&name), name, known)).collect();
        due.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        for (_, name, known) in due {
            if let Err(error) = self.reconcile_one(&name, known).await {
                tracing::warn!(%error, name, "A definition of custom resources could not be brought into service");
                self.dirty.entry(name).or_default();
            }
        }
    }

    /// A definition as its cache holds it. The cache is never older than what was told of it, and where the definition is
    /// gone an event that says so is on its way.
    fn at_hand(&self, name: &str) -> Option<Known> {
        Known::new(self.resource.one_at_hand("", name)?.shared_for_once())
    }

    fn withdraw(&mut self, name: &str) {
        if let Some(former) = self.installed.remove(name) {
            install::withdraw(&self.cx, &self.served, &former.installed.infos);
        }
    }

    async fn reconcile_one(&mut self, name: &str, known: Option<Known>) -> Result<(), ApiError> {
        if self.definitions.get(name).is_none() {
            self.withdraw(name);
            return Ok(());
        }
        let Some(known) = known.or_else(|| self.at_hand(name)) else { return Ok(()) };
        let definition = known.get();
        if definition.metadata.deletion_timestamp.is_some() {
            return self.finalize(definition.clone()).await;
        }
        let is_taken = |kind: NameKind, name: &str| self.definitions.is_taken(definition, kind, name);
        let problems = self.judgements.problems_of(definition);
        let next = with_status(definition, is_taken, problems, self.cx.clock().wall().into());
        if next.status != definition.status {
            // What the cache has of it then comes back as an event, and is put into service: kept by both, it is there once.
            return self.write_status(next).await.map(drop);
        }
        if !may_be_served(definition) {
            return Ok(());
        }
        self.put_into_service(definition).await?;
        if conditions::is_true(definition, "Established") {
            return Ok(());
        }
        // Who is told that it is established may ask for its objects at once.
        let mut next = definition.clone();
        let reason = ("InitialNamesAccepted", "the initial names have been accepted");
        conditions::set(&mut next, ("Established", true), reason, self.cx.clock().wall().into());
        self.write_status(next).await.map(drop)
    }

    /// Nothing where the definition is newer than what was seen of it, or gone: the event that says so is on its way.
    async fn write_status(&mut self, next: CustomResourceDefinition) -> Result<Option<Known>, ApiError> {
        let api = self.cx.loopback().all::<CustomResourceDefinition>();
        let written = match api.update_status(&next).await {
            Err(error) if error.is_conflict() || error.is_not_found() => return Ok(None),
            written => written.map_err(ApiError::internal)?,
        };
        // Schemas are large, and those of the answer are nobody else's.
        let written = Known::from(CustomResourceDefinition { spec: next.spec, ..written });
        self.learn(written.clone());
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
        if may_be_served(&definition) {
            self.put_into_service(&definition).await?;
        }
        let info = self.installed.get(&name).and_then(|own| own.installed.infos.first().cloned());
        let plural = definition.spec.names.plural.as_str();
        let reason = match (self.cleanups.get(&definition.metadata.uid).map(|ending| &ending.progress), info) {
            _ if BUILT_IN.contains(&(definition.spec.group.as_str(), plural)) => {
                ("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
            }
            (Some(Progress::Gone), _) => ("InstanceDeletionCompleted", "removed all instances"),
            (Some(_), _) => return self.tell_progress(definition).await,
            (None, Some(info)) => return self.empty(definition, info).await,
            (None, None) => ("NeverEstablished", "resource was never established"),
        };
        conditions::set(&mut definition, ("Terminating", false), reason, self.cx.clock().wall().into());
        let Some(written) = self.write_status(definition).await? else { return Ok(()) };
        let mut definition = written.get().clone();
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
    async fn empty(&mut self, definition: CustomResourceDefinition, info: Arc<CustomInfo>) -> Result<(), ApiError> {
        let (name, uid) = (definition.metadata.name.clone(), definition.metadata.uid.clone());
        if self.write_progress(definition, &Progress::Going).await? {
            let work = Cleanup { name, uid: uid.clone(), told: self.reports.0.clone() };
            self.cleanups.insert(uid, Ending { progress: Progress::Going, is_told: true });
            self.cx
                .tasks()
                .spawn_cancellable("custom-resource-cleanup", cleanup::empty(Arc::clone(&self.cx), info, work));
        }
        Ok(())
    }

    /// Has a definition tell how far its objects have gone, unless it does.
    async fn tell_progress(&mut self, definition: CustomResourceDefinition) -> Result<(), ApiError> {
        let uid = definition.metadata.uid.clone();
        let untold = self.cleanups.get(&uid).filter(|ending| !ending.is_told);
        let Some(progress) = untold.map(|ending| ending.progress.clone()) else { return Ok(()) };
        let is_told = self.write_progress(definition, &progress).await?;
        if let Some(ending) = self.cleanups.get_mut(&uid) {
            ending.is_told = is_told;
        }
        Ok(())
    }

    /// False where the definition is newer than what was seen of it.
    async fn write_progress(
        &mut self,
        mut definition: CustomResourceDefinition,
        progress: &Progress,
    ) -> Result<bool, ApiError> {
        let reason = match progress {
            Progress::Stuck(stuck) => (stuck.reason, stuck.message.as_str()),
            Progress::Going | Progress::Gone => {
                ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
            }
        };
        conditions::set(&mut definition, ("Terminating", true), reason, self.cx.clock().wall().into());
        Ok(self.write_status(definition).await?.is_some())
    }
}

/// Whether objects of a definition can be had: from when its names are accepted, and whatever comes of them later.
fn may_be_served(definition: &CustomResourceDefinition) -> bool {
    let names_accepted = conditions::is_true(definition, "NamesAccepted");
    conditions::is_true(definition, "Established") || (names_accepted && has_readable_bundle(&definition.spec))
}

/// The definition with the status that follows from its names, from what others have been granted and from what is not
/// structural. It does not become established by that: it has to be in service first.
fn with_status(
    definition: &CustomResourceDefinition,
    is_taken: impl Fn(NameKind, &str) -> bool,
    problems: Option<&str>,
    now: Time,
) -> CustomResourceDefinition {
    let mut next = definition.clone();
    let (accepted, conflict) = names::grant(&definition.spec.names, &definition.status.accepted_names, is_taken);
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
            if !was_established {
                let reason = if has_readable_bundle(&definition.spec) {
                    ("Installing", "the initial names have been accepted")
                } else {
                    ("InvalidCABundle", "The conversion webhook CABundle is invalid")
                };
                conditions::set(&mut next, ("Established", false), reason, now);
            }
        }
    }
    standing::judge(&mut next, problems, now);
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
        let apples = |_: NameKind, name: &str| name == "apples";
        let nothing = |_: NameKind, _: &str| false;
        let refused = with_status(&definition, apples, None, Time::default());
        assert!(!conditions::is_true(&refused, "NamesAccepted") && !conditions::is_true(&refused, "Established"));
        assert!(!may_be_served(&refused));
        let mut accepted = with_status(&refused, nothing, None, Time::default());
        assert!(conditions::is_true(&accepted, "NamesAccepted") && !conditions::is_true(&accepted, "Established"));
        assert!(may_be_served(&accepted), "before anybody is told that it is");
        let of_first = accepted.status.conditions.iter().map(|own| own.reason.as_str());
        assert_eq!(of_first.collect::<Vec<_>>(), ["NoConflicts", "Installing"]);
        conditions::set(&mut accepted, ("Established", true), ("InitialNamesAccepted", ""), Time::default());
        let later = with_status(&accepted, apples, None, Time::default());
        assert!(may_be_served(&later));
        assert!(!conditions::is_true(&later, "NamesAccepted") && conditions::is_true(&later, "Established"));
    }
}
