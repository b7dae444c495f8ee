//! Opening the store that the configuration names, and closing it.

use std::sync::Arc;
use std::time::Duration;

use component_base::lifecycle::Lifecycle;
use storage::{Backend, Compactor, Embedded, EmbeddedOptions, Etcd, Memory, MemoryOptions};

use super::BuildError;
use crate::config::{BackendConfig, StorageConfig};

/// How long the embedded store may take to write what is queued.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// An open store.
pub(super) struct Store {
    pub(super) backend: Arc<dyn Backend>,
    embedded: Option<Arc<Embedded>>,
}

impl Store {
    pub(super) fn shared(backend: Arc<dyn Backend>) -> Self {
        Self { backend, embedded: None }
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
                Self { backend: Arc::clone(&embedded) as _, embedded: Some(embedded) }
            }
        };
        let compactor = Compactor::new(Arc::clone(&store.backend), config.compaction_interval);
        tasks.spawn_cancellable("compactor", compactor.run());
        Ok(store)
    }

    pub(super) async fn close(&self) {
        if let Some(embedded) = &self.embedded {
            embedded.close(CLOSE_DEADLINE).await;
        }
    }
}
