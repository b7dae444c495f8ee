//! The cache on the memory store, and its snapshot against a plain map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::object::{Object, Unstructured};
use base::{Rng, TaskGroup, TokioClock};
use storage::{Backend, Expect, Memory, MemoryOptions, Revision, Write};

use crate::cache::AT_HAND;
use crate::log::{Batch, CHECKPOINT_EVERY, Log};
use crate::past::{LARGE, SETTLED};
use crate::rest::ROUND;
use crate::*;

pub(crate) struct JsonCodec;

impl Codec for JsonCodec {
    fn decode(&self, value: &[u8]) -> Result<Box<dyn Object>, String> {
        Ok(Box::new(Unstructured::from_json(value).map_err(|error| error.0)?.0))
    }

    fn empty(&self) -> Box<dyn Object> {
        Box::new(Unstructured::new("example.com/v1", "Thing"))
    }
}

pub(crate) fn stored(key: &str, revision: i64, colour: &str) -> Arc<Stored> {
    let mut object = Unstructured::new("example.com/v1", "Thing");
    object.metadata.labels.insert("colour".into(), colour.into());
    Arc::new(Stored::new(key.into(), Revision(revision), Box::new(object), Fingerprint::of(&[0; 10])))
}

fn colour(object: &dyn Object) -> Option<String> {
    object.meta().labels.get("colour").cloned()
}

pub(crate) fn indexes() -> Arc<[Index]> {
    Arc::new([Index { field: "colour", value: colour }])
}

/// What a snapshot must look like, by the plainest means.
type Model = BTreeMap<String, (i64, String)>;

fn seen<'a>(items: impl Iterator<Item = &'a Arc<Stored>>) -> Vec<(String, i64)> {
    items.map(|item| (item.key().to_string(), item.revision().0)).collect()
}

fn expected(model: &Model, wanted: impl Fn(&str, &str) -> bool) -> Vec<(String, i64)> {
    let kept = model.iter().filter(|(key, (_, colour))| wanted(key, colour));
    kept.map(|(key, (revision, _))| (key.clone(), *revision)).collect()
}

fn assert_same(snapshot: &Snapshot, model: &Model, rng: &Rng) {
    assert_eq!(snapshot.len(), model.len());
    assert_eq!(seen(snapshot.range("", "")), expected(model, |_, _| true));
    let namespace = format!("n{}", rng.below(4));
    let from = format!("{namespace}/k{}", rng.below(40));
    let inside = |key: &str| key.starts_with(&format!("{namespace}/"));
    assert_eq!(
        seen(snapshot.scoped(&Scope::Namespace(namespace.as_str().into()), &from)),
        expected(model, |key, _| inside(key) && key >= from.as_str())
    );
    let red = Scope::Indexed(0, "red".into());
    assert_eq!(
        seen(snapshot.scoped(&red, &from)),
        expected(model, |key, colour| colour == "red" && key >= from.as_str())
    );
}

#[test]
fn snapshots_behave_like_a_plain_map_at_every_revision() {
    let rng = Rng::seeded(11);
    let start = Arc::new(Snapshot::empty(Revision(1), indexes()));
    let mut log = Log::new(start, indexes());
    let mut model = Model::new();
    let mut history: BTreeMap<i64, Model> = BTreeMap::new();
    let mut kept: Vec<(Arc<Snapshot>, Model)> = Vec::new();
    let now = tokio::time::Instant::now();
    let mut at_hand = Vec::new();
    for revision in 2..4_000_i64 {
        let key = format!("n{}/k{}", rng.below(4), rng.below(40));
        let change = if rng.below(3) == 0 {
            model.remove(&key);
            None
        } else {
            let colour = ["red", "green", "blue"][usize::try_from(rng.below(3)).unwrap()];
            model.insert(key.clone(), (revision, colour.to_owned()));
            Some(stored(&key, revision, colour))
        };
        at_hand.push(Batch { revision: Revision(revision), changes: vec![(key.as_str().into(), change)] });
        history.insert(revision, model.clone());
        let is_looked_at = revision % 37 == 0 || revision % 101 == 0;
        if is_looked_at || rng.below(4) == 0 || at_hand.len() == AT_HAND {
            log.apply(std::mem::take(&mut at_hand), now);
        }
        if revision % 37 == 0 {
            assert_same(log.snapshot(), &model, &rng);
            kept.push((Arc::clone(log.snapshot()), model.clone()));
        }
        if revision % 101 == 0 {
            let back = revision - i64::try_from(rng.below(revision as u64 - 1)).unwrap();
            let (base, changes) = log.undo_to(Revision(back)).unwrap();
            let most = CHECKPOINT_EVERY + AT_HAND as u64;
            assert!(changes.len() as u64 <= most, "{} changes to undo", changes.len());
            let mut snapshot = Snapshot::clone(&base);
            for change in changes.iter().rev() {
                snapshot.replace(&change.key, change.previous.clone());
            }
            assert_same(&snapshot, history.get(&back).unwrap_or(&Model::new()), &rng);
        }
    }
    // Later changes have not touched the snapshots that were kept.
    for (snapshot, model) in &kept {
        assert_same(snapshot, model, &rng);
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_is_bounded_by_age_and_bytes_but_keeps_a_few() {
    const MEGABYTE: usize = 1 << 20;
    let started = tokio::time::Instant::now();
    let minute = Duration::from_secs(60);
    for (name, changes, bytes, aged, kept) in [
        ("young", 300, 10, minute, 301),
        ("old", 300, 10, 2 * minute, 100),
        ("large", 300, MEGABYTE / 2, minute, 127),
        ("too large for even a few", 300, 10 * MEGABYTE, minute, 100),
    ] {
        let mut log = Log::new(Arc::new(Snapshot::empty(Revision(0), indexes())), indexes());
        for number in 1..=changes + 1 {
            let at = if number <= changes { started } else { started + aged };
            let revision = Revision(number);
            let object = Box::new(Unstructured::new("example.com/v1", "Thing"));
            let item = Arc::new(Stored::new("n/k".into(), revision, object, Fingerprint::of(&vec![0; bytes])));
            log.apply(vec![Batch { revision, changes: vec![(Arc::clone(item.key()), Some(item))] }], at);
        }
        assert_eq!(log.len(), kept, "{name}");
    }
}

struct Fixture {
    store: Arc<Memory>,
    cache: Arc<Cache>,
    group: TaskGroup,
}

async fn fixture() -> Fixture {
    let (clock, group) = (TokioClock::shared(), TaskGroup::new("test"));
    let store = Memory::new(MemoryOptions::default(), Arc::clone(&clock), &group);
    let options = CacheOptions {
        resource: "things".into(),
        prefix: "/things/".into(),
        indexes: vec![Index { field: "colour", value: colour }],
    };
    let backend = Arc::clone(&store) as Arc<dyn Backend>;
    let cache = Cache::start(options, backend, Arc::new(JsonCodec), clock, &group);
    cache.filled().await;
    Fixture { store, cache, group }
}

impl Fixture {
    async fn put(&self, key: &str, colour: &str) -> Revision {
        let mut object = Unstructured::new("example.com/v1", "Thing");
        object.metadata.name = key.rsplit('/').next().unwrap_or_default().into();
        object.metadata.labels.insert("colour".into(), colour.into());
        let value = (&object as &dyn Object).to_json();
        let key = storage::Key::from(format!("/things/{key}"));
        match self.store.txn(&key, Expect::Any, Write::put(value)).await.unwrap() {
            storage::Txn::Committed { revision, .. } => revision,
            storage::Txn::Conflict { .. } => panic!("nothing was expected"),
        }
    }

    async fn watch(&self, scope: Scope, since: Since) -> Watcher {
        let request = WatchRequest { since, scope, matcher: None, bookmarks: Bookmarks::None, deadline: None };
        self.cache.watch(request).await.unwrap()
    }
}

fn told(event: Option<Event>) -> String {
    match event {
        Some(Event::Change(change)) => format!("{} {}", change.kind.as_str(), change.item.key()),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_scope_sees_its_own_changes_in_order_and_once() {
    let fixture = fixture().await;
    let scopes =
        [Scope::All, Scope::Namespace("a".into()), Scope::Object("a/one".into()), Scope::Indexed(0, "red".into())];
    let mut watchers = Vec::new();
    for scope in &scopes {
        watchers.push(fixture.watch(scope.clone(), Since::Now(None)).await);
    }
    for (key, colour) in [("a/one", "red"), ("b/one", "blue"), ("a/two", "red"), ("a/one", "blue"), ("b/one", "red")] {
        fixture.put(key, colour).await;
    }
    let expected: [&[&str]; 4] = [
        &["ADDED a/one", "ADDED b/one", "ADDED a/two", "MODIFIED a/one", "MODIFIED b/one"],
        &["ADDED a/one", "ADDED a/two", "MODIFIED a/one"],
        &["ADDED a/one", "MODIFIED a/one"],
        &["ADDED a/one", "ADDED a/two", "DELETED a/one", "ADDED b/one"],
    ];
    for ((watcher, expected), scope) in watchers.iter_mut().zip(expected).zip(&scopes) {
        for event in expected {
            assert_eq!(told(watcher.next().await), *event, "{scope:?}");
        }
        assert!(watcher.try_next().is_none(), "{scope:?}");
    }
    assert_eq!(fixture.cache.stats().watchers, 4);
    drop(watchers);
    assert_eq!(fixture.cache.stats().watchers, 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_without_gap_or_repeat() {
    let fixture = fixture().await;
    let mut revisions = Vec::new();
    for number in 0..20 {
        revisions.push(fixture.put(&format!("a/{number:02}"), "red").await);
    }
    fixture.cache.consistent().await.unwrap();
    for (seen, revision) in revisions.iter().enumerate() {
        for scope in [Scope::All, Scope::Namespace("a".into())] {
            let mut watcher = fixture.watch(scope, Since::Revision(*revision)).await;
            for number in seen + 1..20 {
                assert_eq!(told(watcher.next().await), format!("ADDED a/{number:02}"));
            }
            assert!(watcher.try_next().is_none());
        }
    }
    let mut future = fixture.watch(Scope::All, Since::Revision(Revision(revisions[19].0 + 2))).await;
    fixture.put("a/silent", "red").await;
    fixture.put("a/silent-too", "red").await;
    fixture.put("a/heard", "red").await;
    assert_eq!(told(future.next().await), "ADDED a/heard");
}

#[tokio::test(start_paused = true)]
async fn an_exact_state_is_found_again() {
    let fixture = fixture().await;
    let first = fixture.put("a/one", "red").await;
    for number in 0..200 {
        fixture.put("a/one", if number % 2 == 0 { "blue" } else { "green" }).await;
    }
    fixture.cache.consistent().await.unwrap();
    let snapshot = fixture.cache.exactly(first).unwrap().unwrap();
    let item = snapshot.get("a/one").unwrap();
    assert_eq!((snapshot.revision(), colour(item.object()).as_deref()), (first, Some("red")));
    assert!(fixture.cache.exactly(Revision(first.0 + 1_000)).unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn freshness_is_waited_for_and_not_for_ever() {
    let fixture = fixture().await;
    let revision = fixture.put("a/one", "red").await;
    assert!(fixture.cache.not_older_than(revision).await.unwrap().get("a/one").is_some());
    // A key elsewhere moves the store on, and only a progress mark tells the cache.
    fixture.store.txn(&"/other".into(), Expect::Any, Write::put("x")).await.unwrap();
    let fresh = fixture.cache.consistent().await.unwrap();
    assert_eq!(fresh.revision(), fixture.store.current_revision().await.unwrap());
    let started = tokio::time::Instant::now();
    let error = fixture.cache.not_older_than(Revision(500)).await.unwrap_err();
    assert!(matches!(error, CacheError::TooLarge { requested: Revision(500), .. }), "{error}");
    assert_eq!(started.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_value_that_cannot_be_read_ends_watches_until_it_can() {
    let fixture = fixture().await;
    let mut watcher = fixture.watch(Scope::All, Since::Now(None)).await;
    fixture.store.txn(&"/things/a/bad".into(), Expect::Any, Write::put("not json")).await.unwrap();
    assert!(watcher.next().await.is_none());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let error = fixture.cache.snapshot().unwrap_err();
    assert!(matches!(&error, CacheError::NotReady { last_error: Some(_), .. }), "{error}");
    assert!(error.to_string().starts_with("storage is (re)initializing: "), "{error}");
    fixture.store.txn(&"/things/a/bad".into(), Expect::Any, Write::Delete).await.unwrap();
    fixture.cache.filled().await;
    assert!(fixture.cache.snapshot().is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_asked_for_is_put_to_rest_and_nobody_is_told() {
    let fixture = fixture().await;
    fixture.put("a/one", "red").await;
    let last = fixture.put("a/two", "blue").await;
    let mut watcher = fixture.watch(Scope::All, Since::Revision(last)).await;
    fixture.cache.not_older_than(last).await.unwrap();
    let before = fixture.cache.snapshot().unwrap();
    let of = |key: &str| Arc::clone(fixture.cache.snapshot().unwrap().get(key).unwrap());
    assert!(!of("a/one").is_at_rest(), "it was only just written");

    let (asked, rounds) = (of("a/two").shared_object(), ROUND * 3);
    tokio::time::sleep(rounds).await;
    assert!(of("a/one").is_at_rest());
    assert!(!of("a/two").is_at_rest(), "somebody keeps it");
    assert!(fixture.cache.snapshot().unwrap().has_same_objects(&before));
    assert_eq!(of("a/one").json(), before.get("a/one").unwrap().json());
    drop((before, asked));

    tokio::time::sleep(rounds).await;
    assert!(of("a/one").is_at_rest() && of("a/two").is_at_rest());
    assert!(watcher.try_next().is_none());
    // A server that starts has asked for nothing yet.
    let again = Cache::start(
        CacheOptions { resource: "things".into(), prefix: "/things/".into(), indexes: indexes().to_vec() },
        Arc::clone(&fixture.store) as Arc<dyn Backend>,
        Arc::new(JsonCodec),
        TokioClock::shared(),
        &fixture.group,
    );
    again.filled().await;
    assert!(again.snapshot().unwrap().range("", "").all(|stored| stored.is_at_rest()));
    fixture.put("a/one", "green").await;
    assert_eq!(told(watcher.next().await), "MODIFIED a/one");
    assert_eq!(colour(of("a/one").object()).as_deref(), Some("green"));

    let large = fixture.put("a/large", &"x".repeat(LARGE)).await;
    fixture.cache.not_older_than(large).await.unwrap();
    assert!(!of("a/large").is_at_rest());
    tokio::time::sleep(SETTLED * 2).await;
    assert!(of("a/large").is_at_rest() && !of("a/one").is_at_rest(), "what is large does not wait for a round");
}

#[tokio::test(start_paused = true)]
async fn a_stopped_cache_ends_its_watches_and_its_task() {
    let fixture = fixture().await;
    let mut watcher = fixture.watch(Scope::All, Since::Now(None)).await;
    fixture.cache.stop();
    assert!(watcher.next().await.is_none());
    assert_eq!(fixture.cache.snapshot().unwrap_err(), CacheError::Stopped);
    assert_eq!(fixture.group.shutdown(Duration::from_secs(5)).await, base::Drained::All);
}

#[tokio::test(start_paused = true)]
async fn initial_events_come_in_order_of_keys_in_any_number() {
    let fixture = fixture().await;
    for number in 0..500 {
        fixture.put(&format!("a/{number:03}"), if number == 499 { "red" } else { "blue" }).await;
    }
    fixture.cache.consistent().await.unwrap();
    let mut watcher = fixture.watch(Scope::All, Since::InitialEvents(None)).await;
    for number in 0..500 {
        assert_eq!(told(watcher.next().await), format!("ADDED a/{number:03}"));
    }
    fixture.put("a/000", "red").await;
    assert_eq!(told(watcher.next().await), "MODIFIED a/000");
    let red: Matcher = Arc::new(|object| colour(object).as_deref() == Some("red"));
    let request = WatchRequest {
        since: Since::InitialEvents(None),
        scope: Scope::All,
        matcher: Some(red),
        bookmarks: Bookmarks::AndInitialEnd,
        deadline: None,
    };
    let mut picky = fixture.cache.watch(request).await.unwrap();
    assert_eq!(told(picky.next().await), "ADDED a/000");
    assert_eq!(told(picky.next().await), "ADDED a/499");
    assert!(matches!(picky.next().await, Some(Event::Bookmark { initial_events_end: true, .. })));
}

/// A log of many changes is looked through a little at a time, whoever joins when and from where.
#[tokio::test(start_paused = true)]
async fn joining_a_scope_holds_nobody_up_and_misses_nothing() {
    let fixture = fixture().await;
    let start = fixture.put("a/first", "red").await;
    let mut revisions = Vec::new();
    for number in 0..5_000 {
        let namespace = if number % 10 == 0 { "a" } else { "b" };
        revisions.push(fixture.put(&format!("{namespace}/{number:04}"), "red").await);
    }
    fixture.cache.consistent().await.unwrap();
    let mut turns = 0;
    let scope = || Scope::Namespace("a".into());
    // One joins late in the log, then one early: the changes in between have to be found for the second.
    let mut late = fixture.watch(scope(), Since::Revision(revisions[4_000])).await;
    let mut early = {
        let mut joining = Box::pin(fixture.watch(scope(), Since::Revision(start)));
        std::future::poll_fn(|cx| {
            turns += 1;
            joining.as_mut().poll(cx)
        })
        .await
    };
    assert!(turns >= 4, "all 5000 changes were looked at in {turns} turns");
    // And one while another is at it.
    let object = Scope::Object("a/0010".into());
    let (mut one, mut other) = tokio::join!(
        fixture.watch(object.clone(), Since::Revision(start)),
        fixture.watch(object, Since::Revision(revisions[5])),
    );
    for number in (0..5_000).step_by(10) {
        assert_eq!(told(early.next().await), format!("ADDED a/{number:04}"));
        if number > 4_000 {
            assert_eq!(told(late.next().await), format!("ADDED a/{number:04}"));
        }
    }
    fixture.put("a/last", "red").await;
    fixture.put("a/0010", "blue").await;
    for watcher in [&mut early, &mut late] {
        assert_eq!(told(watcher.next().await), "ADDED a/last");
        assert_eq!(told(watcher.next().await), "MODIFIED a/0010");
    }
    for watcher in [&mut one, &mut other] {
        assert_eq!(told(watcher.next().await), "ADDED a/0010");
        assert_eq!(told(watcher.next().await), "MODIFIED a/0010");
    }
    assert_eq!(fixture.cache.stats().watchers, 4);
}
