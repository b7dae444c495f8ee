//! A store whose calls are told of: which, how long it took, and whether it failed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::{Backend, EventStream, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};

/// Hears of every call that ended.
pub trait Observe: Send + Sync + 'static {
    /// A call of this operation (`get`, `list`, `count`, `create`, `update`, `delete`) ended.
    fn done(&self, operation: &'static str, took: Duration, outcome: Outcome);
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The store answered, whatever it said.
    Answered,
    /// It did not.
    Failed,
}

/// A store before which somebody listens.
pub struct Metered {
    backend: Arc<dyn Backend>,
    observer: Arc<dyn Observe>,
}

impl Metered {
    /// Puts a listener before a store.
    #[must_use]
    pub fn new(backend: Arc<dyn Backend>, observer: Arc<dyn Observe>) -> Arc<Self> {
        Arc::new(Self { backend, observer })
    }

    async fn told<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, StorageError>>,
    ) -> Result<T, StorageError> {
        let begun = Instant::now();
        let answer = call.await;
        let outcome = if answer.is_ok() { Outcome::Answered } else { Outcome::Failed };
        self.observer.done(operation, begun.elapsed(), outcome);
        answer
    }
}

#[async_trait]
impl Backend for Metered {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        self.told("get", self.backend.get(key)).await
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        self.told("list", self.backend.range(range, limit, at)).await
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        self.told("count", self.backend.count(range)).await
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        let operation = match (&write, &expect) {
            (Write::Delete, _) => "delete",
            (_, Expect::Absent) => "create",
            _ => "update",
        };
        self.told(operation, self.backend.txn(key, expect, write)).await
    }

    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        self.backend.watch(range, after)
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.backend.current_revision().await
    }

    fn supports_progress(&self) -> bool {
        self.backend.supports_progress()
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        self.backend.lease_grant(ttl).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        self.backend.lease_revoke(lease).await
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        self.backend.compact(at).await
    }

    async fn health(&self) -> Result<(), StorageError> {
        self.backend.health().await
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        self.backend.size_bytes().await
    }
}

#[cfg(test)]
mod tests {
    use base::{TaskGroup, TokioClock};
    use parking_lot::Mutex;

    use super::*;
    use crate::{Memory, MemoryOptions};

    #[derive(Default)]
    struct Heard(Mutex<Vec<(&'static str, Outcome)>>);

    impl Observe for Heard {
        fn done(&self, operation: &'static str, _: Duration, outcome: Outcome) {
            self.0.lock().push((operation, outcome));
        }
    }

    #[tokio::test]
    async fn every_call_is_told_by_what_it_does() {
        let (tasks, heard) = (TaskGroup::new("test"), Arc::new(Heard::default()));
        let memory = Memory::new(MemoryOptions::default(), TokioClock::shared(), &tasks);
        let store = Metered::new(memory, Arc::clone(&heard) as _);
        let key = Key::from("/registry/a/b");
        let put = || Write::Put { value: "v".into(), lease: None };
        store.txn(&key, Expect::Absent, put()).await.unwrap();
        store.txn(&key, Expect::Any, put()).await.unwrap();
        store.get(&key).await.unwrap();
        let all = KeyRange::prefix("/registry/".to_owned());
        store.range(&all, 0, None).await.unwrap();
        store.count(&all).await.unwrap();
        store.txn(&key, Expect::Any, Write::Delete).await.unwrap();
        assert!(store.range(&all, 0, Some(Revision(9_999))).await.is_err());
        let told: Vec<_> = std::mem::take(&mut *heard.0.lock());
        let names = ["create", "update", "get", "list", "count", "delete"].map(|name| (name, Outcome::Answered));
        assert_eq!(told, names.into_iter().chain([("list", Outcome::Failed)]).collect::<Vec<_>>());
    }
}
