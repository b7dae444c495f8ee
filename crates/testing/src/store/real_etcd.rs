//! An etcd process, and the real time that its connections live on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use apiserver::config::StorageConfig;
use component_base::serving::BoxError;
use parking_lot::Mutex;
use test_facts::etcd::{EtcdServer, Security};
use tokio::runtime::{Builder, Handle, Runtime};

/// The process that the tests of one program share, while one of them runs.
static SHARED: Mutex<Weak<RealEtcd>> = Mutex::new(Weak::new());

/// An etcd process; it ends with the last user.
pub struct RealEtcd {
    server: EtcdServer,
    /// Always there, until it is dropped.
    runtime: Option<Runtime>,
    /// Which cluster is the next.
    number: AtomicU64,
    is_shared: bool,
}

impl RealEtcd {
    /// The process that this program's tests share: each cluster has a prefix of its own, and nobody compacts it.
    /// Nothing, with a word about it, where there is no etcd.
    ///
    /// # Errors
    /// When there can be no runtime.
    pub fn shared() -> Result<Option<Arc<Self>>, BoxError> {
        let mut shared = SHARED.lock();
        if let Some(running) = shared.upgrade() {
            return Ok(Some(running));
        }
        let started = Self::start(true)?;
        if let Some(started) = &started {
            *shared = Arc::downgrade(started);
        }
        Ok(started)
    }

    /// A process of its own, for tests that compact or end it. Nothing, with a word about it, where there is no etcd.
    ///
    /// # Errors
    /// When there can be no runtime.
    pub fn alone() -> Result<Option<Arc<Self>>, BoxError> {
        Self::start(false)
    }

    fn start(is_shared: bool) -> Result<Option<Arc<Self>>, BoxError> {
        let Some(server) = EtcdServer::start(Security::Plain) else { return Ok(None) };
        let runtime =
            Some(Builder::new_multi_thread().worker_threads(1).thread_name("etcd-client").enable_all().build()?);
        Ok(Some(Arc::new(Self { server, runtime, number: AtomicU64::new(1), is_shared })))
    }

    /// Where clients reach it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// Has a cluster keep out of the others' way.
    pub(super) fn set_apart(&self, config: &mut StorageConfig) {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        config.prefix = format!("/cluster-{number}");
        if self.is_shared {
            // Each cluster has a time of its own, and compaction is of all keys.
            config.compaction_interval = Duration::ZERO;
        }
    }

    pub(super) fn real_time(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }
}

impl Drop for RealEtcd {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The last user may be on a runtime, where nothing may be waited for.
            runtime.shutdown_background();
        }
    }
}
