//! Order, completeness, uniqueness, resumption and progress of watches.

use std::time::Duration;

use super::{Event, Revision, Subject, WatchItem, batch, event, item, text};
use crate::KeyRange;

pub(super) async fn events_come_in_order_with_what_was_before(subject: Subject) {
    let start = subject.revision().await;
    let mut watch = subject.watch(start);
    let created = subject.put("a", "one").await;
    let updated = subject.put("a", "two").await;
    let deleted = subject.delete("a").await;
    let recreated = subject.put("a", "three").await;

    let first = event(&mut watch).await;
    assert!(first.is_create() && first.previous().is_none());
    assert_eq!((first.revision(), first.key()), (created, &subject.key("a")));
    let second = event(&mut watch).await;
    let Event::Put { kv, previous: Some(previous) } = &second else { panic!("{second:?}") };
    assert_eq!((text(kv).as_str(), text(previous).as_str()), ("two", "one"));
    assert_eq!((kv.mod_revision, kv.create_revision, kv.version), (updated, created, 2));
    assert_eq!(previous.mod_revision, created);
    let third = event(&mut watch).await;
    let Event::Delete { revision, previous: Some(previous), .. } = &third else { panic!("{third:?}") };
    assert_eq!((*revision, text(previous).as_str()), (deleted, "two"));
    let fourth = event(&mut watch).await;
    assert!(fourth.is_create() && fourth.previous().is_none());
    assert_eq!(fourth.revision(), recreated);
}

pub(super) async fn a_watch_starts_where_it_is_told(subject: Subject) {
    let first = subject.put("a", "1").await;
    let second = subject.put("b", "2").await;
    let third = subject.put("a", "3").await;
    let starts = [
        (Revision(first.0 - 1), vec![first, second, third]),
        (first, vec![second, third]),
        (second, vec![third]),
        (third, vec![]),
    ];
    let mut watches: Vec<_> = starts.into_iter().map(|(after, past)| (after, subject.watch(after), past)).collect();
    // The past is delivered before and with what comes now.
    let next = subject.put("c", "4").await;
    for (after, watch, past) in &mut watches {
        for revision in past.iter().chain([&next]) {
            assert_eq!(event(watch).await.revision(), *revision, "after {after}");
        }
    }
}

pub(super) async fn a_watch_from_the_future_waits(subject: Subject) {
    let current = subject.put("a", "0").await;
    let mut watch = subject.watch(Revision(current.0 + 2));
    let mut revisions = Vec::new();
    for value in 1..=4 {
        revisions.push(subject.put("a", &value.to_string()).await);
    }
    assert_eq!(event(&mut watch).await.revision(), revisions[2], "what comes before its start is not for it");
    assert_eq!(event(&mut watch).await.revision(), revisions[3]);
}

pub(super) async fn a_watch_resumes_without_gap_or_repeat(subject: Subject) {
    let start = subject.revision().await;
    let mut written = Vec::new();
    let mut seen = Vec::new();
    let mut last = start;
    for round in 0..10 {
        let mut watch = subject.watch(last);
        for step in 0..5 {
            written.push(subject.put(&format!("{}", (round * 5 + step) % 7), "x").await);
        }
        // Only some are read before the watch is dropped.
        for _ in 0..=(round % 5) {
            if seen.len() < written.len() {
                last = event(&mut watch).await.revision();
                seen.push(last);
            }
        }
    }
    let mut watch = subject.watch(last);
    while seen.len() < written.len() {
        seen.push(event(&mut watch).await.revision());
    }
    assert_eq!(seen, written);
}

pub(super) async fn a_watch_sees_only_its_range(subject: Subject) {
    let start = subject.revision().await;
    let mut prefix = subject.backend.watch(KeyRange::prefix(subject.key("b/")), start);
    let mut single = subject.backend.watch(KeyRange::single(&subject.key("b/1")), start);
    let mut wide = subject.backend.watch(KeyRange::all(), start);
    for name in ["a", "b", "b/1", "b0", "b/2", "c"] {
        subject.put(name, name).await;
    }
    let one = event(&mut prefix).await;
    assert_eq!(one.key(), &subject.key("b/1"));
    assert_eq!(event(&mut prefix).await.key(), &subject.key("b/2"));
    assert_eq!(event(&mut single).await, one);
    subject.delete("b/1").await;
    assert!(matches!(event(&mut single).await, Event::Delete { .. }));
    for name in ["a", "b", "b/1", "b0", "b/2", "c", "b/1"] {
        assert_eq!(event(&mut wide).await.key(), &subject.key(name));
    }
}

/// More events than any implementation hands over in one go.
pub(super) async fn a_long_backlog_is_delivered_whole(subject: Subject) {
    const EVENTS: usize = 2_000;
    let start = subject.revision().await;
    for step in 0..EVENTS / 100 {
        let names: Vec<String> = (0..100).map(|index| format!("{}", (step + index) % 150)).collect();
        futures_util::future::join_all(names.iter().map(|name| subject.put(name, "x"))).await;
    }
    let mut watch = subject.watch(start);
    for revision in (1..).take(EVENTS).map(|offset| Revision(start.0 + offset)) {
        assert_eq!(event(&mut watch).await.revision(), revision);
    }
}

pub(super) async fn progress_comes_after_all_that_it_covers(subject: Subject) {
    if !subject.backend.supports_progress() {
        return;
    }
    let mut watch = subject.backend.watch(KeyRange::prefix(subject.key("in/")), subject.revision().await);
    let handle = watch.progress_handle();
    for round in 0..20 {
        let inside = subject.put("in/a", &round.to_string()).await;
        subject.put("out", "x").await;
        let goal = subject.revision().await;
        handle.request();
        let mut seen = false;
        loop {
            match tokio::time::timeout(Duration::from_millis(100), item(&mut watch)).await {
                Ok(Ok(WatchItem::Events(batch))) => {
                    assert!(!seen && batch.revision == inside, "{batch:?} comes late or twice");
                    seen = true;
                }
                Ok(Ok(WatchItem::Progress(mark))) if mark >= goal => {
                    assert!(seen, "the mark {mark} overtook the event at {inside}");
                    break;
                }
                Ok(Ok(WatchItem::Progress(mark))) => {
                    assert!(seen || mark < inside, "the mark {mark} overtook the event at {inside}");
                }
                Ok(Err(error)) => panic!("{error}"),
                Err(_) => handle.request(),
            }
        }
    }
    // After a mark the watch goes on as before.
    let next = subject.put("in/b", "x").await;
    assert_eq!(batch(&mut watch).await.revision, next);
}
