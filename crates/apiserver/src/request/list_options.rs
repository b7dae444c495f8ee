//! The options of list, watch and deletecollection. What they mean together is the registry's business.

use api_machinery::meta::ListOptions;
use api_machinery::status::ApiError;
use component_base::Gates;

use super::query::Query;
use crate::gates::SHARDS;

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

/// The same with the shards that a client wants, where there are shards (`ShardedListAndWatch`).
///
/// # Errors
/// 400 for numbers that are none, 500 for shards that are none, as upstream.
pub(crate) fn sharded_list_options(query: &Query, gates: &Gates) -> Result<ListOptions, ApiError> {
    let mut options = list_options(query)?;
    let wanted = query.text("shardSelector");
    if gates.enabled(SHARDS) && !wanted.is_empty() {
        let normal = registry::normalized_shards(&wanted);
        let invalid = |why| ApiError::unclassified(format!("invalid shard selector: {why}"));
        options.shard_selector = normal.map_err(invalid)?;
    }
    Ok(options)
}
