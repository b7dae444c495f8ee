//! The cluster state that admission plugins look at, out of the registry's caches.

use std::sync::{Arc, Weak};

use admission::Wish;
use api_machinery::gvk::GroupResource;
use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind, KindType, Object};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, ServiceAccount};
use api_types::networking_v1::IngressClass;
use api_types::node_v1::RuntimeClass;
use api_types::scheduling_v1::PriorityClass;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;
use authz::{Attributes, Authorizer, Decision};
use base::SharedClock;
use kinds::rules::Endpoint;
use registry::{AdmitAll, Hooks, Registry, Replace, Resource, Stored};

use crate::charged_quotas::Charged;
use crate::cx::server_request;

/// The kinds that admission looks at, which therefore always have a cache, as upstream has informers of them, whatever
/// `--watch-cache-sizes` says.
const LOOKED_AT: [&KindType; 11] = [
    &Namespace::TYPE,
    &ServiceAccount::TYPE,
    &Pod::TYPE,
    &Node::TYPE,
    &PersistentVolumeClaim::TYPE,
    &LimitRange::TYPE,
    &ResourceQuota::TYPE,
    &PriorityClass::TYPE,
    &RuntimeClass::TYPE,
    &StorageClass::TYPE,
    &IngressClass::TYPE,
];

/// Whether admission looks at the resource of this name, such as `priorityclasses.scheduling.k8s.io`.
pub(crate) fn looks_at(resource: &str) -> bool {
    LOOKED_AT.iter().any(|kind| GroupResource::new(kind.group, kind.resource).to_string() == resource)
}

/// Reads of the registry for admission.
pub(crate) struct RegistryLookup {
    registry: Weak<Registry>,
    clock: SharedClock,
    authorizer: Arc<dyn Authorizer>,
    charged: Charged,
}

impl RegistryLookup {
    pub(crate) fn new(registry: &Arc<Registry>, clock: &SharedClock, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { registry: Arc::downgrade(registry), clock: Arc::clone(clock), authorizer, charged: Charged::default() }
    }

    fn resource<T: Kind>(&self) -> Option<Arc<Resource>> {
        debug_assert!(looks_at(&GroupResource::new(T::TYPE.group, T::TYPE.resource).to_string()), "{}", T::TYPE.kind);
        self.registry.upgrade()?.resource(T::TYPE.group, T::TYPE.version, T::TYPE.resource)
    }

    /// An object as the cache has it: such a read never waits, and one that would have to finds nothing.
    fn cached<T: Kind + Object>(&self, namespace: &str, name: &str) -> Option<Arc<T>> {
        self.resource::<T>()?.one_at_hand(namespace, name)?.shared()
    }

    async fn live<T: Kind + Object>(&self, namespace: &str, name: &str) -> Result<T, ApiError> {
        let resource = self.resource::<T>().ok_or_else(ApiError::unknown_resource)?;
        let found = resource.get(&server_request(&self.clock, namespace), name, "").await?;
        found.object().downcast_ref::<T>().cloned().ok_or_else(|| ApiError::internal("an object of another kind"))
    }

    /// All objects of a namespace as the cache has them; it fills first where it is new.
    async fn in_namespace<T: Kind + Object>(&self, namespace: &str) -> Result<Vec<Arc<T>>, ApiError> {
        let resource = self.resource::<T>().ok_or_else(ApiError::unknown_resource)?;
        let items = match resource.at_hand(namespace) {
            Some(items) => items,
            None => {
                let options = ListOptions { resource_version: "0".to_owned(), ..ListOptions::default() };
                resource.list(&server_request(&self.clock, namespace), &options).await?.items
            }
        };
        Ok(shared(&items))
    }

    fn all<T: Kind + Object>(&self, namespace: &str) -> Vec<Arc<T>> {
        let items = self.resource::<T>().and_then(|resource| resource.at_hand(namespace));
        shared(&items.unwrap_or_default())
    }
}

fn shared<T: Object>(items: &[Arc<Stored>]) -> Vec<Arc<T>> {
    items.iter().filter_map(|item| item.shared()).collect()
}

#[async_trait]
impl admission::Lookup for RegistryLookup {
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        self.cached("", name)
    }
    async fn live_namespace(&self, name: &str) -> Result<Namespace, ApiError> {
        self.live("", name).await
    }
    fn service_account(&self, namespace: &str, name: &str) -> Option<Arc<ServiceAccount>> {
        self.cached(namespace, name)
    }
    async fn live_service_account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, ApiError> {
        self.live(namespace, name).await
    }
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.cached(namespace, name)
    }
    fn pods(&self, namespace: &str) -> Vec<Arc<Pod>> {
        self.all(namespace)
    }
    fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.cached("", name)
    }
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        self.cached(namespace, name)
    }
    async fn limit_ranges(&self, namespace: &str) -> Result<Vec<Arc<LimitRange>>, ApiError> {
        self.in_namespace(namespace).await
    }
    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError> {
        let cached = self.in_namespace::<ResourceQuota>(namespace).await?;
        Ok(self.charged.newest(cached))
    }
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError> {
        let resource = self.resource::<ResourceQuota>().ok_or_else(ApiError::unknown_resource)?;
        let cx = server_request(&self.clock, &quota.metadata.namespace);
        let name = quota.metadata.name.clone();
        let change = Replace(Box::new(quota));
        let hooks = Hooks { admission: &AdmitAll, track: None };
        let written = resource.update(&cx, &name, Endpoint::Status, &change, &hooks).await?;
        if let Some(quota) = written.item.object().downcast_ref::<ResourceQuota>() {
            self.charged.note(quota);
        }
        Ok(())
    }
    fn priority_classes(&self) -> Vec<Arc<PriorityClass>> {
        self.all("")
    }
    fn runtime_class(&self, name: &str) -> Option<Arc<RuntimeClass>> {
        self.cached("", name)
    }
    async fn live_runtime_class(&self, name: &str) -> Result<RuntimeClass, ApiError> {
        self.live("", name).await
    }
    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        self.all("")
    }
    fn ingress_classes(&self) -> Vec<Arc<IngressClass>> {
        self.all("")
    }
    fn is_allowed(&self, user: &UserInfo, wish: &Wish<'_>) -> bool {
        let attributes = Attributes {
            user: user.clone(),
            verb: wish.verb.to_owned(),
            resource_request: true,
            namespace: wish.namespace.to_owned(),
            group: wish.group.to_owned(),
            version: "*".to_owned(),
            resource: wish.resource.to_owned(),
            name: wish.name.to_owned(),
            ..Attributes::default()
        };
        self.authorizer.authorize(&attributes).decision == Decision::Allow
    }
}
