//! The end of a definition: its objects go first, in a task of their own, so that no other definition waits for them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::status::ApiError;
use base::Backoff;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use registry::{Event, Hooks, Resource, Stored};
use tokio::sync::mpsc;

use super::facts::CustomInfo;
use crate::cx::ApiCx;
use crate::own_request::server_request;

/// How many objects are listed at a time.
const PAGE_OBJECTS: i64 = 500;
/// How many deletions run at a time.
const DELETIONS: usize = 8;
/// How long objects are waited for until the definition tells that they do not go.
const CHECK_LIMIT: Duration = Duration::from_secs(60);
/// The first and the longest pause after a failure, and until a watch that ended is begun anew.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// By which part of itself a pause may be longer.
const JITTER: f64 = 0.1;
/// In how many namespaces deletions may fail and be told of; a condition is for people.
const MAX_FAILURES: usize = 20;

/// How far the objects of a definition have gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// They are being deleted.
    Going,
    /// They did not go, which is tried again.
    Stuck(Stuck),
    /// None is left.
    Gone,
}

/// Why objects did not go: the reason of the condition, and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Stuck {
    fn unlisted(error: impl Display) -> Self {
        Self { reason: "InstanceDeletionFailed", message: format!("could not list instances: {error}") }
    }

    fn not_deleted(error: impl Display) -> Self {
        Self { reason: "InstanceDeletionFailed", message: format!("could not issue all deletes: {error}") }
    }

    fn there(error: impl Display) -> Self {
        let message = format!("could not confirm zero CustomResources remaining: {error}");
        Self { reason: "InstanceDeletionCheck", message }
    }
}

/// A definition whose objects have come that far.
pub(super) struct Report {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) progress: Progress,
}

/// Whose objects are deleted, and who is told of it.
pub(super) struct Cleanup {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) told: mpsc::Sender<Report>,
}

impl Cleanup {
    async fn tell(&self, progress: Progress) {
        // Nobody listens when the server ends.
        let _ = self.told.send(Report { name: self.name.clone(), uid: self.uid.clone(), progress }).await;
    }
}

/// Deletes all objects of a kind until none is left, and says how far that has come.
pub(super) async fn empty(cx: Arc<ApiCx>, info: Arc<CustomInfo>, cleanup: Cleanup) {
    let info = info.get();
    let mut pauses = Backoff::new(RETRY_DELAYS[0], 2.0, RETRY_DELAYS[1], JITTER);
    // Found anew each time: the definition may change while it goes.
    while let Some(resource) = cx.registry().resource(info.group, info.version, info.resource) {
        let Err(stuck) = try_to_empty(&resource).await else { break };
        let Stuck { reason, message } = &stuck;
        tracing::warn!(reason, message, resource = %resource.group_resource(), "Custom objects do not go");
        cleanup.tell(Progress::Stuck(stuck)).await;
        if tokio::time::timeout(pauses.step(cx.rng()), gone_by_themselves(&resource)).await.is_ok() {
            break;
        }
        cleanup.tell(Progress::Going).await;
    }
    cleanup.tell(Progress::Gone).await;
}

/// Ends once the last object is gone, where that can be seen.
async fn gone_by_themselves(resource: &Arc<Resource>) {
    if until_gone(resource).await.is_err() {
        std::future::pending().await
    }
}

async fn try_to_empty(resource: &Arc<Resource>) -> Result<(), Stuck> {
    delete_all(resource).await?;
    match tokio::time::timeout(CHECK_LIMIT, until_gone(resource)).await {
        Ok(gone) => gone.map_err(Stuck::there),
        Err(_) => Err(Stuck::there("context deadline exceeded")),
    }
}

/// Deletes all objects. One that fails keeps no other from its deletion.
async fn delete_all(resource: &Resource) -> Result<(), Stuck> {
    let mut options = ListOptions { limit: PAGE_OBJECTS, ..ListOptions::default() };
    let failures = Mutex::new(BTreeMap::new());
    loop {
        let listed = resource.list(&server_request(resource.rule_context(), ""), &options).await;
        let page = listed.map_err(Stuck::unlisted)?;
        let deletions = stream::iter(page.items.iter());
        deletions.for_each_concurrent(DELETIONS, |item| delete(resource, item, &failures)).await;
        if page.continue_token.is_empty() {
            break;
        }
        options.continue_ = page.continue_token;
    }
    let failures: Vec<String> = failures.into_inner().into_values().take(MAX_FAILURES).collect();
    if failures.is_empty() { Ok(()) } else { Err(Stuck::not_deleted(authz::aggregate(failures))) }
}

/// Waits until the last object is gone.
async fn until_gone(resource: &Arc<Resource>) -> Result<(), ApiError> {
    let any = ListOptions { resource_version: "0".to_owned(), ..ListOptions::default() };
    loop {
        let mut watch = resource.watch(&server_request(resource.rule_context(), ""), &any, None).await?;
        // Counted once the watch is there, as it tells nothing of what went before.
        while resource.count().await? > 0 {
            match watch.next().await {
                Some(Event::Change(_) | Event::Bookmark { .. }) => {}
                Some(Event::Error(_)) | None => break,
            }
            while watch.try_next().is_some() {}
        }
        if resource.count().await? == 0 {
            return Ok(());
        }
        tokio::time::sleep(RETRY_DELAYS[0]).await;
    }
}

/// Deletes an object, or takes note of the first failure of its namespace.
async fn delete(resource: &Resource, item: &Stored, failures: &Mutex<BTreeMap<String, String>>) {
    let meta = item.object().meta();
    // One that waits for its finalizers was deleted before.
    if meta.deletion_timestamp.is_some() {
        return;
    }
    let request = server_request(resource.rule_context(), &meta.namespace);
    match resource.delete(&request, &meta.name, &DeleteOptions::default(), &Hooks::none()).await {
        Err(error) if !error.is_not_found() => {
            failures.lock().entry(meta.namespace.clone()).or_insert_with(|| error.to_string());
        }
        _ => {}
    }
}
