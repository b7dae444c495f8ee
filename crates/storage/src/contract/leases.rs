//! Keys that die with their lease.

use std::time::Duration;

use super::{Event, Expect, PATIENCE, StorageError, Subject, Write, batch, event};
use crate::LeaseId;

/// The shortest lifetime that etcd grants with its default settings.
const SHORT: Duration = Duration::from_secs(2);

fn leased(value: &str, lease: LeaseId) -> Write {
    Write::Put { value: value.to_owned().into(), lease: Some(lease) }
}

async fn grant(subject: &Subject, ttl: Duration) -> LeaseId {
    subject.backend.lease_grant(ttl).await.expect("a lease")
}

pub(super) async fn the_end_of_a_lease_deletes_its_keys(subject: Subject) {
    let lease = grant(&subject, SHORT).await;
    let created = subject.commit("a", Expect::Absent, leased("x", lease)).await;
    subject.commit("b", Expect::Absent, leased("y", lease)).await;
    let last = subject.put("stays", "z").await;
    assert_eq!(subject.value("a").await.and_then(|kv| kv.lease), Some(lease));
    let mut watch = subject.watch(last);
    let ended = batch(&mut watch).await;
    assert_eq!(ended.events.len(), 2, "all keys go in one revision: {ended:?}");
    let mut names = Vec::new();
    for event in ended.events.iter() {
        let Event::Delete { key, revision, previous: Some(previous) } = event else { panic!("{event:?}") };
        assert_eq!(*revision, ended.revision);
        assert!(previous.mod_revision >= created);
        names.push(subject.name_of(key));
    }
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(subject.contents(None).await, [("stays".to_owned(), "z".to_owned())]);
    let late = subject.backend.txn(&subject.key("c"), Expect::Any, leased("late", lease)).await;
    assert_eq!(late, Err(StorageError::LeaseNotFound(lease)));
}

pub(super) async fn a_revoked_lease_deletes_its_keys_at_once(subject: Subject) {
    let lease = grant(&subject, Duration::from_secs(3_600)).await;
    let written = subject.commit("a", Expect::Absent, leased("x", lease)).await;
    let mut watch = subject.watch(written);
    assert_eq!(subject.backend.lease_revoke(lease).await, Ok(()));
    assert!(subject.value("a").await.is_none());
    assert!(matches!(event(&mut watch).await, Event::Delete { .. }));
    assert_eq!(subject.backend.lease_revoke(lease).await, Err(StorageError::LeaseNotFound(lease)));
}

pub(super) async fn a_write_without_lease_frees_the_key(subject: Subject) {
    let (short, long) = (grant(&subject, SHORT).await, grant(&subject, Duration::from_secs(3_600)).await);
    subject.commit("freed", Expect::Any, leased("x", short)).await;
    subject.commit("moved", Expect::Any, leased("x", short)).await;
    subject.commit("dies", Expect::Any, leased("x", short)).await;
    subject.put("freed", "y").await;
    let last = subject.commit("moved", Expect::Any, leased("y", long)).await;
    assert_eq!(subject.value("freed").await.map(|kv| kv.lease), Some(None));
    let mut watch = subject.watch(last);
    let ended = tokio::time::timeout(PATIENCE, event(&mut watch)).await.expect("the lease ends");
    assert_eq!(ended.key(), &subject.key("dies"));
    assert!(subject.value("freed").await.is_some() && subject.value("moved").await.is_some());
    subject.backend.lease_revoke(long).await.expect("it still exists");
    assert!(subject.value("moved").await.is_none());
}

pub(super) async fn an_unknown_lease_is_refused(subject: Subject) {
    let unknown = LeaseId(0x7fff_0000_1234);
    let before = subject.revision().await;
    let refused = subject.backend.txn(&subject.key("a"), Expect::Any, leased("x", unknown)).await;
    assert_eq!(refused, Err(StorageError::LeaseNotFound(unknown)));
    assert_eq!(subject.revision().await, before);
    let refused = subject.backend.lease_grant(Duration::ZERO).await;
    assert!(matches!(refused, Err(StorageError::Invalid(_))), "{refused:?}");
}
