//! A store that one server can be cut off from: nothing comes back, as when packets are dropped. Or its watches lag, as
//! those of a store under load.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use parking_lot::RwLock;
use storage::{Backend, EventStream, Expect, Get, Key, KeyRange, LeaseId, Revision, Slice, StorageError, Txn, Write};
use tokio::sync::watch;

/// How long a call waits for an answer, as the client of etcd does.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The way from one server to the store.
pub(crate) struct Severable {
    backend: RwLock<Arc<dyn Backend>>,
    is_cut: watch::Sender<bool>,
    lag: Arc<RwLock<Duration>>,
}

impl Severable {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Arc<Self> {
        let backend = RwLock::new(backend);
        Arc::new(Self { backend, is_cut: watch::Sender::new(false), lag: Arc::default() })
    }

    /// Leads to another store from now on, as when it was opened anew.
    pub(crate) fn replace(&self, backend: Arc<dyn Backend>) {
        *self.backend.write() = backend;
    }

    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend.read())
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }

    /// Has whatever a watch delivers come this much later, from the next item on.
    pub(crate) fn set_lag(&self, lag: Duration) {
        *self.lag.write() = lag;
    }

    /// Asks the store. What was asked before the cut may have been carried out; its answer is lost.
    async fn ask<T>(&self, call: impl Future<Output = Result<T, StorageError>>) -> Result<T, StorageError> {
        let mut is_cut = self.is_cut.subscribe();
        let answered = async {
            if *is_cut.borrow_and_update() {
                return None;
            }
            tokio::select! {
                biased;
                _ = is_cut.wait_for(|is_cut| *is_cut) => None,
                answer = call => Some(answer),
            }
        };
        if let Some(answer) = answered.await {
            return answer;
        }
        let mut is_cut = self.is_cut.subscribe();
        // Until the way is there again, or the caller's client gives up: the answer is lost either way.
        let _either = tokio::time::timeout(TIMEOUT, is_cut.wait_for(|is_cut| !is_cut)).await;
        Err(StorageError::Unavailable { message: "context deadline exceeded".to_owned() })
    }
}

#[async_trait]
impl Backend for Severable {
    async fn get(&self, key: &Key) -> Result<Get, StorageError> {
        self.ask(self.backend().get(key)).await
    }

    async fn range(&self, range: &KeyRange, limit: usize, at: Option<Revision>) -> Result<Slice, StorageError> {
        self.ask(self.backend().range(range, limit, at)).await
    }

    async fn count(&self, range: &KeyRange) -> Result<u64, StorageError> {
        self.ask(self.backend().count(range)).await
    }

    async fn txn(&self, key: &Key, expect: Expect, write: Write) -> Result<Txn, StorageError> {
        self.ask(self.backend().txn(key, expect, write)).await
    }

    /// A watch over a way that is cut says nothing, and ends with an error once the way is there again.
    fn watch(&self, range: KeyRange, after: Revision) -> EventStream {
        let stream = self.backend().watch(range, after);
        let progress = stream.progress_handle();
        let lag = Arc::clone(&self.lag);
        let late = stream.then(move |item| {
            let lag = *lag.read();
            async move {
                if !lag.is_zero() {
                    tokio::time::sleep(lag).await;
                }
                item
            }
        });
        let state = (Box::pin(late), self.is_cut.subscribe(), false);
        let items = futures_util::stream::unfold(state, |(mut stream, mut is_cut, ended)| async move {
            if ended {
                return None;
            }
            let was_cut = *is_cut.borrow_and_update();
            let item = if was_cut {
                None
            } else {
                tokio::select! {
                    biased;
                    _ = is_cut.wait_for(|is_cut| *is_cut) => None,
                    item = stream.next() => Some(item),
                }
            };
            match item {
                Some(item) => item.map(|item| (item, (stream, is_cut, false))),
                None => {
                    drop(is_cut.wait_for(|is_cut| !is_cut).await);
                    let broken = StorageError::Unavailable { message: "connection reset by peer".to_owned() };
                    Some((Err(broken), (stream, is_cut, true)))
                }
            }
        });
        EventStream::new(items, progress)
    }

    async fn current_revision(&self) -> Result<Revision, StorageError> {
        self.ask(self.backend().current_revision()).await
    }

    fn supports_progress(&self) -> bool {
        self.backend().supports_progress()
    }

    async fn lease_grant(&self, ttl: Duration) -> Result<LeaseId, StorageError> {
        self.ask(self.backend().lease_grant(ttl)).await
    }

    async fn lease_revoke(&self, lease: LeaseId) -> Result<(), StorageError> {
        self.ask(self.backend().lease_revoke(lease)).await
    }

    async fn compact(&self, at: Revision) -> Result<(), StorageError> {
        self.ask(self.backend().compact(at)).await
    }

    async fn health(&self) -> Result<(), StorageError> {
        self.ask(self.backend().health()).await
    }

    async fn size_bytes(&self) -> Result<u64, StorageError> {
        self.ask(self.backend().size_bytes()).await
    }
}
