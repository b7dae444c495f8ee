//! ObjectMeta and what it is made of.

use std::collections::BTreeMap;

use crate::leaf::RawJson;
use crate::time::Time;
use api_derive::api;

/// Metadata that every stored object carries.
#[api]
pub struct ObjectMeta {
    /// Name of the object, unique per kind and namespace, and immutable.
    #[field(1)]
    pub name: String,
    /// Prefix from which the server makes a unique name when name is empty.
    #[field(2)]
    pub generate_name: String,
    /// Namespace the object lives in, empty for cluster-scoped objects, and immutable.
    #[field(3)]
    pub namespace: String,
    /// Deprecated: obsolete link to the object, no longer set by the server.
    #[field(4)]
    pub self_link: String,
    /// Unique identifier given by the server, never reused within the cluster.
    #[field(5, go = "types.UID")]
    pub uid: String,
    /// Opaque version that changes on every write, used to detect conflicts.
    #[field(6)]
    pub resource_version: String,
    /// Number that the server raises when the desired state changes.
    #[field(7)]
    pub generation: i64,
    /// Time at which the server created the object.
    #[field(8, omitzero)]
    pub creation_timestamp: Time,
    /// Time after which the object is removed, set once deletion is requested.
    #[field(9)]
    pub deletion_timestamp: Option<Time>,
    /// Seconds allowed for graceful shutdown, set together with deletionTimestamp.
    #[field(10)]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Key and value pairs used to organize and select objects.
    #[field(11)]
    pub labels: BTreeMap<String, String>,
    /// Free-form key and value pairs for tools, not usable in selectors.
    #[field(12)]
    pub annotations: BTreeMap<String, String>,
    /// Objects this one depends on, used by garbage collection.
    #[field(13, merge_key = "uid")]
    pub owner_references: Vec<OwnerReference>,
    /// Names that must all be removed before the object can disappear.
    #[field(14, set, merge)]
    pub finalizers: Vec<String>,
    /// Records which manager owns which fields, maintained by the server.
    #[field(17)]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// Points to an owning object in the same namespace or cluster scope.
#[api(atomic)]
pub struct OwnerReference {
    /// Group and version of the owner.
    #[field(5, always, required)]
    pub api_version: String,
    /// Kind of the owner.
    #[field(1, always, required)]
    pub kind: String,
    /// Name of the owner.
    #[field(3, always, required)]
    pub name: String,
    /// Unique identifier of the owner.
    #[field(4, always, required, go = "types.UID")]
    pub uid: String,
    /// Whether the owner is the managing controller, with at most one allowed.
    #[field(6)]
    pub controller: Option<bool>,
    /// Whether this object holds up foreground deletion of the owner. Default is false.
    #[field(7)]
    pub block_owner_deletion: Option<bool>,
}

/// The fields of an object that one manager owns.
#[api]
pub struct ManagedFieldsEntry {
    /// Name of the manager that owns the fields.
    #[field(1)]
    pub manager: String,
    /// Operation that recorded the entry, either Apply or Update.
    #[field(2, go = "v1.ManagedFieldsOperationType")]
    pub operation: String,
    /// API version the field paths refer to.
    #[field(3)]
    pub api_version: String,
    /// Time at which the entry last changed.
    #[field(4)]
    pub time: Option<Time>,
    /// Format of the field set. The only value is FieldsV1.
    #[field(6)]
    pub fields_type: String,
    /// The owned fields as a JSON tree.
    #[field(7)]
    pub fields_v1: Option<RawJson>,
    /// Subresource used for the write, empty for the main resource.
    #[field(8)]
    pub subresource: String,
}

/// Metadata that every list response carries.
#[api]
pub struct ListMeta {
    /// Deprecated: obsolete link to the object, no longer set by the server.
    #[field(1)]
    pub self_link: String,
    /// Opaque version of the list, usable to start a watch.
    #[field(2)]
    pub resource_version: String,
    /// Token that fetches the next page, empty on the last page.
    #[field(3)]
    pub continue_: String,
    /// Estimated number of items after this page, absent with selectors.
    #[field(4)]
    pub remaining_item_count: Option<i64>,
    /// Describes the shard this list covers, when sharding is requested.
    #[field(5)]
    pub shard_info: Option<ShardInfo>,
}

/// Says which part of a collection a sharded list contains.
#[api]
pub struct ShardInfo {
    /// The shard selector the server applies, in normalized form.
    #[field(1, always, required)]
    pub selector: String,
}
