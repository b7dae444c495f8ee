//! Where cluster state is kept: keys, bytes and revisions, in etcd's model.
//!
//! One trait, [`Backend`], and three implementations of it: [`Etcd`] is what a cluster uses, [`Embedded`] is the
//! durable in-process default, [`Memory`] is for tests and simulation. The last two share one MVCC core, and
//! `contract` holds the one suite that all three pass.
//!
//! Deliberately not here: kinds, key layout (`/registry/...`), encodings, caching. A store never looks inside a value. What
//! lies there in another form than it was written in, such as encrypted, passes a [`Transformer`], which [`Transformed`]
//! puts between a store and those who use it.

mod backend;
mod compactor;
#[cfg(feature = "contract")]
pub mod contract;
mod embedded;
mod error;
mod etcd;
mod key;
mod lease_pool;
mod memory;
mod metered;
mod model;
mod mvcc;
mod transformed;

pub use backend::{Backend, EventStream, ProgressHandle, WatchItem};
pub use compactor::{COMPACT_REVISION_KEY, Compactor};
pub use embedded::{Embedded, EmbeddedOptions};
#[cfg(any(test, feature = "contract"))]
pub use embedded::{FaultyDisk, Images, Wreck};
pub use error::StorageError;
pub use etcd::{Etcd, EtcdOptions, EtcdTls};
pub use key::{Key, KeyRange};
pub use lease_pool::{LeasePool, LeasePoolOptions};
pub use memory::{Memory, MemoryOptions};
pub use metered::{Metered, Observe, Outcome};
pub use model::{Event, EventBatch, Expect, Flaw, Get, KeyValue, LeaseId, Revision, Slice, Txn, Write};
pub use transformed::{ReadValue, TransformError, Transformed, Transformer};
