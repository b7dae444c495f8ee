//! The end of a definition: its objects go first, in a task of their own, so that no other definition waits for them.

use std::sync::Arc;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::status::ApiError;
use futures_util::{TryStreamExt as _, stream};
use registry::{Event, Hooks, Resource, Stored};
use tokio::sync::mpsc;

use super::facts::CustomInfo;
use crate::cx::ApiCx;
use crate::own_request::server_request;

/// How many objects are listed at a time.
const PAGE_OBJECTS: i64 = 500;
/// How many deletions run at a time.
const DELETIONS: usize = 8;
/// How long to wait after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// A definition whose objects are all gone.
pub(super) struct Emptied {
    pub(super) name: String,
    pub(super) uid: String,
}

/// Deletes all objects of a kind until none is left, and says so.
pub(super) async fn empty(cx: Arc<ApiCx>, info: Arc<CustomInfo>, emptied: Emptied, told: mpsc::Sender<Emptied>) {
    let info = info.get();
    // Found anew each time: the definition may change while it goes.
    while let Some(resource) = cx.registry().resource(info.group, info.version, info.resource) {
        match delete_all(&resource).await {
            Ok(0) => break,
            Ok(left) => {
                tracing::debug!(left, resource = %resource.group_resource(), "Custom objects wait for their finalizers");
                until_gone(&resource).await;
            }
            Err(error) => {
                tracing::warn!(%error, resource = %resource.group_resource(), "Custom objects could not be deleted");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
    // Nobody listens when the server ends.
    let _ = told.send(emptied).await;
}

/// Deletes all objects and says how many are still there.
async fn delete_all(resource: &Resource) -> Result<u64, ApiError> {
    let mut options = ListOptions { limit: PAGE_OBJECTS, ..ListOptions::default() };
    loop {
        let page = resource.list(&server_request(resource.rule_context(), ""), &options).await?;
        let deletions = stream::iter(page.items.iter().map(Ok::<_, ApiError>));
        deletions.try_for_each_concurrent(DELETIONS, |item| delete(resource, item)).await?;
        if page.continue_token.is_empty() {
            return resource.count().await;
        }
        options.continue_ = page.continue_token;
    }
}

/// Waits until the last object is gone, or this cannot be seen any more.
async fn until_gone(resource: &Arc<Resource>) {
    let any = ListOptions { resource_version: "0".to_owned(), ..ListOptions::default() };
    let Ok(mut watch) = resource.watch(&server_request(resource.rule_context(), ""), &any, None).await else {
        return tokio::time::sleep(RETRY_DELAY).await;
    };
    // Counted once the watch is there, as it tells nothing of what went before.
    while resource.count().await.is_ok_and(|left| left > 0) {
        match watch.next().await {
            Some(Event::Change(_) | Event::Bookmark { .. }) => {}
            Some(Event::Error(_)) | None => return tokio::time::sleep(RETRY_DELAY).await,
        }
        while watch.try_next().is_some() {}
    }
}

async fn delete(resource: &Resource, item: &Stored) -> Result<(), ApiError> {
    let meta = item.object().meta();
    // One that waits for its finalizers was deleted before.
    if meta.deletion_timestamp.is_some() {
        return Ok(());
    }
    let request = server_request(resource.rule_context(), &meta.namespace);
    match resource.delete(&request, &meta.name, &DeleteOptions::default(), &Hooks::none()).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
