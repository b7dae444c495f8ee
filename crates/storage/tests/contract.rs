//! Runs the storage contract on every implementation.
//!
//! The etcd part starts the binary named by `$ETCD` (or the first `etcd` in `PATH`) and skips, saying so, where there
//! is none.

#![expect(clippy::print_stdout, reason = "a failed run shows at which case")]

use std::sync::Arc;
use std::time::Duration;

use base::{Rng, TaskGroup, TokioClock};
use bytes::Bytes;
use futures_util::StreamExt as _;
use storage::contract;
use storage::{
    Backend as _, Embedded, EmbeddedOptions, Etcd, EtcdOptions, EtcdTls, Event, Expect, Key, KeyRange, Memory,
    MemoryOptions, ReadValue, Revision, StorageError, TransformError, Transformed, Transformer, Txn, WatchItem, Write,
};
use test_facts::etcd::{EtcdServer, Security};

#[tokio::test(start_paused = true)]
async fn memory() {
    for case in contract::ALL {
        println!("{}", case.name);
        let group = TaskGroup::new("memory");
        case.run(Memory::new(MemoryOptions::default(), TokioClock::shared(), &group)).await;
        group.cancel();
    }
}

/// Turns the bytes around, and binds them to their key. What begins with `old` counts as stale.
struct Turned;

#[async_trait::async_trait]
impl Transformer for Turned {
    async fn on_read(&self, key: &Key, stored: &Bytes) -> Result<ReadValue, TransformError> {
        let value = stored.strip_suffix(key.as_bytes()).ok_or_else(|| TransformError("not of this key".into()))?;
        let value: Bytes = value.iter().rev().copied().collect();
        Ok(ReadValue { stale: value.starts_with(b"old"), value })
    }

    async fn on_write(&self, key: &Key, value: &Bytes) -> Result<Bytes, TransformError> {
        if value.starts_with(b"unspeakable") {
            return Err(TransformError("no words for it".into()));
        }
        Ok(value.iter().rev().chain(key.as_bytes()).copied().collect())
    }
}

#[tokio::test(start_paused = true)]
async fn transformed() {
    for case in contract::ALL {
        println!("{}", case.name);
        let group = TaskGroup::new("transformed");
        let memory = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
        case.run(Transformed::new(memory, Arc::new(Turned))).await;
        group.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_transformer_knows_the_key_and_flaws_are_of_one_pair() {
    let group = TaskGroup::new("transformed");
    let memory = Memory::new(MemoryOptions::default(), TokioClock::shared(), &group);
    let store = Transformed::new(memory.clone(), Arc::new(Turned));
    let written = async |key: &str, value: &'static str| {
        store.txn(&key.into(), Expect::Any, Write::put(Bytes::from_static(value.as_bytes()))).await
    };
    for (key, value) in [("/a", "new one"), ("/b", "old one")] {
        written(key, value).await.expect("a write");
    }
    let refused = StorageError::Untransformable { message: "no words for it".into() };
    assert_eq!(written("/c", "unspeakable").await, Err(refused));
    let lies = memory.get(&"/a".into()).await.unwrap().kv.unwrap().value;
    assert_eq!(&lies[..], b"eno wen/a");
    memory.txn(&"/c".into(), Expect::Any, Write::put(lies.clone())).await.unwrap();

    let all = store.range(&KeyRange::prefix("/"), 0, None).await.unwrap().kvs;
    let seen = |kv: &storage::KeyValue| {
        (String::from_utf8_lossy(&kv.value).into_owned(), kv.is_stale(), kv.unreadable().map(str::to_owned))
    };
    let expected = [
        ("new one".to_owned(), false, None),
        ("old one".to_owned(), true, None),
        ("eno wen/a".to_owned(), false, Some("not of this key".to_owned())),
    ];
    assert_eq!(all.iter().map(seen).collect::<Vec<_>>(), expected);
    let mut watch = store.watch(KeyRange::prefix("/"), Revision(1));
    for expected in expected {
        let Some(Ok(WatchItem::Events(batch))) = watch.next().await else { panic!("events") };
        let Event::Put { kv, .. } = &batch.events[0] else { panic!("a write") };
        assert_eq!(seen(kv), expected);
    }
    let lost = store.txn(&"/b".into(), Expect::Absent, Write::put("x")).await.unwrap();
    assert!(matches!(lost, Txn::Conflict { current: Some(current), .. } if current.is_stale()));
    let over = store.txn(&"/c".into(), Expect::Any, Write::put("x")).await.unwrap();
    assert!(matches!(over, Txn::Committed { previous: Some(previous), .. } if previous.unreadable().is_some()));
    group.cancel();
}

#[tokio::test(start_paused = true)]
async fn embedded() {
    for case in contract::ALL {
        println!("{}", case.name);
        let directory = tempfile::tempdir().expect("a directory");
        let group = TaskGroup::new("embedded");
        let options = EmbeddedOptions::new(directory.path());
        let store = Embedded::open(options, TokioClock::shared(), &group).await.expect("a store");
        case.run(store.clone()).await;
        store.close(Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn etcd() {
    run_on_etcd(Security::Plain).await;
}

#[tokio::test]
async fn etcd_with_tls() {
    run_on_etcd(Security::MutualTls).await;
}

async fn run_on_etcd(security: Security) {
    run_on(EtcdServer::start(security), true).await;
}

/// The store falls back to what such an etcd can do.
#[tokio::test]
async fn etcd_whose_progress_cannot_be_trusted() {
    run_on(EtcdServer::start_old(), false).await;
}

async fn run_on(server: Option<EtcdServer>, progress: bool) {
    let Some(server) = server else { return };
    let group = TaskGroup::new("etcd");
    let mut options = EtcdOptions::new([server.url.clone()]);
    options.tls =
        server.tls.clone().map(|tls| EtcdTls { ca_pem: tls.ca_pem, client: Some((tls.certificate_pem, tls.key_pem)) });
    let store = Etcd::connect(options, Rng::seeded(1), &group).await.expect("etcd answers");
    assert_eq!(store.supports_progress(), progress);
    for case in contract::ALL {
        println!("{}", case.name);
        case.run(Arc::<Etcd>::clone(&store)).await;
    }
    group.shutdown(Duration::from_secs(5)).await;
}

/// A member that is away is passed over, for reads, writes and watches.
#[tokio::test]
async fn an_etcd_member_that_is_away_is_passed_over() {
    let Some(server) = EtcdServer::start(Security::Plain) else { return };
    let group = TaskGroup::new("etcd");
    let options = EtcdOptions::new(["http://127.0.0.1:1".to_owned(), server.url.clone()]);
    let store = Etcd::connect(options, Rng::seeded(1), &group).await.expect("one member answers");
    assert!(store.supports_progress(), "a member that never answers has no say");
    let mut watch = store.watch(KeyRange::prefix("k"), Revision(1));
    let written = write(&store, "value").await;
    let read = store.get(&"k".into()).await.expect("a read");
    assert_eq!(read.kv.map(|kv| kv.mod_revision), Some(written));
    let item = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("an event");
    assert!(matches!(item, Some(Ok(WatchItem::Events(batch))) if batch.revision == written));
    assert!(store.size_bytes().await.expect("a size") > 0);
    group.shutdown(Duration::from_secs(5)).await;
}

/// Two of three members are enough, for marks of progress, too, whichever is away at the start.
#[tokio::test]
async fn a_cluster_of_etcd_with_a_member_down_is_whole() {
    let Some(mut servers) = EtcdServer::start_cluster(3) else { return };
    let group = TaskGroup::new("etcd");
    let urls: Vec<String> = servers.iter().map(|server| server.url.clone()).collect();
    let whole = Etcd::connect(EtcdOptions::new(urls.clone()), Rng::seeded(1), &group).await.expect("a quorum answers");
    servers[0].stop();
    let store = Etcd::connect(EtcdOptions::new(urls), Rng::seeded(2), &group).await.expect("a quorum answers");
    for store in [whole, store] {
        assert!(store.supports_progress(), "the members that answer are dependable");
        let revision = write(&store, "value").await;
        let mut watch = store.watch(KeyRange::prefix("other"), Revision(1));
        let progress = watch.progress_handle();
        let marked = async {
            loop {
                progress.request();
                let item = tokio::time::timeout(Duration::from_millis(200), watch.next()).await;
                if matches!(item, Ok(Some(Ok(WatchItem::Progress(at)))) if at >= revision) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), marked).await.expect("a mark");
    }
    group.shutdown(Duration::from_secs(5)).await;
}

/// Kills etcd again and again while a watch and a writer go on: the watch must see every write once and in order.
#[tokio::test]
async fn a_watch_survives_restarts_of_etcd() {
    let Some(mut server) = EtcdServer::start(Security::Plain) else { return };
    let group = TaskGroup::new("etcd");
    let store =
        Etcd::connect(EtcdOptions::new([server.url.clone()]), Rng::seeded(1), &group).await.expect("etcd answers");
    let mut watch = store.watch(KeyRange::prefix("k"), Revision(1));
    let mut written = Vec::new();
    for round in 0..4 {
        for step in 0..5 {
            written.push(write(&store, &format!("{round}/{step}")).await);
        }
        server.restart();
    }
    written.push(write(&store, "last").await);
    let mut seen = Vec::new();
    while seen.last() != written.last() {
        let item = tokio::time::timeout(Duration::from_secs(30), watch.next()).await.expect("more events");
        match item.expect("no end").expect("no error") {
            WatchItem::Events(batch) => seen.extend(batch.events.iter().map(Event::revision)),
            WatchItem::Progress(_) => {}
        }
    }
    // A write whose answer was lost may have happened twice; all that the watch saw must be in the store's history.
    assert!(written.iter().all(|revision| seen.contains(revision)), "{written:?} against {seen:?}");
    assert!(seen.is_sorted_by(|one, two| one < two), "{seen:?}");
    let count = i64::try_from(seen.len()).expect("a small number");
    let last = seen.last().map_or(0, |revision| revision.0);
    assert_eq!(count, last - 1, "every revision from 2 on is there");
    group.shutdown(Duration::from_secs(5)).await;
}

/// Writes until it is acknowledged.
async fn write(store: &Etcd, value: &str) -> Revision {
    loop {
        match store.txn(&"k".into(), Expect::Any, Write::put(value.to_owned())).await {
            Ok(Txn::Committed { revision, .. }) => return revision,
            Ok(Txn::Conflict { .. }) => panic!("an unconditional write cannot conflict"),
            Err(StorageError::Unavailable { .. }) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
}
