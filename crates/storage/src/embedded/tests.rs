//! What the embedded store adds to the contract: it survives restarts, crashes, damage and full disks.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::{Rng, TaskGroup, TokioClock};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use tempfile::TempDir;

use super::faults::FaultyDisk;
use super::{Embedded, EmbeddedOptions, JOURNAL_BYTES, directory};
use crate::{Backend, Event, Expect, Key, KeyRange, Revision, StorageError, Txn, WatchItem, Write};

const DEADLINE: Duration = Duration::from_secs(10);

type History = BTreeMap<Revision, (String, Option<String>)>;

async fn open(directory: &Path) -> Result<Arc<Embedded>, StorageError> {
    let group = TaskGroup::new("test");
    Embedded::open(EmbeddedOptions::new(directory), TokioClock::shared(), &group).await
}

async fn open_on(directory: &Path, disk: &FaultyDisk) -> Result<Arc<Embedded>, StorageError> {
    open_short(directory, disk, JOURNAL_BYTES).await
}

/// Opens a store whose database catches up whenever the journal has so many bytes.
async fn open_short(directory: &Path, disk: &FaultyDisk, journal_bytes: u64) -> Result<Arc<Embedded>, StorageError> {
    let group = TaskGroup::new("test");
    let options = EmbeddedOptions { journal_bytes, ..EmbeddedOptions::new(directory) };
    Embedded::open_with(options, TokioClock::shared(), &group, Arc::new(disk.clone())).await
}

async fn put(store: &Embedded, key: &str, value: &str) -> Result<Revision, StorageError> {
    match store.txn(&key.into(), Expect::Any, Write::put(value.to_owned())).await? {
        Txn::Committed { revision, .. } => Ok(revision),
        Txn::Conflict { .. } => panic!("an unconditional write cannot conflict"),
    }
}

async fn contents(store: &Embedded) -> Vec<(String, String)> {
    let slice = store.range(&KeyRange::all(), 0, None).await.expect("a range");
    let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    slice.kvs.iter().map(|kv| (plain(kv.key.as_bytes()), plain(&kv.value))).collect()
}

/// Everything a watch from the beginning delivers up to the current revision.
async fn replay(store: &Embedded) -> History {
    let end = store.current_revision().await.expect("a revision");
    let mut watch = store.watch(KeyRange::all(), Revision(0));
    let mut history = History::new();
    let read = async {
        while history.last_key_value().map_or(1, |(revision, _)| revision.0) < end.0 {
            let item = watch.next().await.expect("no end").expect("no error");
            let WatchItem::Events(batch) = item else { continue };
            for event in batch.events.iter() {
                let value = match event {
                    Event::Put { kv, .. } => Some(String::from_utf8_lossy(&kv.value).into_owned()),
                    Event::Delete { .. } => None,
                };
                history.insert(event.revision(), (event.key().to_string(), value));
            }
        }
    };
    tokio::time::timeout(DEADLINE, read).await.expect("events are missing");
    history
}

fn state_after(history: &History, revision: Revision) -> Vec<(String, String)> {
    let mut state = BTreeMap::new();
    for (key, value) in history.range(..=revision).map(|(_, change)| change) {
        match value {
            Some(value) => drop(state.insert(key.clone(), value.clone())),
            None => drop(state.remove(key)),
        }
    }
    state.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn everything_is_there_after_a_restart_or_a_kill() {
    for journal_bytes in [512, 6_000, JOURNAL_BYTES] {
        everything_is_there(journal_bytes, false).await;
        everything_is_there(journal_bytes, true).await;
    }
}

async fn everything_is_there(journal_bytes: u64, killed: bool) {
    let (mut directory, copied) =
        (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let open = async |directory: &Path| {
        let options = EmbeddedOptions { journal_bytes, ..EmbeddedOptions::new(directory) };
        Embedded::open(options, TokioClock::shared(), &TaskGroup::new("test")).await
    };
    let store = open(directory.path()).await.expect("a new store");
    for index in 0..50 {
        put(&store, &format!("k{}", index % 7), &format!("v{index}")).await.expect("a write");
    }
    store.txn(&"k3".into(), Expect::Any, Write::Delete).await.expect("a delete");
    let lease = store.lease_grant(Duration::from_secs(100)).await.expect("a lease");
    let leased = Write::Put { value: "x".into(), lease: Some(lease) };
    store.txn(&"leased".into(), Expect::Absent, leased).await.expect("a write");
    let revoked = store.lease_grant(Duration::from_secs(100)).await.expect("a lease");
    store.lease_revoke(revoked).await.expect("it exists");
    store.compact(Revision(20)).await.expect("a compaction");
    let last = put(&store, "last", "x").await.expect("a write");
    let (before, kv) = (contents(&store).await, store.get(&"k1".into()).await.expect("a read"));
    if killed {
        copy(directory.path(), copied.path());
        directory = copied;
    }
    store.close(DEADLINE).await;
    assert_eq!(put(&store, "late", "x").await, Err(StorageError::Closed));

    let store = open(directory.path()).await.expect("the same store");
    assert_eq!(contents(&store).await, before);
    assert_eq!(store.get(&"k1".into()).await, Ok(kv), "also revisions and versions");
    assert_eq!(store.current_revision().await, Ok(last));
    let old = store.range(&KeyRange::all(), 0, Some(Revision(19))).await;
    assert!(matches!(old, Err(StorageError::Compacted { .. })), "{old:?}");
    let snapshot = store.range(&KeyRange::all(), 0, Some(Revision(20))).await.expect("history is kept");
    assert_eq!(snapshot.kvs.len(), 7);
    let mut watch = store.watch(KeyRange::all(), Revision(20));
    let Some(Ok(WatchItem::Events(batch))) = watch.next().await else { panic!("the log is kept") };
    assert_eq!(batch.revision, Revision(21));
    assert!(batch.events.first().and_then(Event::previous).is_some(), "previous values too");
    assert_eq!(put(&store, "next", "x").await, Ok(Revision(last.0 + 1)));
    let second = store.lease_grant(Duration::from_secs(100)).await.expect("a lease");
    assert!(second != lease && second != revoked, "a lease is not granted twice");
    tokio::time::sleep(Duration::from_secs(101)).await;
    assert_eq!(store.get(&"leased".into()).await.expect("a read").kv, None, "leases live on");
    store.close(DEADLINE).await;
}

/// What a database says of itself.
fn format_of(path: &Path) -> i64 {
    let database = redb::Database::open(path).expect("a database");
    let meta: redb::TableDefinition<'_, &str, i64> = redb::TableDefinition::new("meta");
    let meta = redb::ReadableDatabase::begin_read(&database).expect("a transaction").open_table(meta);
    meta.expect("the table").get("format").expect("a number").expect("an entry").value()
}

#[tokio::test(start_paused = true)]
async fn a_store_from_before_the_journal_is_read() {
    let home = tempfile::tempdir().expect("a directory");
    let store = open(home.path()).await.expect("a new store");
    put(&store, "a", "kept").await.expect("a write");
    store.close(DEADLINE).await;
    let database = redb::Database::open(directory::database(home.path())).expect("a database");
    let txn = database.begin_write().expect("a transaction");
    {
        let meta: redb::TableDefinition<'_, &str, i64> = redb::TableDefinition::new("meta");
        let mut meta = txn.open_table(meta).expect("the table");
        meta.insert("format", 1).expect("an entry");
        meta.remove("sequence").expect("an entry");
        meta.remove("journal_mark").expect("an entry");
    }
    txn.commit().expect("a commit");
    drop(database);
    for half in 0..2 {
        std::fs::remove_file(directory::journal(home.path(), half)).expect("a removal");
    }
    for round in 0..2 {
        let store = open(home.path()).await.expect("the same store");
        // A version from before may not follow, not even after a crash.
        let copy = home.path().join("copy");
        std::fs::copy(directory::database(home.path()), &copy).expect("a copy");
        assert_eq!(format_of(&copy), 3);
        put(&store, &format!("b{round}"), "new").await.expect("a write");
        assert_eq!(contents(&store).await.len(), round + 2);
        store.close(DEADLINE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_process_at_a_time_and_nobody_else() {
    let parent = tempfile::tempdir().expect("a directory");
    let path = parent.path().join("made/on/demand");
    let store = open(&path).await.expect("a new store");
    assert_eq!(open(&path).await.err(), Some(StorageError::Locked(path.clone())));
    let mode = |path: &Path| std::fs::metadata(path).expect("it exists").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&directory::database(&path))), (0o700, 0o600));
    store.close(DEADLINE).await;
    open(&path).await.expect("free again").close(DEADLINE).await;
}

#[tokio::test(start_paused = true)]
async fn compaction_frees_rows_and_leaves_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = open(directory.path()).await.expect("a new store");
    for _ in 0..20 {
        join_all((0..300).map(|index| {
            let (store, key) = (Arc::clone(&store), format!("k{}", index % 10));
            async move { put(&store, &key, "some value").await.expect("a write") }
        }))
        .await;
    }
    let at = store.current_revision().await.expect("a revision");
    store.compact(at).await.expect("a compaction");
    // The sweep goes on in the background, a part at a time.
    tokio::time::sleep(Duration::from_secs(5)).await;
    store.close(DEADLINE).await;
    let database = redb::Database::open(directory::database(directory.path())).expect("a database");
    let rows: redb::TableDefinition<'_, (u64, u32), &[u8]> = redb::TableDefinition::new("rows");
    let kept = {
        use redb::{ReadableDatabase as _, ReadableTableMetadata as _};
        database.begin_read().expect("a read").open_table(rows).expect("rows").len().expect("a count")
    };
    assert_eq!(kept, 10);
    drop(database);
    let store = open(directory.path()).await.expect("the same store");
    assert_eq!(contents(&store).await.len(), 10);
    store.close(DEADLINE).await;
}

/// Writes from several tasks, one of which also compacts if told to; returns what they did.
async fn write_under(store: &Arc<Embedded>, acknowledged: &Arc<AtomicI64>, compacting: bool) -> History {
    let writers = (0..6).map(|writer| {
        let (store, acknowledged) = (Arc::clone(store), Arc::clone(acknowledged));
        async move {
            let mut done = Vec::new();
            for step in 0..6 {
                let key = format!("k{}", (writer * 7 + step) % 9);
                let revision = put(&store, &key, &format!("{writer}/{step}")).await.expect("a write");
                acknowledged.fetch_max(revision.0, Ordering::SeqCst);
                done.push((revision, (key, Some(format!("{writer}/{step}")))));
                if compacting && writer == 0 {
                    store.compact(revision).await.expect("a compaction");
                }
            }
            done
        }
    });
    join_all(writers).await.into_iter().flatten().collect()
}

#[tokio::test(start_paused = true)]
async fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let mut cuts = 0;
    for seed in 0..160 {
        let compacting = seed % 2 == 1;
        // From a database that catches up with every commit or two to one that never does.
        let (journal_bytes, operations) =
            [(512, 120), (1_500, 60), (6_000, 30), (JOURNAL_BYTES, 15)][usize::try_from(seed / 2 % 4).expect("small")];
        let (rng, acknowledged) = (Rng::seeded(seed), Arc::default());
        let (home, disk) = (tempfile::tempdir().expect("a directory"), FaultyDisk::default());
        let store = open_short(home.path(), &disk, journal_bytes).await.expect("a new store");
        disk.cut_power(
            rng.below(operations),
            Arc::clone(&rng),
            Arc::clone(&acknowledged),
            home.path().join("revision"),
        );
        let history = write_under(&store, &acknowledged, compacting).await;
        store.close(DEADLINE).await;
        let Some(wreck) = disk.take_wreck() else { continue };
        cuts += 1;

        let home = tempfile::tempdir().expect("a directory");
        std::fs::write(home.path().join("revision"), &wreck.anchor).expect("the witness");
        let store = open_short(home.path(), &FaultyDisk::holding(wreck.images), journal_bytes).await;
        let store = store.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let revision = store.current_revision().await.expect("a revision");
        assert!(revision.0 >= wreck.acknowledged, "seed {seed}: {revision} < {}", wreck.acknowledged);
        assert_eq!(contents(&store).await, state_after(&history, revision), "seed {seed}");
        if !compacting {
            assert!(replay(&store).await.iter().eq(history.range(..=revision)), "seed {seed}: the log");
        }
        put(&store, "after", "x").await.expect("it goes on");
        store.close(DEADLINE).await;
    }
    assert!(cuts > 100, "only {cuts} power cuts happened");
}

#[tokio::test(start_paused = true)]
async fn a_failed_sync_is_never_acknowledged_and_ends_all_writing() {
    let (home, disk) = (tempfile::tempdir().expect("a directory"), FaultyDisk::default());
    let store = open_on(home.path(), &disk).await.expect("a new store");
    put(&store, "a", "kept").await.expect("a write");
    disk.fail_syncs();
    for _ in 0..3 {
        let refused = put(&store, "a", "lost").await.expect_err("the sync failed");
        assert!(matches!(refused, StorageError::Failed(_)) && refused.outcome_unknown(), "{refused}");
    }
    assert!(matches!(store.health().await, Err(StorageError::Failed(_))));
    assert_eq!(contents(&store).await, [("a".to_owned(), "kept".to_owned())], "reads go on");
    store.close(DEADLINE).await;
    for seed in 0..10 {
        let images = disk.images_after_power_cut(&Rng::seeded(seed));
        let home = tempfile::tempdir().expect("a directory");
        let store = open_on(home.path(), &FaultyDisk::holding(images)).await.expect("it recovers");
        let (_, value) = contents(&store).await.pop().expect("the key");
        assert!(["kept", "lost"].contains(&value.as_str()), "{value}");
        store.close(DEADLINE).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_refuses_writes_serves_reads_and_heals() {
    let (home, disk) = (tempfile::tempdir().expect("a directory"), FaultyDisk::default());
    let store = open_on(home.path(), &disk).await.expect("a new store");
    put(&store, "a", "kept").await.expect("a write");
    let lease = store.lease_grant(Duration::from_secs(30)).await.expect("a lease");
    let leased = Write::Put { value: "x".into(), lease: Some(lease) };
    store.txn(&"leased".into(), Expect::Absent, leased).await.expect("a write");
    disk.set_capacity(Some(disk.used()));
    let large = "x".repeat(1 << 20);
    let mut written = 0;
    let refused = loop {
        match put(&store, &format!("large{written}"), &large).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1_000, "the disk never fills up");
    };
    assert!(matches!(refused, StorageError::NoSpace { .. }), "{refused}");
    assert_eq!(store.health().await, Ok(()), "it is in order, only full");
    assert_eq!(contents(&store).await.len(), written + 2, "reads go on");
    // A lease that ends meanwhile waits, and the writer does not spin.
    tokio::time::sleep(Duration::from_secs(60)).await;
    disk.set_capacity(None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    put(&store, "b", "after").await.expect("there is room again");
    assert_eq!(store.health().await, Ok(()));
    assert!(store.get(&"leased".into()).await.expect("a read").kv.is_none());
    let before = contents(&store).await;
    store.close(DEADLINE).await;
    let store = open_on(home.path(), &disk).await.expect("the same store");
    assert_eq!(contents(&store).await, before);
    store.close(DEADLINE).await;
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fills_up_within_a_commit_heals_too() {
    let mut refusals = 0;
    // One database never catches up while the disk is full, the other with every commit.
    for (writes, journal_bytes) in (0..12).flat_map(|writes| [(writes, JOURNAL_BYTES), (writes, 512)]) {
        let what = format!("after {writes} writes with {journal_bytes}");
        let (home, disk) = (tempfile::tempdir().expect("a directory"), FaultyDisk::default());
        let store = open_short(home.path(), &disk, journal_bytes).await.expect("a new store");
        put(&store, "a", "kept").await.expect("a write");
        disk.set_writes_left(Some(writes));
        let mut expected = vec![("a".to_owned(), "kept".to_owned())];
        for key in ["b", "c", "d", "e"] {
            match put(&store, key, "perhaps").await {
                Ok(_) => expected.push((key.to_owned(), "perhaps".to_owned())),
                Err(StorageError::NoSpace { .. }) => refusals += 1,
                Err(error) => panic!("{what}: {error}"),
            }
        }
        disk.set_writes_left(None);
        tokio::time::sleep(Duration::from_secs(2)).await;
        put(&store, "f", "after").await.unwrap_or_else(|error| panic!("{what}: {error}"));
        expected.push(("f".to_owned(), "after".to_owned()));
        assert_eq!(contents(&store).await, expected, "{what}");
        store.close(DEADLINE).await;
        let store = open_short(home.path(), &disk, journal_bytes).await.expect("the same store");
        assert_eq!(contents(&store).await, expected, "{what} and a restart");
        store.close(DEADLINE).await;
    }
    assert!(refusals > 24, "only {refusals} writes were refused");
}

/// A data directory that was closed properly, and a copy of it taken while it was in use.
async fn directories_with_data() -> (TempDir, TempDir, Vec<(String, String)>) {
    let (closed, running) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let store = open(closed.path()).await.expect("a new store");
    for index in 0..120 {
        put(&store, &format!("k{index}"), &"v".repeat(index * 10)).await.expect("a write");
    }
    copy(closed.path(), running.path());
    let expected = contents(&store).await;
    store.close(DEADLINE).await;
    (closed, running, expected)
}

fn copy(from: &Path, to: &Path) {
    for name in ["store.redb", "journal.0", "journal.1", "revision"] {
        std::fs::copy(from.join(name), to.join(name)).expect("a copy");
    }
}

/// Opens a damaged copy: it must be refused or serve everything.
async fn refused_or_whole(directory: &Path, expected: &[(String, String)], what: &str) -> bool {
    match open(directory).await {
        Err(StorageError::Corrupt { .. } | StorageError::Io { .. }) => true,
        Err(error) => panic!("{what}: {error}"),
        Ok(store) => {
            assert!(contents(&store).await == expected, "{what}: something is silently wrong");
            store.close(DEADLINE).await;
            false
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_flipped_bit_is_refused_or_harmless() {
    let (closed, running, expected) = directories_with_data().await;
    let rng = Rng::seeded(9);
    let mut refused = 0;
    for round in 0..150 {
        let from = if round % 2 == 0 { &closed } else { &running };
        let damaged = tempfile::tempdir().expect("a directory");
        copy(from.path(), damaged.path());
        let file = &directory::files(damaged.path())[round / 2 % 2];
        let mut image = std::fs::read(file).expect("a file");
        // Half of the flips hit the header, where each bit decides over everything; most of the journal is zeros.
        let used = image.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let bytes = if rng.below(2) == 0 { 512 } else { used as u64 };
        let (byte, bit) = (usize::try_from(rng.below(bytes)).expect("small"), rng.below(8));
        image[byte] ^= 1 << bit;
        std::fs::write(file, image).expect("a write");
        let what = format!("round {round}: bit {bit} of byte {byte} of {}", file.display());
        refused += usize::from(refused_or_whole(damaged.path(), &expected, &what).await);
    }
    assert!(refused > 10, "only {refused} flips were noticed");
}

#[tokio::test(start_paused = true)]
async fn a_truncated_missing_or_older_file_is_refused() {
    let (closed, running, expected) = directories_with_data().await;
    for (round, from) in [&closed, &running].into_iter().enumerate() {
        for (part, number) in (0..10).flat_map(|part| [(part, 0), (part, 1)]) {
            let damaged = tempfile::tempdir().expect("a directory");
            copy(from.path(), damaged.path());
            let path = &directory::files(damaged.path())[number];
            let length = std::fs::metadata(path).expect("a file").len();
            let file = std::fs::OpenOptions::new().write(true).open(path).expect("a file");
            file.set_len(length * part / 10).expect("a truncation");
            refused_or_whole(damaged.path(), &expected, &format!("{part} tenths of file {number} of {round}")).await;
        }
    }
    for lost in [["store.redb"].as_slice(), &["journal.0"], &["store.redb", "journal.0", "journal.1"]] {
        for (round, from) in [&closed, &running].into_iter().enumerate() {
            let damaged = tempfile::tempdir().expect("a directory");
            copy(from.path(), damaged.path());
            for file in lost {
                std::fs::remove_file(damaged.path().join(file)).expect("a removal");
            }
            let refused = refused_or_whole(damaged.path(), &expected, &format!("{lost:?} of directory {round}")).await;
            assert!(refused || !lost.contains(&"store.redb"), "{lost:?} of {round}");
        }
    }

    let store = open(closed.path()).await.expect("the store");
    put(&store, "newer", "x").await.expect("a write");
    store.close(DEADLINE).await;
    for file in ["store.redb", "journal.0", "journal.1"] {
        std::fs::copy(running.path().join(file), closed.path().join(file)).expect("a copy");
    }
    let refused = open(closed.path()).await.expect_err("acknowledged writes are gone");
    assert!(refused.to_string().contains("was acknowledged"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn history_is_bounded_and_a_slow_watcher_is_told() {
    let home = tempfile::tempdir().expect("a directory");
    let group = TaskGroup::new("test");
    let mut options = EmbeddedOptions::new(home.path());
    options.max_history_bytes = 100_000;
    options.quota_bytes = 50_000;
    let store = Embedded::open(options, TokioClock::shared(), &group).await.expect("a new store");
    let mut slow = store.watch(KeyRange::all(), Revision(1));
    let mut elsewhere = store.watch(KeyRange::prefix("idle/"), Revision(1));
    for _ in 0..300 {
        put(&store, "k", &"v".repeat(1_000)).await.expect("a write");
    }
    assert!(store.store.read(|state| state.history_bytes()) <= 102_000);
    assert!(matches!(slow.next().await, Some(Err(StorageError::Compacted { .. }))));
    assert!(slow.next().await.is_none());
    let at = put(&store, "idle/a", "x").await.expect("a write");
    let item = elsewhere.next().await;
    assert!(
        matches!(&item, Some(Ok(WatchItem::Events(batch))) if batch.revision == at),
        "a watcher that missed nothing goes on: {item:?}"
    );
    let full = put(&store, "more", &"v".repeat(60_000)).await;
    assert!(matches!(full, Err(StorageError::NoSpace { .. })), "{full:?}");
    store.txn(&Key::from("k"), Expect::Any, Write::Delete).await.expect("deleting is always possible");
    group.shutdown(DEADLINE).await;
}
