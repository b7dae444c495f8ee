//! Deletion of a collection: a list, and a deletion of each item by name.

use std::sync::Arc;

use api_machinery::meta::{DeleteOptions, ListOptions};
use api_machinery::status::ApiError;
use futures_util::{TryStreamExt as _, stream};
use watch_cache::Stored;

use crate::context::{Hooks, RequestCx};
use crate::list::List;
use crate::resource::Resource;
use crate::{delete, list_options, unreadable};

/// How many objects are listed at a time where the client sets no limit.
const PAGE_OBJECTS: i64 = 10_000;

impl Resource {
    /// Deletes the objects that a list would show; gives the list as it was read. Objects that are gone by their turn
    /// are skipped, and any other failure ends the request with what is deleted deleted.
    ///
    /// # Errors
    /// Those of the list, and the first of the deletions.
    pub async fn delete_collection(
        &self,
        cx: &RequestCx,
        query: &ListOptions,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<List, ApiError> {
        delete::validate_options(options)?;
        unreadable::refuse_for_many(options)?;
        list_options::validate_list_options(query, list_options::Reading::List, &self.shared.gates)?;
        // Who asks for what cannot be understood is told that alone.
        self.selection(&cx.namespace, query)?;
        hooks.admission.warn(&self.delete_warnings(options));
        let mut query = query.clone();
        let one_page = query.limit > 0;
        if !one_page {
            query.limit = PAGE_OBJECTS;
        }
        let mut all = List::default();
        loop {
            let page = self.list(cx, &query).await?;
            self.delete_each(cx, &page.items, options, hooks).await?;
            all.items.extend(page.items);
            all.revision = page.revision;
            if one_page || page.continue_token.is_empty() {
                all.continue_token = page.continue_token;
                all.remaining_item_count = page.remaining_item_count;
                return Ok(all);
            }
            query.continue_ = page.continue_token;
            query.resource_version.clear();
            query.resource_version_match.clear();
        }
    }

    async fn delete_each(
        &self,
        cx: &RequestCx,
        items: &[Arc<Stored>],
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<(), ApiError> {
        let workers = self.shared.delete_collection_workers.max(1);
        let deletions = stream::iter(items.iter().map(Ok::<_, ApiError>));
        deletions.try_for_each_concurrent(workers, |item| self.delete_one(cx, item, options, hooks)).await
    }

    async fn delete_one(
        &self,
        cx: &RequestCx,
        item: &Stored,
        options: &DeleteOptions,
        hooks: &Hooks<'_>,
    ) -> Result<(), ApiError> {
        let meta = item.object().meta();
        let cx = RequestCx { namespace: meta.namespace.clone(), ..cx.clone() };
        // Boxed, or the futures of deletions would nest in each other's types.
        match Box::pin(self.delete_any(&cx, &meta.name, options, hooks)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }
}
