//! Opening the store that the configuration names, and closing it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use component_base::lifecycle::Lifecycle;
use storage::{Backend, COMPACT_REVISION_KEY, Compactor, Embedded, EmbeddedOptions, Etcd, Memory, MemoryOptions};

use crate::build_error::BuildError;
use crate::config::{BackendConfig, StorageConfig};

/// How long the embedded store may take to write what is queued.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// How often it is looked how far the store was compacted.
const COMPACTION_POLL: Duration = Duration::from_secs(60);

/// Notes for ever how far the store was compacted, as the servers that take turns at it write down.
async fn follow(backend: Arc<dyn Backend>, compacted: Arc<AtomicI64>) {
    let key = storage::Key::from(COMPACT_REVISION_KEY);
    loop {
        tokio::time::sleep(COMPACTION_POLL).await;
        match backend.get(&key).await {
            Ok(found) => {
                let text = found.kv.map(|kv| String::from_utf8_lossy(&kv.value).into_owned());
                let revision = text.and_then(|text| text.parse().ok()).unwrap_or(0);
                compacted.fetch_max(revision, Ordering::Relaxed);
            }
            Err(error) => tracing::debug!(%error, "It is not known how far the store was compacted"),
        }
    }
}

/// An open store.
pub(super) struct Store {
    pub(super) backend: Arc<dyn Backend>,
    /// The revision up to which it was compacted, by whichever server.
    pub(super) compacted: Arc<AtomicI64>,
    embedded: Option<Arc<Embedded>>,
}

impl Store {
    pub(super) fn shared(backend: Arc<dyn Backend>) -> Self {
        Self { backend, compacted: Arc::default(), embedded: None }
    }

    pub(super) async fn open(config: &StorageConfig, lifecycle: &Lifecycle) -> Result<Self, BuildError> {
        let (clock, tasks) = (Arc::clone(lifecycle.clock()), lifecycle.tasks());
        let store = match &config.backend {
            BackendConfig::Memory => Self::shared(Memory::new(MemoryOptions::default(), clock, tasks)),
            BackendConfig::Etcd(options) => {
                Self::shared(Etcd::connect((**options).clone(), Arc::clone(lifecycle.rng()), tasks).await?)
            }
            BackendConfig::Embedded(directory) => {
                let embedded = Embedded::open(EmbeddedOptions::new(directory), clock, tasks).await?;
                Self { embedded: Some(Arc::clone(&embedded)), ..Self::shared(embedded) }
            }
        };
        let compactor = Compactor::new(Arc::clone(&store.backend), config.compaction_interval);
        tasks.spawn_cancellable("compactor", compactor.run());
        Ok(store)
    }

    /// Notes how far the store is compacted, for as long as it is run.
    pub(super) fn follow_compaction(&self) -> impl Future<Output = ()> + Send + 'static {
        follow(Arc::clone(&self.backend), Arc::clone(&self.compacted))
    }

    pub(super) async fn close(&self) {
        if let Some(embedded) = &self.embedded {
            embedded.close(CLOSE_DEADLINE).await;
        }
    }
}
