//! Forgetting history.

use super::{Event, Revision, StorageError, Subject, error, event, text};

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
