//! What the API servers of a cluster keep their objects in: memory, a directory, or an etcd process.

mod etcd;
mod held_time;
mod real_etcd;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Rng, SharedClock, SharedRng, TaskGroup};
use component_base::serving::BoxError;
use storage::{Backend, Embedded, EmbeddedOptions, Memory, MemoryOptions};

pub use etcd::EtcdWorld;
pub use real_etcd::RealEtcd;

use apiserver::config::StorageConfig;

/// Which store a cluster is over.
#[derive(Clone)]
pub enum Store {
    /// The process's memory.
    Memory,
    /// The built-in store, in this directory.
    Embedded(PathBuf),
    /// An etcd process.
    Etcd(Arc<RealEtcd>),
}

impl fmt::Display for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory => "memory",
            Self::Embedded(_) => "embedded",
            Self::Etcd(_) => "etcd",
        })
    }
}

impl Store {
    /// Opens the store for the runtime's time, and changes `config` to what a cluster on this store needs.
    pub(crate) async fn open(
        &self,
        config: &mut StorageConfig,
        clock: &SharedClock,
        rng: &SharedRng,
        group: &TaskGroup,
    ) -> Result<Arc<dyn Backend>, BoxError> {
        let clock = Arc::clone(clock);
        Ok(match self {
            Self::Memory => Memory::new(MemoryOptions::default(), clock, group),
            Self::Embedded(directory) => Embedded::open(EmbeddedOptions::new(directory), clock, group).await?,
            Self::Etcd(etcd) => {
                etcd.set_apart(config);
                EtcdWorld::new(etcd).connect(Rng::seeded(rng.below(u64::MAX))).await?
            }
        })
    }
}
