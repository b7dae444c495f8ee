//! One resource in one served version, ready to be used: its rules, its place in the store, its cache.

use std::sync::{Arc, Weak};

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use base::{SharedClock, SharedRng};
use feature_gates::Gates;
use kinds::info::ResourceInfo;
use kinds::rules::{RuleContext, Rules};
use parking_lot::Mutex;
use watch_cache::{CacheStats, Index, Snapshot, Stored};

use crate::codec::StorageMedia;
use crate::companion::Companion;
use crate::context::RulesRef;
use crate::conversion::Conversion;
use crate::observer::WriteObserver;
use crate::registry::Registry;
use crate::store::Store;

/// What all resources share.
pub(crate) struct Shared {
    pub(crate) registry: Weak<Registry>,
    pub(crate) rng: SharedRng,
    pub(crate) clock: SharedClock,
    pub(crate) gates: Gates,
    /// Whether there is a garbage collector, so that its finalizers make sense.
    pub(crate) garbage_collector: bool,
    /// How many objects of a collection are deleted at a time.
    pub(crate) delete_collection_workers: usize,
    /// Who is told of writes.
    pub(crate) writes: Arc<dyn WriteObserver>,
}

impl Shared {
    pub(crate) fn rule_context(&self) -> RuleContext {
        RuleContext { now: self.clock.wall().into(), gates: self.gates.clone(), ..RuleContext::default() }
    }
}

/// How a resource that is installed at run time is kept.
#[derive(Clone, Default)]
pub struct Setup {
    /// Between the served and the stored version, where they differ.
    pub conversion: Option<Arc<Conversion>>,
    /// The rules of the stored version, where it is not the served one: for its empty object and its defaults.
    pub storage_rules: Option<RulesRef>,
    /// Another served version of the same objects, whose cache and place in the store are used.
    pub shared_with: Option<Arc<Resource>>,
    /// What objects are written as; nothing for JSON.
    pub media: Option<StorageMedia>,
}

/// One resource in one served version.
pub struct Resource {
    pub(crate) rules: RulesRef,
    pub(crate) group_resource: GroupResource,
    pub(crate) store: Arc<Store>,
    pub(crate) conversion: Option<Arc<Conversion>>,
    pub(crate) companion: Arc<dyn Companion>,
    pub(crate) indexes: Arc<[Index]>,
    /// All objects as they were asked for last.
    pub(crate) listed: Mutex<Option<Listed>>,
    pub(crate) shared: Arc<Shared>,
}

/// All objects at a moment.
pub(crate) struct Listed {
    pub(crate) at: Arc<Snapshot>,
    pub(crate) objects: Arc<[Arc<dyn Object>]>,
}

impl Resource {
    /// The rules of the served version.
    #[must_use]
    pub fn rules(&self) -> &dyn Rules {
        &*self.rules
    }

    /// Names and facts.
    #[must_use]
    pub fn info(&self) -> &ResourceInfo<'_> {
        self.rules.info()
    }

    /// The resource's name in texts.
    #[must_use]
    pub fn group_resource(&self) -> &GroupResource {
        &self.group_resource
    }

    /// What rules may know now, of a request that nobody made.
    #[must_use]
    pub fn rule_context(&self) -> RuleContext {
        self.shared.rule_context()
    }

    /// Whether the resource can be read and watched now; one without a cache always can.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.store.cache.as_ref().is_none_or(|cache| cache.is_ready())
    }

    /// Waits until it is.
    pub async fn ready(&self) {
        if let Some(cache) = &self.store.cache {
            cache.filled().await;
        }
    }

    /// Numbers of its cache, for metrics; nothing without one.
    #[must_use]
    pub fn cache_stats(&self) -> Option<CacheStats> {
        self.store.cache.as_ref().map(|cache| cache.stats())
    }

    /// How many objects the store has.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn count(&self) -> Result<u64, ApiError> {
        let range = self.store.range("");
        self.store.backend.count(&range).await.map_err(|error| self.store.failed("list", error))
    }

    /// An object of this version as another version of the same objects shows it.
    ///
    /// # Errors
    /// When it cannot be shown so.
    pub async fn convert(&self, object: &dyn Object, to: &Resource) -> Result<Box<dyn Object>, ApiError> {
        let stored = self.to_stored(object.clone_object()).await?;
        let item = Stored::unwritten(Arc::from(object.meta().name.as_str()), storage::Revision(0), stored);
        Ok(to.to_served(Arc::new(item)).await?.object().clone_object())
    }

    pub(crate) async fn to_served(&self, item: Arc<Stored>) -> Result<Arc<Stored>, ApiError> {
        match &self.conversion {
            Some(conversion) => conversion.to_served(&item).await,
            None => Ok(item),
        }
    }

    /// The item as the served version shows it, if that takes no wait.
    pub(crate) fn served_at_hand(&self, item: Arc<Stored>) -> Option<Arc<Stored>> {
        match &self.conversion {
            Some(conversion) => conversion.at_hand(&item).ok()?,
            None => Some(item),
        }
    }

    pub(crate) async fn to_stored(&self, object: Box<dyn Object>) -> Result<Box<dyn Object>, ApiError> {
        match &self.conversion {
            Some(conversion) => conversion.to_stored(&*object).await,
            None => Ok(object),
        }
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Resource({} {})", self.group_resource, self.info().version)
    }
}
