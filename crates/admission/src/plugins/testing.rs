//! A cluster state to test plugins with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::gvk::GroupResource;
use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, ServiceAccount};
use api_types::networking_v1::IngressClass;
use api_types::node_v1::RuntimeClass;
use api_types::scheduling_v1::PriorityClass;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;
use base::{Rng, TokioClock};

use crate::{Attributes, Context, Findings, Lookup, NoRecorder, Operation, PluginEntry, Settings, Warnings, Wish};

#[derive(Clone, Default)]
pub(super) struct Fixture {
    pub(super) namespaces: Vec<Namespace>,
    /// Namespaces of which the store knows more than the cache.
    pub(super) stored_namespaces: Vec<Namespace>,
    pub(super) service_accounts: Vec<ServiceAccount>,
    pub(super) pods: Vec<Pod>,
    pub(super) nodes: Vec<Node>,
    pub(super) claims: Vec<PersistentVolumeClaim>,
    pub(super) limit_ranges: Vec<LimitRange>,
    pub(super) quotas: Vec<ResourceQuota>,
    /// The quotas whose usage was written.
    pub(super) charged: Arc<parking_lot::Mutex<Vec<ResourceQuota>>>,
    /// What everybody may do to which names: verb and name.
    pub(super) allowed: Vec<(&'static str, &'static str)>,
    pub(super) priority_classes: Vec<PriorityClass>,
    pub(super) runtime_classes: Vec<RuntimeClass>,
    pub(super) storage_classes: Vec<StorageClass>,
    pub(super) ingress_classes: Vec<IngressClass>,
    /// How often limit ranges and runtime classes were looked up.
    pub(super) lookups: Arc<AtomicUsize>,
}

/// A create of a resource, by nobody in particular.
pub(super) fn create(group: &str, resource: &str) -> Attributes {
    Attributes {
        operation: Operation::Create,
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        subresource: String::new(),
        namespace: String::new(),
        name: "x".into(),
        user: UserInfo::default(),
        dry_run: false,
        warnings: Warnings::default(),
        findings: Findings::default(),
    }
}

impl Fixture {
    /// How often limit ranges and runtime classes were looked up.
    pub(super) fn asked(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    pub(super) fn context(&self) -> Context {
        Context {
            lookup: Arc::new(self.clone()),
            clock: TokioClock::shared(),
            rng: Rng::seeded(1),
            recorder: Arc::new(NoRecorder),
        }
    }

    pub(super) async fn mutate(
        &self,
        entry: &PluginEntry,
        attributes: &Attributes,
        object: &mut dyn Object,
    ) -> Result<(), ApiError> {
        let plugin = (entry.build)(&Settings::default());
        assert!(plugin.handles(attributes), "{attributes:?}");
        plugin.mutate(&self.context(), attributes, Some(object), None).await
    }

    pub(super) async fn validate_update(
        &self,
        entry: &PluginEntry,
        attributes: &Attributes,
        object: &dyn Object,
        old: &dyn Object,
    ) -> Result<(), ApiError> {
        let plugin = (entry.build)(&Settings::default());
        assert!(plugin.handles(attributes), "{attributes:?}");
        plugin.validate(&self.context(), attributes, Some(object), Some(old)).await
    }

    pub(super) async fn validate(
        &self,
        entry: &PluginEntry,
        attributes: &Attributes,
        object: &dyn Object,
    ) -> Result<(), ApiError> {
        let plugin = (entry.build)(&Settings::default());
        assert!(plugin.handles(attributes), "{attributes:?}");
        plugin.validate(&self.context(), attributes, Some(object), None).await
    }
}

fn named<T: Object + Clone>(all: &[T], namespace: &str, name: &str) -> Option<Arc<T>> {
    all.iter().find(|one| one.meta().name == name && one.meta().namespace == namespace).cloned().map(Arc::new)
}

fn shared<T: Clone>(all: &[T]) -> Vec<Arc<T>> {
    all.iter().cloned().map(Arc::new).collect()
}

fn missing(resource: &'static str, name: &str) -> ApiError {
    ApiError::not_found(&GroupResource::new("", resource), name)
}

#[async_trait]
impl Lookup for Fixture {
    fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        named(&self.namespaces, "", name)
    }
    async fn live_namespace(&self, name: &str) -> Result<Namespace, ApiError> {
        let stored = named(&self.stored_namespaces, "", name);
        stored.or_else(|| self.namespace(name)).map(|found| (*found).clone()).ok_or_else(|| missing("namespaces", name))
    }
    fn service_account(&self, namespace: &str, name: &str) -> Option<Arc<ServiceAccount>> {
        named(&self.service_accounts, namespace, name)
    }
    async fn live_service_account(&self, namespace: &str, name: &str) -> Result<ServiceAccount, ApiError> {
        let found = self.service_account(namespace, name);
        found.map(|found| (*found).clone()).ok_or_else(|| missing("serviceaccounts", name))
    }
    fn pod(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        named(&self.pods, namespace, name)
    }
    fn pods(&self, namespace: &str) -> Vec<Arc<Pod>> {
        shared(&self.pods).into_iter().filter(|pod| pod.metadata.namespace == namespace).collect()
    }
    fn node(&self, name: &str) -> Option<Arc<Node>> {
        named(&self.nodes, "", name)
    }
    fn claim(&self, namespace: &str, name: &str) -> Option<Arc<PersistentVolumeClaim>> {
        named(&self.claims, namespace, name)
    }
    async fn limit_ranges(&self, namespace: &str) -> Result<Vec<Arc<LimitRange>>, ApiError> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        Ok(shared(&self.limit_ranges).into_iter().filter(|own| own.metadata.namespace == namespace).collect())
    }
    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError> {
        Ok(shared(&self.quotas).into_iter().filter(|own| own.metadata.namespace == namespace).collect())
    }
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError> {
        self.charged.lock().push(quota);
        Ok(())
    }
    fn priority_classes(&self) -> Vec<Arc<PriorityClass>> {
        shared(&self.priority_classes)
    }
    fn runtime_class(&self, name: &str) -> Option<Arc<RuntimeClass>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        named(&self.runtime_classes, "", name)
    }
    async fn live_runtime_class(&self, name: &str) -> Result<RuntimeClass, ApiError> {
        let found = named(&self.runtime_classes, "", name);
        found.map(|found| (*found).clone()).ok_or_else(|| missing("runtimeclasses", name))
    }
    fn storage_classes(&self) -> Vec<Arc<StorageClass>> {
        shared(&self.storage_classes)
    }
    fn ingress_classes(&self) -> Vec<Arc<IngressClass>> {
        shared(&self.ingress_classes)
    }
    fn is_allowed(&self, _: &UserInfo, wish: &Wish<'_>) -> bool {
        let wanted: (&str, &str) = (wish.verb, wish.name);
        self.allowed.contains(&wanted)
    }
}
