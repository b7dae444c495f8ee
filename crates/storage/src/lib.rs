//! Where cluster state is kept: keys, bytes and revisions, in etcd's model.
//!
//! One trait, [`Backend`], and three implementations of it: [`Etcd`] is what a cluster uses, [`Embedded`] is the
//! durable in-process default, [`Memory`] is for tests and simulation. The last two share one MVCC core, and
//! `contract` holds the one suite that all three pass.
//!
//! Deliberately not here: kinds, key layout (`/registry/...`), encodings, caching. Encryption at rest belongs
//! *above* a backend, as a value transformer between the encoded object and [`Write::Put`] on the way in and between
//! [`KeyValue::value`] and the decoder on the way out; a backend never looks inside a value.

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
mod model;
mod mvcc;

pub use backend::{Backend, EventStream, ProgressHandle, WatchItem};
pub use compactor::{COMPACT_REVISION_KEY, Compactor};
pub use embedded::{Embedded, EmbeddedOptions};
pub use error::StorageError;
pub use etcd::{Etcd, EtcdOptions, EtcdTls};
pub use key::{Key, KeyRange};
pub use lease_pool::{LeasePool, LeasePoolOptions};
pub use memory::{Memory, MemoryOptions};
pub use model::{Event, EventBatch, Expect, Get, KeyValue, LeaseId, Revision, Slice, Txn, Write};
