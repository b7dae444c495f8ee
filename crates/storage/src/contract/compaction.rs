//! Forgetting history.

use super::{Event, Revision, StorageError, Subject, WatchItem, error, event, item, text};

pub(super) async fn compacted_history_is_an_error(subject: Subject) {
    let first = subject.put("a", "1").await;
    for value in 2..=10 {
        subject.put("a", &value.to_string()).await;
    }
    let at = subject.revision().await;
    assert_eq!(subject.backend.compact(at).await, Ok(()));
    let old = subject.backend.range(&subject.all(), 0, Some(first)).await;
    assert!(matches!(old, Err(StorageError::Compacted { requested, .. }) if requested == first), "{old:?}");
    let mut watch = subject.watch(first);
    let ended = error(&mut watch).await;
    assert!(matches!(ended, StorageError::Compacted { .. }), "{ended:?}");
    let again = subject.backend.compact(at).await;
    assert!(matches!(again, Err(StorageError::Compacted { .. })), "{again:?}");
    let earlier = subject.backend.compact(Revision(at.0 - 1)).await;
    assert!(matches!(earlier, Err(StorageError::Compacted { .. })), "{earlier:?}");
}

pub(super) async fn compaction_keeps_what_it_must(subject: Subject) {
    subject.put("kept", "old").await;
    subject.put("kept", "new").await;
    subject.put("gone", "x").await;
    subject.delete("gone").await;
    let at = subject.put("other", "1").await;
    let mut running = subject.watch(at);
    subject.put("other", "2").await;
    let deleted_later = subject.delete("kept").await;
    assert_eq!(subject.backend.compact(at).await, Ok(()));

    let expected = [("kept".to_owned(), "new".to_owned()), ("other".to_owned(), "1".to_owned())];
    assert_eq!(subject.contents(Some(at)).await, expected, "the state at the compacted revision itself");
    assert_eq!(subject.contents(None).await, [("other".to_owned(), "2".to_owned())]);
    for watch in [&mut running, &mut subject.watch(at)] {
        let update = event(watch).await;
        assert_eq!(update.previous().map(text), Some("1".to_owned()));
        let delete = event(watch).await;
        assert!(matches!(&delete, Event::Delete { revision, .. } if *revision == deleted_later), "{delete:?}");
        assert_eq!(delete.previous().map(text), Some("new".to_owned()));
    }
    let next = subject.put("after", "x").await;
    assert!(next > deleted_later, "the revision never goes back");
    assert_eq!(event(&mut running).await.revision(), next);
}

/// The event at the compacted revision itself may be kept or gone, but it may not be left out in silence.
pub(super) async fn the_edge_of_compaction_is_not_skipped(subject: Subject) {
    let before = subject.put("a", "1").await;
    let edge = subject.put("b", "2").await;
    assert_eq!(subject.backend.compact(edge).await, Ok(()));
    let mut watch = subject.watch(before);
    let next = subject.put("c", "3").await;
    let mut expected = vec![edge, next];
    while !expected.is_empty() {
        match item(&mut watch).await {
            Ok(WatchItem::Events(batch)) => assert_eq!(batch.revision, expected.remove(0)),
            Ok(WatchItem::Progress(mark)) => assert!(mark < expected[0]),
            Err(error) => {
                assert!(matches!(error, StorageError::Compacted { .. }), "{error:?}");
                assert_eq!(expected.len(), 2, "an error in the middle");
                return;
            }
        }
    }
}
