//! What the API servers of a cluster keep their objects in: memory, a directory, or an etcd process.

mod etcd;
mod held_time;
mod real_etcd;
mod severable;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Rng, SharedClock, SharedRng, TaskGroup};
use component_base::serving::BoxError;
use storage::{Backend, Embedded, EmbeddedOptions, Memory, MemoryOptions};

pub use etcd::EtcdWorld;
pub use real_etcd::RealEtcd;
pub(crate) use severable::Severable;

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
    /// Opens the store for the runtime's time, once for each server, and changes `config` to what a cluster on this store
    /// needs.
    pub(crate) async fn open(
        &self,
        servers: u8,
        config: &mut StorageConfig,
        clock: &SharedClock,
        rng: &SharedRng,
        group: &TaskGroup,
    ) -> Result<Vec<Arc<Severable>>, BoxError> {
        let clock = Arc::clone(clock);
        let one: Arc<dyn Backend> = match self {
            Self::Memory => Memory::new(MemoryOptions::default(), clock, group),
            Self::Embedded(directory) => Embedded::open(EmbeddedOptions::new(directory), clock, group).await?,
            Self::Etcd(etcd) => {
                etcd.set_apart(config);
                let (world, mut connections) = (EtcdWorld::new(etcd), Vec::new());
                for _ in 0..servers {
                    let connection = world.connect(Rng::seeded(rng.below(u64::MAX))).await?;
                    connections.push(Severable::new(connection));
                }
                return Ok(connections);
            }
        };
        Ok((0..servers).map(|_| Severable::new(Arc::clone(&one))).collect())
    }
}
