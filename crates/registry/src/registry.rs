//! All resources of a server.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_machinery::gvk::{GroupResource, GroupVersionKind};
use base::{SharedClock, SharedRng, TaskGroup};
use feature_gates::Gates;
use kinds::rules::{RuleContext, Rules};
use parking_lot::{Mutex, RwLock};
use storage::{Backend, LeasePool, LeasePoolOptions, Metered, Observe, Transformed, Transformer};
use watch_cache::{Cache, CacheOptions, Codec, Index};

use crate::codec::{ObjectCodec, StorageMedia};
use crate::companion;
use crate::context::{RulesRef, Track};
use crate::conversion::{Conversion, OfKind};
use crate::counts::Counts;
use crate::observer::{NoObserver, WriteObserver};
use crate::places::{Placed, Places};
use crate::resource::{Resource, Setup, Shared};
use crate::services::{AllocationRecorder, NoRecorder, ServiceCompanion, ServiceOptions};
use crate::store::Store;
use crate::unreadable::Told;

/// What a registry is made of.
#[derive(Clone)]
pub struct RegistryOptions {
    /// The store.
    pub backend: Arc<dyn Backend>,
    /// The time.
    pub clock: SharedClock,
    /// Chance, for uids, names and addresses.
    pub rng: SharedRng,
    /// The gates of the process.
    pub gates: Gates,
    /// The tasks that feed the caches.
    pub group: TaskGroup,
    /// `--etcd-prefix`.
    pub etcd_prefix: String,
    /// `--storage-media-type`, for built-in kinds.
    pub media: StorageMedia,
    /// `--event-ttl`.
    pub event_ttl: Duration,
    /// `--lease-reuse-duration-seconds`.
    pub lease_reuse: Duration,
    /// `--enable-garbage-collector`.
    pub garbage_collector: bool,
    /// `--delete-collection-workers`.
    pub delete_collection_workers: usize,
    /// Resources (`resource[.group]`) that are read from the store; from `--watch-cache-sizes`.
    pub uncached: BTreeSet<String>,
    /// Ranges of Service addresses and node ports.
    pub services: ServiceOptions,
    /// Who is told of addresses and ports that are given out.
    pub allocation: Arc<dyn AllocationRecorder>,
    /// Who is told of writes.
    pub writes: Arc<dyn WriteObserver>,
    /// Whose the fields of objects are that the registry makes itself; nothing where nobody keeps that.
    pub own_fields: Option<Arc<Track<'static>>>,
    /// The revision up to which the store was compacted: no list is answered as of an earlier one, though a cache may
    /// still know it.
    pub compacted: Arc<AtomicI64>,
    /// The resources that are kept in another store; from `--etcd-servers-overrides`.
    pub elsewhere: HashMap<GroupResource, ResourceStore>,
    /// What the values of a resource pass on their way to the store and back, if anything.
    pub transformers: Transformers,
    /// Who hears of the calls to the store for a resource, if anybody.
    pub observers: Observers,
}

/// A store, and the revision up to which it was compacted.
#[derive(Clone)]
pub struct ResourceStore {
    /// The store.
    pub backend: Arc<dyn Backend>,
    /// The revision.
    pub compacted: Arc<AtomicI64>,
}

/// Who hears of the calls to the store for a resource, if anybody.
pub type Observers = Arc<dyn Fn(&GroupResource) -> Option<Arc<dyn Observe>> + Send + Sync>;

/// The transformer of a resource, if it has one.
pub type Transformers = Arc<dyn Fn(&GroupResource) -> Option<Arc<dyn Transformer>> + Send + Sync>;

impl RegistryOptions {
    /// Upstream's defaults over a store.
    pub fn new(backend: Arc<dyn Backend>, clock: SharedClock, rng: SharedRng, group: TaskGroup) -> Self {
        Self {
            backend,
            clock,
            rng,
            gates: Gates::default(),
            group,
            etcd_prefix: "/registry".to_owned(),
            media: StorageMedia::Protobuf,
            event_ttl: Duration::from_secs(3_600),
            lease_reuse: LeasePoolOptions::default().reuse_duration,
            garbage_collector: true,
            delete_collection_workers: 1,
            uncached: uncached_by_default(),
            services: ServiceOptions::default(),
            allocation: Arc::new(NoRecorder),
            writes: Arc::new(NoObserver),
            own_fields: None,
            compacted: Arc::default(),
            elsewhere: HashMap::new(),
            transformers: Arc::new(|_| None),
            observers: Arc::new(|_| None),
        }
    }
}

/// The resources that have no cache unless somebody wants one, by name and group.
#[must_use]
pub fn uncached_by_default() -> BTreeSet<String> {
    let expiring = kinds::all().filter(|rules| rules.lifecycle().expires).map(|rules| rules.info());
    expiring.map(|info| GroupResource::named(info.group, info.resource).to_string()).collect()
}

/// All resources of a server.
pub struct Registry {
    options: RegistryOptions,
    shared: Arc<Shared>,
    leases: Arc<LeasePool>,
    services: Arc<ServiceCompanion>,
    resources: RwLock<Places<Resource>>,
}

impl Registry {
    /// A registry without resources.
    #[must_use]
    pub fn new(mut options: RegistryOptions) -> Arc<Self> {
        // As upstream reads the flag: rooted, and without a slash at the end.
        options.etcd_prefix = format!("/{}", options.etcd_prefix.trim_matches('/'));
        let leases = Arc::new(lease_pool(&options, &options.backend));
        Arc::new_cyclic(|registry| Self {
            shared: Arc::new(Shared {
                registry: Weak::clone(registry),
                rng: Arc::clone(&options.rng),
                clock: Arc::clone(&options.clock),
                gates: options.gates.clone(),
                garbage_collector: options.garbage_collector,
                delete_collection_workers: options.delete_collection_workers,
                writes: Arc::clone(&options.writes),
            }),
            leases,
            services: Arc::new(ServiceCompanion::new(&options, Weak::clone(registry))),
            options,
            resources: RwLock::default(),
        })
    }

    /// Installs every built-in kind that is stored.
    pub fn install_built_in(&self) {
        for rules in kinds::all().filter(|rules| rules.info().storage.is_some()) {
            self.install_kind(rules);
        }
    }

    /// Installs one built-in kind; nothing happens where it is not stored.
    pub fn install_kind(&self, rules: &'static dyn Rules) -> Option<Arc<Resource>> {
        let info = rules.info();
        let storage = info.storage?;
        let mut setup = Setup { media: Some(self.options.media), ..Setup::default() };
        if (storage.group, storage.version) != (info.group, info.version) {
            setup.storage_rules = kinds::find(storage.group, storage.version, info.resource).map(RulesRef::Static);
            setup.shared_with = self.resource(storage.group, storage.version, info.resource);
        }
        setup.conversion = rules.conversion().map(|own| Conversion::at_once(Arc::new(OfKind(own))));
        Some(self.install(RulesRef::Static(rules), setup))
    }

    /// Installs a resource, in the place of a former one of that name.
    pub fn install(&self, rules: RulesRef, setup: Setup) -> Arc<Resource> {
        let resource = self.make(rules, setup);
        if let Some(former) = self.put(&resource) {
            self.retire(&former);
        }
        resource
    }

    /// Makes a resource that nobody finds yet; its cache fills already.
    #[must_use]
    pub fn make(&self, rules: RulesRef, setup: Setup) -> Arc<Resource> {
        let info = rules.info();
        let group_resource = GroupResource::named(info.group, info.resource);
        let indexes = rules.lifecycle().indexes.iter().map(|own| Index { field: own.field, value: own.value });
        let indexes: Arc<[Index]> = indexes.collect();
        let store = match &setup.shared_with {
            Some(other) => Arc::clone(&other.store),
            None => Arc::new(self.open(&group_resource, &rules, &setup, &indexes)),
        };
        Arc::new(Resource {
            companion: companion::of(self, info.group, info.resource),
            group_resource,
            rules,
            store,
            conversion: setup.conversion,
            indexes,
            listed: Mutex::default(),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Puts a resource in the place of a former one of that name, which can still be used by who found it before, until
    /// it is retired.
    #[must_use]
    pub fn put(&self, resource: &Arc<Resource>) -> Option<Arc<Resource>> {
        self.resources.write().put(resource)
    }

    /// Takes a resource away. Its watches end; its objects stay in the store.
    pub fn remove(&self, group: &str, version: &str, resource: &str) {
        let former = self.resources.write().remove([group, version, resource]);
        if let Some(former) = former {
            self.retire(&former);
        }
    }

    /// A resource.
    #[must_use]
    pub fn resource(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Resource>> {
        self.resources.read().get([group, version, resource]).cloned()
    }

    /// The resource whose objects are of a kind.
    #[must_use]
    pub fn resource_of(&self, kind: &GroupVersionKind) -> Option<Arc<Resource>> {
        let resources = self.resources.read();
        let found = resources.all().iter().find(|own| {
            let info = own.info();
            info.kind == &*kind.kind && info.group == &*kind.group && info.version == &*kind.version
        });
        found.cloned()
    }

    /// The gates of the process.
    #[must_use]
    pub fn gates(&self) -> &Gates {
        &self.options.gates
    }

    /// All resources, by group, version and name.
    #[must_use]
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.resources.read().all().to_vec()
    }

    /// The resources whose caches are not filled yet.
    #[must_use]
    pub fn not_ready(&self) -> Vec<String> {
        self.resources()
            .iter()
            .filter(|resource| !resource.is_ready())
            .map(|resource| resource.group_resource.to_string())
            .collect()
    }

    /// Waits until all caches are filled.
    pub async fn ready(&self) {
        for resource in self.resources() {
            resource.ready().await;
        }
    }

    /// What Services keep beside themselves.
    pub(crate) fn services(&self) -> &Arc<ServiceCompanion> {
        &self.services
    }

    /// The time, as the registry sees it.
    #[must_use]
    pub fn clock(&self) -> &SharedClock {
        &self.options.clock
    }

    /// What rules may know now, of a request that nobody made.
    #[must_use]
    pub fn rule_context(&self) -> RuleContext {
        self.shared.rule_context()
    }

    pub(crate) fn rng(&self) -> &SharedRng {
        &self.options.rng
    }

    fn open(&self, group_resource: &GroupResource, rules: &RulesRef, setup: &Setup, indexes: &[Index]) -> Store {
        let info = rules.info();
        let stored_under = info.storage.map_or(info.resource, |storage| storage.prefix);
        let prefix = format!("{}/{stored_under}/", self.options.etcd_prefix);
        let codec = Arc::new(ObjectCodec {
            rules: setup.storage_rules.clone().unwrap_or_else(|| rules.clone()),
            media: setup.media.unwrap_or(StorageMedia::Json),
        });
        let name = group_resource.to_string();
        let cached = !self.options.uncached.contains(&name);
        let (options, elsewhere) = (&self.options, self.options.elsewhere.get(group_resource));
        let (kept, compacted) =
            elsewhere.map_or((&options.backend, &options.compacted), |place| (&place.backend, &place.compacted));
        // Whoever listens hears of the calls to the store itself, below the transformer.
        let backend: Arc<dyn Backend> = match (options.observers)(group_resource) {
            Some(observer) => Metered::new(Arc::clone(kept), observer),
            None => Arc::clone(kept),
        };
        let backend: Arc<dyn Backend> = match (options.transformers)(group_resource) {
            Some(transformer) => Transformed::new(backend, transformer),
            None => backend,
        };
        // Leases are of one store.
        let leases = || match elsewhere {
            Some(place) => Arc::new(lease_pool(options, &place.backend)),
            None => Arc::clone(&self.leases),
        };
        Store {
            backend: Arc::clone(&backend),
            cache: cached.then(|| {
                let options = CacheOptions { resource: name, prefix: prefix.clone(), indexes: indexes.to_vec() };
                let clock = Arc::clone(&self.options.clock);
                Cache::start(options, backend, Arc::clone(&codec) as Arc<dyn Codec>, clock, &self.options.group)
            }),
            codec,
            resource: group_resource.clone(),
            prefix,
            compacted: Arc::clone(compacted),
            counts: Counts::new(indexes),
            told: Told::by(&self.options.gates),
            differs: AtomicBool::new(false),
            lifetime: rules.lifecycle().expires.then(|| (self.options.event_ttl, leases())),
        }
    }

    /// Stops the cache of a resource that is no longer installed, unless another version of it uses that, too. Its
    /// watches end then.
    pub fn retire(&self, former: &Resource) {
        let in_use = self.resources.read().all().iter().any(|other| Arc::ptr_eq(&other.store, &former.store));
        if let Some(cache) = former.store.cache.as_ref().filter(|_| !in_use) {
            cache.stop();
        }
    }
}

fn lease_pool(options: &RegistryOptions, backend: &Arc<dyn Backend>) -> LeasePool {
    let pool = LeasePoolOptions { reuse_duration: options.lease_reuse, ..LeasePoolOptions::default() };
    let writes = Arc::clone(&options.writes);
    LeasePool::new(Arc::clone(backend), Arc::clone(&options.clock), pool)
        .telling(move |objects| writes.lease_full(objects))
}

impl Placed for Resource {
    fn place(&self) -> [&str; 3] {
        self.info().place()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.resources()).finish()
    }
}
