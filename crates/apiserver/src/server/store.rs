//! Opening the store that the configuration names, and closing it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use api_machinery::gvk::GroupResource;
use base::TaskGroup;
use component_base::lifecycle::Lifecycle;
use egress::EgressSelector;
use registry::ResourceStore;
use storage::{
    Backend, COMPACT_REVISION_KEY, Compactor, Embedded, EmbeddedOptions, Etcd, EtcdOptions, Memory, MemoryOptions,
    StorageError,
};

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

async fn etcd(
    options: &EtcdOptions,
    egress: &EgressSelector,
    lifecycle: &Lifecycle,
) -> Result<Arc<Etcd>, StorageError> {
    let options = EtcdOptions { connector: Arc::clone(egress.etcd()), ..options.clone() };
    Etcd::connect(options, Arc::clone(lifecycle.rng()), lifecycle.tasks()).await
}

fn compact(backend: &Arc<dyn Backend>, config: &StorageConfig, tasks: &TaskGroup) {
    let compactor = Compactor::new(Arc::clone(backend), config.compaction_interval);
    tasks.spawn_cancellable("compactor", compactor.run());
}

/// Opens the stores that some resources are kept in; those with the same members are one.
async fn overrides(
    config: &StorageConfig,
    egress: &EgressSelector,
    lifecycle: &Lifecycle,
) -> Result<Overrides, StorageError> {
    let (mut opened, mut overrides) = (HashMap::<&[String], ResourceStore>::new(), Overrides::default());
    for (resource, options) in &config.elsewhere {
        let store = match opened.get(&*options.endpoints) {
            Some(store) => store.clone(),
            None => {
                let backend: Arc<dyn Backend> = etcd(options, egress, lifecycle).await?;
                let store = ResourceStore { backend, compacted: Arc::default() };
                compact(&store.backend, config, lifecycle.tasks());
                let following = follow(Arc::clone(&store.backend), Arc::clone(&store.compacted));
                lifecycle.tasks().spawn_cancellable("compacted", following);
                overrides.all.push(Override { backend: Arc::clone(&store.backend), members: options.endpoints.len() });
                opened.entry(&*options.endpoints).or_insert(store).clone()
            }
        };
        overrides.of.insert(resource.clone(), store);
    }
    Ok(overrides)
}

/// The stores beside the one for everything; from `--etcd-servers-overrides`.
#[derive(Default)]
pub(super) struct Overrides {
    /// The resources that are kept in them.
    pub(super) of: HashMap<GroupResource, ResourceStore>,
    /// Each once, in the order in which the flag names them.
    pub(super) all: Vec<Override>,
}

/// A store that some resources are kept in.
#[derive(Clone)]
pub(crate) struct Override {
    pub(crate) backend: Arc<dyn Backend>,
    /// How many servers it is told to have.
    pub(crate) members: usize,
}

/// An open store.
pub(super) struct Store {
    pub(super) backend: Arc<dyn Backend>,
    /// The revision up to which it was compacted, by whichever server.
    pub(super) compacted: Arc<AtomicI64>,
    pub(super) overrides: Overrides,
    embedded: Option<Arc<Embedded>>,
}

impl Store {
    pub(super) fn shared(backend: Arc<dyn Backend>) -> Self {
        Self { backend, compacted: Arc::default(), overrides: Overrides::default(), embedded: None }
    }

    pub(super) async fn open(
        config: &StorageConfig,
        egress: &EgressSelector,
        lifecycle: &Lifecycle,
    ) -> Result<Self, BuildError> {
        let (clock, tasks) = (Arc::clone(lifecycle.clock()), lifecycle.tasks());
        let mut store = match &config.backend {
            BackendConfig::Memory => Self::shared(Memory::new(MemoryOptions::default(), clock, tasks)),
            BackendConfig::Etcd(options) => Self::shared(etcd(options, egress, lifecycle).await?),
            BackendConfig::Embedded(directory) => {
                let embedded = Embedded::open(EmbeddedOptions::new(directory), clock, tasks).await?;
                Self { embedded: Some(Arc::clone(&embedded)), ..Self::shared(embedded) }
            }
        };
        compact(&store.backend, config, tasks);
        store.overrides = overrides(config, egress, lifecycle).await?;
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
