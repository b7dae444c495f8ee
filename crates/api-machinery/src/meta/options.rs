//! CreateOptions and what it is made of.

use api_derive::api;

/// Query parameters of a create request.
#[api(group = "", version = "v1", kind = "CreateOptions")]
pub struct CreateOptions {
    /// Runs all stages without storing. The only allowed value is All.
    #[field(1)]
    pub dry_run: Vec<String>,
    /// Name of the actor making the change, at most 128 characters.
    #[field(3)]
    pub field_manager: String,
    /// How unknown or duplicate fields are treated: Ignore, Warn or Strict.
    #[field(4)]
    pub field_validation: String,
}

/// Query parameters of an update request.
#[api(group = "", version = "v1", kind = "UpdateOptions")]
pub struct UpdateOptions {
    /// Runs all stages without storing. The only allowed value is All.
    #[field(1)]
    pub dry_run: Vec<String>,
    /// Name of the actor making the change, at most 128 characters.
    #[field(2)]
    pub field_manager: String,
    /// How unknown or duplicate fields are treated: Ignore, Warn or Strict.
    #[field(3)]
    pub field_validation: String,
}

/// Query parameters of a patch request.
#[api(group = "", version = "v1", kind = "PatchOptions")]
pub struct PatchOptions {
    /// Runs all stages without storing. The only allowed value is All.
    #[field(1)]
    pub dry_run: Vec<String>,
    /// Takes over conflicting fields, allowed for apply patches only.
    #[field(2)]
    pub force: Option<bool>,
    /// Name of the actor making the change, required for apply patches.
    #[field(3)]
    pub field_manager: String,
    /// How unknown or duplicate fields are treated: Ignore, Warn or Strict.
    #[field(4)]
    pub field_validation: String,
}

/// Options of a delete request.
#[api(group = "", version = "v1", kind = "DeleteOptions")]
pub struct DeleteOptions {
    /// Seconds before deletion, with 0 meaning at once. Default depends on kind.
    #[field(1)]
    pub grace_period_seconds: Option<i64>,
    /// Conditions that must hold or the deletion fails with a conflict.
    #[field(2)]
    pub preconditions: Option<Preconditions>,
    /// Deprecated: obsolete switch to keep dependents. Use propagationPolicy instead.
    #[field(3)]
    pub orphan_dependents: Option<bool>,
    /// How dependents are handled. Allowed are Orphan, Background and Foreground.
    #[field(4, go = "v1.DeletionPropagation")]
    pub propagation_policy: Option<String>,
    /// Runs all stages without storing. The only allowed value is All.
    #[field(5)]
    pub dry_run: Vec<String>,
    /// Deletes objects that cannot be read from storage, which may break the cluster.
    #[field(6)]
    pub ignore_store_read_error_with_cluster_breaking_potential: Option<bool>,
}

/// Conditions an object must meet before an operation goes on.
#[api]
pub struct Preconditions {
    /// Unique identifier the object must have.
    #[field(1, go = "types.UID")]
    pub uid: Option<String>,
    /// Resource version the object must have.
    #[field(2)]
    pub resource_version: Option<String>,
}

/// Query parameters of a get request.
#[api(group = "", version = "v1", kind = "GetOptions")]
pub struct GetOptions {
    /// Limits how old the served version may be.
    #[field(1)]
    pub resource_version: String,
}

/// Query parameters of list and watch requests.
#[api(group = "", version = "v1", kind = "ListOptions")]
pub struct ListOptions {
    /// Keeps only objects whose labels match. Empty keeps all.
    #[field(1)]
    pub label_selector: String,
    /// Keeps only objects whose fields match. Empty keeps all.
    #[field(2)]
    pub field_selector: String,
    /// Streams changes to the collection instead of returning a list.
    #[field(3)]
    pub watch: bool,
    /// Lets the server send bookmark events that only carry a version.
    #[field(9)]
    pub allow_watch_bookmarks: bool,
    /// Limits which version may be served, as resourceVersionMatch tells.
    #[field(4)]
    pub resource_version: String,
    /// How resourceVersion applies to lists. Allowed are NotOlderThan and Exact.
    #[field(10, go = "v1.ResourceVersionMatch")]
    pub resource_version_match: String,
    /// Seconds after which the call ends, whether or not active.
    #[field(5)]
    pub timeout_seconds: Option<i64>,
    /// Largest number of items to return in one page.
    #[field(7)]
    pub limit: i64,
    /// Token from the previous page to fetch the next one.
    #[field(8)]
    pub continue_: String,
    /// Starts the watch with current objects, followed by a marking bookmark.
    #[field(11)]
    pub send_initial_events: Option<bool>,
    /// Keeps only objects in the given hash ranges. Empty keeps all.
    #[field(15)]
    pub shard_selector: String,
}

/// Query parameters of a table request.
#[api(group = "", version = "v1", kind = "TableOptions")]
pub struct TableOptions {
    /// What each row carries: None, Metadata or Object. Default is Metadata.
    #[field(1, go = "v1.IncludeObjectPolicy")]
    pub include_object: String,
}
