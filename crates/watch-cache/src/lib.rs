//! The current state and the recent past of each resource, in memory, fed by one storage watch.
//!
//! A [`Cache`] publishes immutable [`Snapshot`]s (a list reads one without a lock, pages read the same one) and keeps
//! one bounded log of changes that all watchers share: a [`Watcher`] is a cursor into the log with a filter, never a
//! queue of its own, and is woken only by changes in its [`Scope`]. A stored version of an object, [`Stored`], is shared
//! by get, list and watch, and is encoded once per media type; so is each other API version that it was converted to.
//!
//! Deliberately not here: kinds, selectors, limits and continue tokens, HTTP. They are the registry's and the server's.

mod cache;
mod change;
mod codec;
mod counts;
mod direct;
mod error;
mod event;
mod fingerprint;
mod log;
mod own_writes;
mod pace;
mod packed;
mod past;
mod rest;
mod signal;
mod snapshot;
mod stored;
mod version_id;
mod watcher;

pub use cache::{Bookmarks, Cache, CacheOptions, CacheStats, Since, WatchRequest};
pub use change::ChangeKind;
pub use codec::{Codec, CorruptObject, CorruptStage};
pub use counts::{CacheCounts, Count, READ_WAIT_SECONDS, ReadWaits};
pub use direct::{DirectWatcher, PAGE_KEYS};
pub use error::{CacheError, WatchFault};
pub use event::{ChangeEvent, Event};
pub use fingerprint::Fingerprint;
pub use own_writes::Announcement;
pub use pace::Pace;
pub use snapshot::{Index, Matcher, Scope, Snapshot};
pub use stored::Stored;
pub use version_id::VersionId;
pub use watcher::Watcher;

#[cfg(test)]
mod tests;
