//! The nouns of the storage interface: revisions, key-value pairs, transactions and events.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::Key;

/// A point in the store's history: every committed change makes the next one. An empty store is at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub i64);

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Names a lease; never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

impl fmt::Display for LeaseId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

/// A key with its value at some revision. Clones share the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Key,
    /// The value; empty for a deletion.
    pub value: Bytes,
    /// When the key came into being; 0 for a deletion.
    pub create_revision: Revision,
    /// When this value was written (or, for a deletion, when that happened).
    pub mod_revision: Revision,
    /// How many times the key was written since it came into being: 1 on creation, 0 for a deletion.
    pub version: i64,
    /// The lease the key dies with.
    pub lease: Option<LeaseId>,
    /// What is wrong with the value as it was read; a store itself finds nothing wrong.
    pub flaw: Option<Arc<Flaw>>,
}

impl KeyValue {
    /// Whether the value should be written anew, though it may be what is to be written.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.flaw.as_deref() == Some(&Flaw::Stale)
    }

    /// Why the value cannot be read, if so.
    #[must_use]
    pub fn unreadable(&self) -> Option<&str> {
        match self.flaw.as_deref() {
            Some(Flaw::Unreadable(why)) => Some(why),
            _ => None,
        }
    }
}

/// What a [`Transformer`](crate::Transformer) found about a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// It lies in a form that is no longer written, such as encrypted with a former key.
    Stale,
    /// It cannot be brought into the form that was written; the value is as it lies.
    Unreadable(String),
}

/// One change of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The key was written.
    Put {
        /// What was written.
        kv: KeyValue,
        /// What was there before; `None` on creation, or where history that old has been compacted.
        previous: Option<KeyValue>,
    },
    /// The key was deleted, by a client or by the end of its lease.
    Delete {
        /// The key.
        key: Key,
        /// When.
        revision: Revision,
        /// What was there before; `None` only where history that old has been compacted.
        previous: Option<KeyValue>,
    },
}

impl Event {
    /// The key that changed.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Put { kv, .. } => &kv.key,
            Self::Delete { key, .. } => key,
        }
    }

    /// When it changed.
    #[must_use]
    pub fn revision(&self) -> Revision {
        match self {
            Self::Put { kv, .. } => kv.mod_revision,
            Self::Delete { revision, .. } => *revision,
        }
    }

    /// What was there before.
    #[must_use]
    pub fn previous(&self) -> Option<&KeyValue> {
        match self {
            Self::Put { previous, .. } | Self::Delete { previous, .. } => previous.as_ref(),
        }
    }

    /// Whether the key came into being by this change.
    #[must_use]
    pub fn is_create(&self) -> bool {
        matches!(self, Self::Put { kv, .. } if kv.create_revision == kv.mod_revision)
    }
}

/// Everything that one revision changed within a watched range: never empty, never split over two batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventBatch {
    /// The revision.
    pub revision: Revision,
    /// The changes, at most one per key.
    pub events: Arc<[Event]>,
}

/// What must be true of a key for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// There is no such key.
    Absent,
    /// The key was last written at exactly this revision.
    At(Revision),
    /// Nothing: the last writer wins.
    Any,
}

/// What to do to a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Store this value. The key is detached from whatever lease it had.
    Put {
        /// The new value.
        value: Bytes,
        /// The lease the key shall die with.
        lease: Option<LeaseId>,
    },
    /// Remove the key. Removing what is not there succeeds without making a revision.
    Delete,
}

impl Write {
    /// Store a value that no lease ends.
    pub fn put(value: impl Into<Bytes>) -> Self {
        Self::Put { value: value.into(), lease: None }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Txn {
    /// It was written.
    Committed {
        /// The revision it made (of a removal of nothing: the store's current one).
        revision: Revision,
        /// What was there before.
        previous: Option<KeyValue>,
    },
    /// The expectation did not hold, nothing was written.
    Conflict {
        /// What is there.
        current: Option<KeyValue>,
        /// The store's revision.
        revision: Revision,
    },
}

/// The answer to a read of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Get {
    /// The key's newest value, if it exists.
    pub kv: Option<KeyValue>,
    /// The store's revision when it was read.
    pub revision: Revision,
}

/// The answer to a read of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The pairs in the order of their keys, at most as many as asked for.
    pub kvs: Vec<KeyValue>,
    /// How many more there are in the range, past the last of `kvs`.
    pub remaining: u64,
    /// The store's revision when it was read; a read at an older revision still reports the newest.
    pub revision: Revision,
}

impl Slice {
    /// Whether the limit cut the range short.
    #[must_use]
    pub fn more(&self) -> bool {
        self.remaining > 0
    }
}
