//! The generic store engine: one road for create, get, list, watch, update, patch and delete of every kind, built-in
//! or custom, over `dyn Rules` and `dyn Object`.
//!
//! A [`Registry`] holds a [`Resource`] per served version; a resource's rules are the kind's, its state is in the
//! store and, for most, in a watch cache. Admission runs inside the transaction, through [`Hooks`]. What a few kinds
//! keep beside their objects (addresses, ports, the finalizers of namespaces) is in `services` and `namespaces`; what
//! pods do besides is in [`bind`] and [`evict`].
//!
//! Deliberately not here: HTTP, decoding of requests, patches and field ownership as such (they come as [`Change`] and
//! [`Track`]), which admission there is, who may do what.

mod binding;
mod codec;
mod collection;
mod companion;
mod consistency;
mod context;
mod continue_token;
mod conversion;
mod counts;
mod create;
mod delete;
mod eviction;
mod failure;
mod finalizers;
mod key;
mod list;
mod list_options;
mod metadata;
mod namespaces;
mod observer;
mod places;
mod questions;
mod registry;
mod resource;
mod resource_version;
mod scale;
mod selection;
mod services;
mod shard_selector;
mod shards;
mod store;
mod surroundings;
mod unreadable;
mod update;
mod watch;

pub use binding::bind;
pub use codec::{ObjectCodec, StorageMedia};
pub use consistency::Consistency;
pub use context::{
    Admission, AdmitAll, Change, CreateWhenAbsent, Hooks, Operation, Patch, Replace, RequestCx, RulesRef, Track,
};
pub use continue_token::Token as ContinueToken;
pub use conversion::{Conversion, Convert, ConvertElsewhere};
pub use counts::{ConsistentReads, IndexedLists, ResourceCounts};
pub use create::Written;
pub use delete::{Deleted, Deletion, validate_options as validate_delete_options};
pub use eviction::evict;
pub use failure::watch_fault;
pub use list::List;
pub use list_options::{LIST_FROM_SNAPSHOT, Reading, WATCH_LIST, default_list_options, validate_list_options};
pub use observer::{Comparison, WriteObserver};
pub use registry::{Observers, Registry, RegistryOptions, ResourceStore, Transformers, uncached_by_default};
pub use resource::{Resource, Setup};
pub use services::{
    AllocationRecorder, Cidr, DISABLE_DUAL_WRITE, NetworkUse, RepairAction, RepairFinding, RepairReason, RepairReport,
    Scope, ServiceOptions,
};
pub use shard_selector::normalized as normalized_shards;
pub use shards::Shards;
pub use unreadable::UNSAFE_DELETION;
pub use watch::Watch;
pub use watch_cache::{CacheCounts, CacheStats, ChangeEvent, ChangeKind, Event, READ_WAIT_SECONDS, Stored, WatchFault};

#[cfg(test)]
mod tests;
