//! Compare-and-swap.

use super::{Expect, Revision, StorageError, Subject, Txn, Write, text};
use crate::Key;

pub(super) async fn create_only_where_absent(subject: Subject) {
    let before = subject.revision().await;
    let created = subject.commit("a", Expect::Absent, Write::put("one")).await;
    assert!(created > before);
    let conflict = subject.txn("a", Expect::Absent, Write::put("two")).await;
    let Txn::Conflict { current: Some(current), revision } = conflict else { panic!("{conflict:?}") };
    assert_eq!((text(&current).as_str(), current.mod_revision, revision), ("one", created, created));
    subject.delete("a").await;
    subject.commit("a", Expect::Absent, Write::put("three")).await;
}

pub(super) async fn update_only_at_the_expected_revision(subject: Subject) {
    let first = subject.put("a", "one").await;
    let second = subject.commit("a", Expect::At(first), Write::put("two")).await;
    let stale = subject.txn("a", Expect::At(first), Write::put("three")).await;
    let Txn::Conflict { current: Some(current), .. } = stale else { panic!("{stale:?}") };
    assert_eq!((current.create_revision, current.mod_revision, current.version), (first, second, 2));
    assert_eq!(text(&current), "two");
    let absent = subject.txn("b", Expect::At(second), Write::put("x")).await;
    assert!(matches!(absent, Txn::Conflict { current: None, .. }), "{absent:?}");
    let never = subject.txn("b", Expect::At(Revision(0)), Write::put("x")).await;
    assert!(matches!(never, Txn::Conflict { current: None, .. }), "revision 0 is not absence: {never:?}");
    let ahead = subject.txn("a", Expect::At(Revision(second.0 + 1)), Write::put("x")).await;
    assert!(matches!(ahead, Txn::Conflict { current: Some(_), .. }), "a revision that is still to come: {ahead:?}");
    let stale_swap = subject.txn("a", Expect::At(second), Write::put("four")).await;
    let Txn::Committed { previous: Some(previous), .. } = stale_swap else { panic!("{stale_swap:?}") };
    assert_eq!(text(&previous), "two");
}

pub(super) async fn delete_only_at_the_expected_revision(subject: Subject) {
    let first = subject.put("a", "one").await;
    let second = subject.put("a", "two").await;
    let stale = subject.txn("a", Expect::At(first), Write::Delete).await;
    assert!(matches!(stale, Txn::Conflict { current: Some(_), .. }), "{stale:?}");
    let deleted = subject.txn("a", Expect::At(second), Write::Delete).await;
    let Txn::Committed { revision, previous: Some(previous) } = deleted else { panic!("{deleted:?}") };
    assert!(revision > second);
    assert_eq!(text(&previous), "two");
    assert!(subject.value("a").await.is_none());
    let again = subject.txn("a", Expect::At(second), Write::Delete).await;
    assert!(matches!(again, Txn::Conflict { current: None, .. }), "{again:?}");
}

pub(super) async fn unconditional_writes_always_happen(subject: Subject) {
    let before = subject.revision().await;
    let nothing = subject.txn("a", Expect::Any, Write::Delete).await;
    assert_eq!(nothing, Txn::Committed { revision: before, previous: None }, "no revision for removing nothing");
    let first = subject.put("a", "one").await;
    assert_eq!(first, Revision(before.0 + 1), "every change makes exactly the next revision");
    let same = subject.put("a", "one").await;
    assert_eq!(same, Revision(before.0 + 2), "also one that changes nothing");
    assert_eq!(subject.delete("a").await, Revision(before.0 + 3));
}

pub(super) async fn versions_count_the_writes(subject: Subject) {
    let created = subject.put("a", "").await;
    for version in 2..=4 {
        let revision = subject.put("a", "x").await;
        let kv = subject.value("a").await.expect("it exists");
        assert_eq!((kv.version, kv.create_revision, kv.mod_revision), (version, created, revision));
    }
    subject.delete("a").await;
    let created = subject.put("a", "again").await;
    let kv = subject.value("a").await.expect("it exists");
    assert_eq!((kv.version, kv.create_revision), (1, created), "a new life counts anew");
}

pub(super) async fn bad_requests_are_refused(subject: Subject) {
    let before = subject.revision().await;
    let empty = subject.backend.txn(&Key::from(""), Expect::Any, Write::put("x")).await;
    assert!(matches!(empty, Err(StorageError::Invalid(_))), "{empty:?}");
    let large = Write::put(vec![0_u8; 2 << 20]);
    let refused = subject.backend.txn(&subject.key("large"), Expect::Any, large).await;
    assert_eq!(refused, Err(StorageError::RequestTooLarge));
    let fits = Write::put(vec![7_u8; 1 << 20]);
    subject.commit("fits", Expect::Absent, fits).await;
    assert_eq!(subject.value("fits").await.map(|kv| kv.value.len()), Some(1 << 20));
    assert_eq!(subject.revision().await, Revision(before.0 + 1), "what was refused left no trace");
}
