//! Ranges, pages, revisions.

use super::{KeyRange, Revision, StorageError, Subject};

pub(super) async fn a_range_is_ordered_and_bounded(subject: Subject) {
    for name in ["b/2", "a", "b/1", "c", "b"] {
        subject.put(name, name).await;
    }
    let names = |kvs: &[crate::KeyValue]| kvs.iter().map(|kv| subject.name_of(&kv.key)).collect::<Vec<_>>();
    let all = subject.backend.range(&subject.all(), 0, None).await.expect("a range");
    assert_eq!(names(&all.kvs), ["a", "b", "b/1", "b/2", "c"]);
    assert!(!all.more());
    let below = KeyRange::prefix(subject.key("b/"));
    assert_eq!(names(&subject.backend.range(&below, 0, None).await.expect("a range").kvs), ["b/1", "b/2"]);
    assert_eq!(subject.backend.count(&below).await, Ok(2));
    let between = KeyRange::between(subject.key("b"), subject.key("b/2"));
    assert_eq!(names(&subject.backend.range(&between, 0, None).await.expect("a range").kvs), ["b", "b/1"]);
    let single = KeyRange::single(&subject.key("b"));
    assert_eq!(names(&subject.backend.range(&single, 0, None).await.expect("a range").kvs), ["b"]);
    let empty = KeyRange::between(subject.key("c"), subject.key("a"));
    assert_eq!(subject.backend.range(&empty, 0, None).await.expect("a range").kvs, []);
    assert_eq!(subject.backend.count(&empty).await, Ok(0));
    assert!(subject.backend.count(&KeyRange::all()).await.expect("a count") >= 5);
}

pub(super) async fn pages_at_a_revision_are_one_snapshot(subject: Subject) {
    for index in 0..10 {
        subject.put(&format!("{index}"), "old").await;
    }
    let first = subject.backend.range(&subject.all(), 4, None).await.expect("a page");
    assert_eq!((first.kvs.len(), first.remaining, first.more()), (4, 6, true));
    let at = first.revision;
    // Everything changes between the pages.
    subject.put("5", "new").await;
    subject.delete("6").await;
    subject.put("55", "new").await;
    let (mut kvs, mut rest) = (first.kvs, subject.all());
    loop {
        rest = rest.after(&kvs.last().expect("a page has keys").key);
        let page = subject.backend.range(&rest, 4, Some(at)).await.expect("a page");
        assert!(page.revision > at, "the answer tells the store's own revision");
        kvs.extend(page.kvs.iter().cloned());
        assert_eq!(page.remaining, 10 - kvs.len() as u64);
        if !page.more() {
            break;
        }
    }
    let seen: Vec<_> = kvs.iter().map(|kv| subject.plain(kv)).collect();
    let expected: Vec<_> = (0..10).map(|index| (format!("{index}"), "old".to_owned())).collect();
    assert_eq!(seen, expected);
    let now = subject.backend.range(&subject.all(), 0, None).await.expect("a range");
    assert_eq!(now.kvs.len(), 10, "one gone, one new");
}

pub(super) async fn a_future_revision_is_an_error(subject: Subject) {
    let current = subject.put("a", "x").await;
    let at = Revision(current.0 + 100);
    let refused = subject.backend.range(&subject.all(), 0, Some(at)).await;
    assert!(matches!(refused, Err(StorageError::FutureRevision { requested, .. }) if requested == at), "{refused:?}");
    let refused = subject.backend.compact(at).await;
    assert!(matches!(refused, Err(StorageError::FutureRevision { .. })), "{refused:?}");
}

pub(super) async fn the_current_revision_follows_writes(subject: Subject) {
    for _ in 0..5 {
        let written = subject.put("a", "x").await;
        assert!(subject.revision().await >= written);
        let read = subject.backend.get(&subject.key("missing")).await.expect("a read");
        assert!(read.kv.is_none() && read.revision >= written);
    }
    assert_eq!(subject.backend.health().await, Ok(()));
    assert!(subject.backend.size_bytes().await.expect("a size") > 0);
}

/// More keys than any implementation looks at in one go.
pub(super) async fn a_large_range_is_complete(subject: Subject) {
    const KEYS: usize = 5_000;
    let names: Vec<String> = (0..KEYS).map(|index| format!("{index:05}")).collect();
    for chunk in names.chunks(250) {
        futures_util::future::join_all(chunk.iter().map(|name| subject.put(name, name))).await;
    }
    let all: Vec<String> = subject.contents(None).await.into_iter().map(|(name, _)| name).collect();
    assert!(all == names, "every key once, in order: {} of {KEYS}", all.len());
    assert_eq!(subject.backend.count(&subject.all()).await, Ok(KEYS as u64));
    let page = subject.backend.range(&subject.all(), 4_500, None).await.expect("a page");
    assert_eq!((page.kvs.len(), page.remaining), (4_500, 500));
}
