//! The options of list, watch and deletecollection. What they mean together is the registry's business.

use api_machinery::meta::ListOptions;
use api_machinery::status::ApiError;

use super::query::Query;

/// Reads list options from a query.
///
/// # Errors
/// 400 for numbers that are none.
pub(crate) fn list_options(query: &Query) -> Result<ListOptions, ApiError> {
    Ok(ListOptions {
        label_selector: query.text("labelSelector"),
        field_selector: query.text("fieldSelector"),
        watch: query.flag("watch"),
        allow_watch_bookmarks: query.flag("allowWatchBookmarks"),
        resource_version: query.text("resourceVersion"),
        resource_version_match: query.text("resourceVersionMatch"),
        timeout_seconds: query.integer("timeoutSeconds")?,
        limit: query.integer("limit")?.unwrap_or(0),
        continue_: query.text("continue"),
        send_initial_events: query.switch("sendInitialEvents"),
        shard_selector: String::new(),
    })
}
