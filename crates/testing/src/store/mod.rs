//! What the API servers of a cluster keep their objects in: memory, a directory, or an etcd process.

mod etcd;
mod faulty;
mod held_time;
mod real_etcd;
mod severable;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Rng, SharedClock, SharedRng, TaskGroup};
use component_base::serving::BoxError;
use storage::{Backend, Embedded, EmbeddedOptions, FaultyDisk, Memory, MemoryOptions};

pub use etcd::EtcdWorld;
pub(crate) use faulty::Faulty;
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
    /// The built-in store on a disk that can fail; the witness of its newest write is in this directory.
    Faulty(PathBuf),
    /// An etcd process.
    Etcd(Arc<RealEtcd>),
}

/// The way of each server to the store, and the disk where that can fail.
pub(crate) struct Opened {
    pub(crate) ways: Vec<Arc<Severable>>,
    pub(crate) faulty: Option<Faulty>,
}

impl fmt::Display for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Memory => "memory",
            Self::Embedded(_) => "embedded",
            Self::Faulty(_) => "faulty",
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
    ) -> Result<Opened, BoxError> {
        let mut faulty = None;
        let one: Arc<dyn Backend> = match self {
            Self::Memory => Memory::new(MemoryOptions::default(), Arc::clone(clock), group),
            Self::Embedded(directory) => {
                Embedded::open(EmbeddedOptions::new(directory), Arc::clone(clock), group).await?
            }
            Self::Faulty(directory) => {
                let own = Faulty::new(directory, clock, Rng::seeded(rng.below(u64::MAX)), group);
                let store = own.open(FaultyDisk::default()).await?;
                faulty = Some(own);
                store
            }
            Self::Etcd(etcd) => {
                etcd.set_apart(config);
                let (world, mut connections) = (EtcdWorld::new(etcd), Vec::new());
                for _ in 0..servers {
                    let connection = world.connect(Rng::seeded(rng.below(u64::MAX))).await?;
                    connections.push(Severable::new(connection));
                }
                return Ok(Opened { ways: connections, faulty });
            }
        };
        let ways = (0..servers).map(|_| Severable::new(Arc::clone(&one))).collect();
        Ok(Opened { ways, faulty })
    }
}
