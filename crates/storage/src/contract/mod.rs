//! What every implementation of [`Backend`] must do, as tests that each of them runs.
//!
//! A case gets a [`Subject`] with a prefix of its own and assumes nothing about what else the store holds, so that all
//! cases can run one after another against one etcd. A violated expectation panics, as a test does.

mod compaction;
mod concurrency;
mod leases;
mod model;
mod reads;
mod watches;
mod writes;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use crate::{
    Backend, Event, EventBatch, EventStream, Expect, Key, KeyRange, KeyValue, Revision, StorageError, Txn, WatchItem,
    Write,
};

/// How long a case waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store under test and the part of it that a case may use.
#[derive(Clone)]
pub struct Subject {
    backend: Arc<dyn Backend>,
    prefix: String,
}

/// One test of the contract.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    run: fn(Subject) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Case {
    /// Runs the case; panics where the store breaks the contract.
    pub async fn run(&self, backend: Arc<dyn Backend>) {
        let prefix = format!("/contract/{}/", self.name);
        (self.run)(Subject { backend, prefix }).await;
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident),* $(,)?) => {
        &[$(Case { name: stringify!($case), run: |subject| Box::pin($module::$case(subject)) }),*]
    };
}

/// The whole contract.
pub const ALL: &[Case] = cases![
    writes::create_only_where_absent,
    writes::update_only_at_the_expected_revision,
    writes::delete_only_at_the_expected_revision,
    writes::unconditional_writes_always_happen,
    writes::versions_count_the_writes,
    writes::bad_requests_are_refused,
    reads::a_range_is_ordered_and_bounded,
    reads::pages_at_a_revision_are_one_snapshot,
    reads::a_future_revision_is_an_error,
    reads::the_current_revision_follows_writes,
    reads::a_large_range_is_complete,
    watches::events_come_in_order_with_what_was_before,
    watches::a_watch_starts_where_it_is_told,
    watches::a_watch_from_the_future_waits,
    watches::a_watch_resumes_without_gap_or_repeat,
    watches::a_watch_sees_only_its_range,
    watches::a_long_backlog_is_delivered_whole,
    watches::progress_comes_after_all_that_it_covers,
    leases::the_end_of_a_lease_deletes_its_keys,
    leases::a_revoked_lease_deletes_its_keys_at_once,
    leases::a_write_without_lease_frees_the_key,
    leases::an_unknown_lease_is_refused,
    concurrency::one_winner_per_round,
    concurrency::no_increment_is_lost,
    concurrency::everyone_reads_what_he_wrote,
    model::random_operations_agree_with_the_model,
    compaction::compacted_history_is_an_error,
    compaction::compaction_keeps_what_it_must,
    compaction::the_edge_of_compaction_is_not_skipped,
];

impl Subject {
    fn key(&self, name: &str) -> Key {
        format!("{}{name}", self.prefix).into()
    }

    fn all(&self) -> KeyRange {
        KeyRange::prefix(self.prefix.as_str())
    }

    async fn put(&self, name: &str, value: &str) -> Revision {
        self.commit(name, Expect::Any, Write::put(value.to_owned())).await
    }

    async fn delete(&self, name: &str) -> Revision {
        self.commit(name, Expect::Any, Write::Delete).await
    }

    /// Writes and expects it to happen.
    async fn commit(&self, name: &str, expect: Expect, write: Write) -> Revision {
        match self.txn(name, expect, write).await {
            Txn::Committed { revision, .. } => revision,
            Txn::Conflict { current, .. } => panic!("{name}: a conflict with {current:?}"),
        }
    }

    async fn txn(&self, name: &str, expect: Expect, write: Write) -> Txn {
        self.backend.txn(&self.key(name), expect, write).await.expect("a transaction")
    }

    async fn value(&self, name: &str) -> Option<KeyValue> {
        self.backend.get(&self.key(name)).await.expect("a read").kv
    }

    /// The names and values of the prefix at a revision.
    async fn contents(&self, at: Option<Revision>) -> Vec<(String, String)> {
        let slice = self.backend.range(&self.all(), 0, at).await.expect("a range");
        slice.kvs.iter().map(|kv| self.plain(kv)).collect()
    }

    fn name_of(&self, key: &Key) -> String {
        key.to_string().trim_start_matches(&self.prefix).to_owned()
    }

    fn plain(&self, kv: &KeyValue) -> (String, String) {
        (self.name_of(&kv.key), text(kv))
    }

    fn watch(&self, after: Revision) -> EventStream {
        self.backend.watch(self.all(), after)
    }

    async fn revision(&self) -> Revision {
        self.backend.current_revision().await.expect("a revision")
    }
}

fn text(kv: &KeyValue) -> String {
    String::from_utf8_lossy(&kv.value).into_owned()
}

/// The next item of a watch.
async fn item(watch: &mut EventStream) -> Result<WatchItem, StorageError> {
    let next = tokio::time::timeout(PATIENCE, watch.next()).await;
    next.expect("a watch that should have something is silent").expect("a watch ended without an error")
}

/// The next batch of a watch, marks aside: they may go on for ever while the batch is missing.
async fn batch(watch: &mut EventStream) -> EventBatch {
    let next = async {
        loop {
            if let WatchItem::Events(batch) = item(watch).await.expect("a batch") {
                return batch;
            }
        }
    };
    tokio::time::timeout(PATIENCE, next).await.expect("an event is missing")
}

/// The next batch, which must hold a single event.
async fn event(watch: &mut EventStream) -> Event {
    let batch = batch(watch).await;
    assert_eq!(batch.events.len(), 1, "one write is one event: {batch:?}");
    let event = batch.events.first().cloned().expect("a batch is never empty");
    assert_eq!(event.revision(), batch.revision);
    event
}

/// The error that a watch ends with, after which it must yield nothing.
async fn error(watch: &mut EventStream) -> StorageError {
    let next = async {
        loop {
            match item(watch).await {
                Ok(WatchItem::Progress(_)) => {}
                Ok(WatchItem::Events(batch)) => panic!("an event where an error was due: {batch:?}"),
                Err(error) => return error,
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, next).await.expect("an error is missing");
    assert!(watch.next().await.is_none(), "a watch goes on after its error");
    error
}
