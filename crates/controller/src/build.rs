//! How a controller is put together: its queues, what it watches and which keys follow from a change, who works.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_machinery::gvk::GroupVersion;
use api_machinery::meta::{ObjectMeta, PartialObjectMetadata};
use api_machinery::object::{Kind, Object, Unstructured};
use api_types::core_v1::ResourceQuota;
use base::{SharedClock, SharedRng};
use client::{
    ApiObject, Change, Client, ConfigError, EventRecorder, Informer, Informers, NoMetrics, ObjectKey, QueueMetrics,
    RateLimit, ResourceInfo, RestMapper, Scope, WorkQueue,
};
use component_base::Gates;
use component_base::metrics::Metrics;
use component_base::serving::Query;

use crate::claim::controller_of;
use crate::cx::Controller;
use crate::debug_pages::{DebugPage, DebugPages};
use crate::descriptor::Descriptor;
use crate::metrics::QueueMetricFamilies;
use crate::refused::Refused;

/// The queue of a controller.
pub type Queue = WorkQueue<ObjectKey>;

/// Why a controller could not be put together.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It is not wanted in this configuration; the others run.
    #[error("{0}")]
    Skipped(String),
    /// The configuration is wrong; the process ends.
    #[error("{0}")]
    Failed(String),
    /// A client could not be made.
    #[error(transparent)]
    Client(#[from] ConfigError),
}

/// What the parts of all controllers share.
pub(crate) struct Shared {
    pub(crate) informers: Informers,
    pub(crate) metadata_informers: Informers,
    pub(crate) mapper: RestMapper,
    pub(crate) gates: Gates,
    pub(crate) settings: Arc<dyn Any + Send + Sync>,
    pub(crate) metrics: Option<QueueMetricFamilies>,
    pub(crate) registry: Arc<Metrics>,
    pub(crate) debug_pages: DebugPages,
    /// Where what they refused is to be tried again once there is room.
    pub(crate) quotas: Option<Informer<ResourceQuota>>,
}

/// Who works on a queue.
pub struct Workers {
    pub(crate) queue: Queue,
    pub(crate) count: usize,
    pub(crate) controller: Arc<dyn Controller>,
    pub(crate) drop_after: Option<u32>,
    pub(crate) every: Option<Duration>,
    pub(crate) refused: Option<Arc<Refused>>,
}

impl Workers {
    /// Gives a key up after so many failures in a row, until it changes.
    pub fn drop_after(&mut self, failures: u32) -> &mut Self {
        self.drop_after = Some(failures);
        self
    }
}

/// Waits for one informer.
type Synced = futures_util::future::BoxFuture<'static, ()>;

/// A controller in the making.
pub struct Build<'a> {
    descriptor: &'a Descriptor,
    shared: &'a Shared,
    client: Client,
    events: EventRecorder,
    pub(crate) workers: Vec<Workers>,
    pub(crate) synced: Vec<Synced>,
}

impl<'a> Build<'a> {
    pub(crate) fn new(descriptor: &'a Descriptor, shared: &'a Shared, client: Client, events: EventRecorder) -> Self {
        Self { descriptor, shared, client, events, workers: Vec::new(), synced: Vec::new() }
    }

    /// The controller's descriptor.
    #[must_use]
    pub fn descriptor(&self) -> &Descriptor {
        self.descriptor
    }

    /// The API, as the controller's own identity.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        self.client.clock()
    }

    /// The source of randomness.
    #[must_use]
    pub fn rng(&self) -> &SharedRng {
        self.client.rng()
    }

    /// The component's feature gates.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.shared.gates
    }

    /// Events, as the controller's component.
    #[must_use]
    pub fn events(&self) -> &EventRecorder {
        &self.events
    }

    /// The shared informers. What is asked of them here is not waited for; use [`Self::watch`] for that.
    #[must_use]
    pub fn informers(&self) -> &Informers {
        &self.shared.informers
    }

    /// The shared informers of metadata, for resources that come and go.
    #[must_use]
    pub fn metadata_informers(&self) -> &Informers {
        &self.shared.metadata_informers
    }

    /// What the server offers; refreshed by those who need it fresh.
    #[must_use]
    pub fn mapper(&self) -> &RestMapper {
        &self.shared.mapper
    }

    /// Where the controller's own metrics go.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.shared.registry
    }

    /// The component's own options.
    ///
    /// # Errors
    /// When the component put in something else.
    pub fn settings<S: Any>(&self) -> Result<&S, BuildError> {
        let wrong = || BuildError::Failed(format!("{}: the settings are of another type", self.descriptor.name));
        self.shared.settings.downcast_ref().ok_or_else(wrong)
    }

    /// Serves a page beside the controller's work, at `/debug/controllers/CONTROLLER/PAGE`; it is made when it is asked for.
    pub fn debug_page(&self, page: &str, answer: impl Fn(&Query) -> DebugPage + Send + Sync + 'static) {
        self.shared.debug_pages.put(self.descriptor.name, page, answer);
    }

    /// A queue with the default rate limit.
    #[must_use]
    pub fn queue(&self, name: &str) -> Queue {
        self.queue_with(name, RateLimit::default())
    }

    /// A queue with another rate limit.
    #[must_use]
    pub fn queue_with(&self, name: &str, limit: RateLimit) -> Queue {
        let none = || Arc::new(NoMetrics) as Arc<dyn QueueMetrics>;
        let metrics = self.shared.metrics.as_ref().map_or_else(none, |families| families.queue(name));
        WorkQueue::new(name, limit, Arc::clone(self.client.clock()), metrics)
    }

    /// Watches all objects of a kind; the workers start once they are known.
    pub fn watch<T: Kind + Object>(&mut self) -> Watching<T> {
        self.watch_scoped(&Scope::default())
    }

    /// Watches some objects of a kind; the workers start once they are known.
    pub fn watch_scoped<T: Kind + Object>(&mut self, scope: &Scope) -> Watching<T> {
        let informer = self.shared.informers.scoped::<T>(scope);
        self.watching(informer)
    }

    /// Watches the metadata of all objects of a resource.
    pub fn watch_metadata(&mut self, info: &ResourceInfo) -> Watching<PartialObjectMetadata> {
        let informer = self.shared.metadata_informers.metadata(info);
        self.watching(informer)
    }

    /// Watches all objects of a resource as free-form values.
    pub fn watch_dynamic(&mut self, info: &ResourceInfo) -> Watching<Unstructured> {
        let informer = self.shared.informers.dynamic(info);
        self.watching(informer)
    }

    fn watching<T: ApiObject>(&mut self, informer: Informer<T>) -> Watching<T> {
        let waited = informer.clone();
        self.synced.push(Box::pin(async move { waited.wait_synced().await }));
        Watching { informer, resync: None }
    }

    /// Sets `count` workers to a queue, who call `controller` for each key. A controller may be set to several queues.
    pub fn run(&mut self, queue: &Queue, count: usize, controller: Arc<dyn Controller>) -> &mut Workers {
        self.add(queue.clone(), count.max(1), controller, None)
    }

    /// Calls `controller` every `period`, first at once, with a key of the queue's name. For what no watch can tell.
    pub fn every(&mut self, name: &str, period: Duration, controller: Arc<dyn Controller>) -> &mut Workers {
        let queue = self.queue(name);
        queue.add(ObjectKey::cluster(name));
        self.add(queue, 1, controller, Some(period))
    }

    fn add(
        &mut self,
        queue: Queue,
        count: usize,
        controller: Arc<dyn Controller>,
        every: Option<Duration>,
    ) -> &mut Workers {
        let refused = self.shared.quotas.as_ref().map(|quotas| Refused::of(&queue, quotas));
        let workers = Workers { queue, count, controller, drop_after: None, every, refused };
        let at = self.workers.len();
        self.workers.push(workers);
        &mut self.workers[at]
    }
}

/// A watch of a controller. The handlers are called in the order in which they are added here, so an observer that
/// lowers expectations goes before what enqueues.
pub struct Watching<T> {
    informer: Informer<T>,
    resync: Option<Duration>,
}

impl<T: ApiObject> Watching<T> {
    /// Adds an index; one of the same name is shared.
    #[must_use]
    pub fn index(self, name: &'static str, values_of: impl Fn(&T) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.informer.add_index(name, values_of);
        self
    }

    /// Has the handlers that are added after this called again for everything, this often.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Calls `handler` with every change. It must not block.
    #[must_use]
    pub fn observe(self, handler: impl FnMut(&Change<T>) + Send + 'static) -> Self {
        match self.resync {
            Some(period) => self.informer.subscribe_with_resync(period, handler),
            None => self.informer.subscribe(handler),
        }
        self
    }

    /// Enqueues the key of every object that changes.
    #[must_use]
    pub fn enqueue_self(self, queue: &Queue) -> Self {
        let queue = queue.clone();
        self.observe(move |change| queue.add(change.key()))
    }

    /// Enqueues the key of the `O` that controls a changed object, or did before the change.
    #[must_use]
    pub fn enqueue_owner<O: Kind>(self, queue: &Queue) -> Self {
        let queue = queue.clone();
        self.observe(move |change| {
            let now = owner_key::<O>(change.object().meta());
            let before = change.old().and_then(|old| owner_key::<O>(old.meta()));
            if before != now
                && let Some(before) = before
            {
                queue.add(before);
            }
            if let Some(now) = now {
                queue.add(now);
            }
        })
    }

    /// Enqueues the keys that follow from a change.
    #[must_use]
    pub fn enqueue_keys<I: IntoIterator<Item = ObjectKey>>(
        self,
        queue: &Queue,
        mut keys: impl FnMut(&Change<T>) -> I + Send + 'static,
    ) -> Self {
        let queue = queue.clone();
        self.observe(move |change| keys(change).into_iter().for_each(|key| queue.add(key)))
    }

    /// Enqueues the keys that follow from a change, each after its delay.
    #[must_use]
    pub fn enqueue_after<I: IntoIterator<Item = (ObjectKey, Duration)>>(
        self,
        queue: &Queue,
        mut keys: impl FnMut(&Change<T>) -> I + Send + 'static,
    ) -> Self {
        let queue = queue.clone();
        self.observe(move |change| keys(change).into_iter().for_each(|(key, delay)| queue.add_after(key, delay)))
    }

    /// The informer, to read from.
    #[must_use]
    pub fn informer(self) -> Informer<T> {
        self.informer
    }
}

/// The key of the `O` that controls an object; its version does not matter.
fn owner_key<O: Kind>(meta: &ObjectMeta) -> Option<ObjectKey> {
    let owner = controller_of(meta)?;
    let group = GroupVersion::parse(&owner.api_version).ok()?.group;
    let kind = O::TYPE;
    if owner.kind != kind.kind || group != kind.group {
        return None;
    }
    let namespace = if kind.namespaced { meta.namespace.clone() } else { String::new() };
    Some(ObjectKey::new(namespace, owner.name.clone()))
}

/// The recorders of a process, one for each component name.
pub(crate) type Recorders = BTreeMap<&'static str, EventRecorder>;
