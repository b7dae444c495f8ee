//! A cluster state to test plugins with.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api_machinery::gvk::{GroupResource, GroupVersionKind};
use api_machinery::object::{Kind, Object};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::ResourceQuota;
use async_trait::async_trait;
use base::{Rng, TokioClock};
use cel::kubernetes::authorizer::{Decision, Question};
use parking_lot::Mutex;

use crate::{
    Attributes, Context, Findings, Lookup, NoRecorder, Operation, ParamResource, PluginEntry, ResourceAttributes,
    Settings, Warnings,
};

#[derive(Clone, Default)]
pub(crate) struct Fixture {
    /// What the cache has, and the store as well unless it knows more.
    pub(super) cached: Vec<(&'static str, Arc<dyn Object>)>,
    /// Objects of which the store knows more than the cache.
    pub(super) stored: Vec<Arc<dyn Object>>,
    /// The quotas whose usage was written.
    pub(super) charged: Arc<Mutex<Vec<ResourceQuota>>>,
    /// What somebody was asked about: verb, place, namespace and name.
    pub(super) wishes: Arc<Mutex<Vec<String>>>,
    /// What everybody may do to which names: verb and name.
    pub(super) allowed: Vec<(&'static str, &'static str)>,
    /// The namespaces that were created.
    pub(super) created: Arc<Mutex<Vec<String>>>,
    /// What files state, for every plugin.
    pub(super) files: Vec<Arc<dyn Object>>,
    /// How often the cache was asked.
    pub(super) lookups: Arc<AtomicUsize>,
}

struct Files(Vec<Arc<dyn Object>>);

impl crate::Manifests for Files {
    fn of_plugin(&self, _: &str) -> Arc<[Arc<dyn Object>]> {
        self.0.clone().into()
    }
}

/// A create of a resource, by nobody in particular.
pub(crate) fn create(group: &str, resource: &str) -> Attributes {
    Attributes {
        operation: Operation::Create,
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        subresource: String::new(),
        namespace: String::new(),
        name: "x".into(),
        user: Arc::default(),
        dry_run: false,
        warnings: Warnings::default(),
        annotations: crate::Annotations::default(),
        findings: Findings::default(),
        kind: GroupVersionKind::default(),
        options: crate::OperationOptions::None,
        deadline: None,
        rounds: crate::Rounds::default(),
    }
}

impl Fixture {
    /// The same with more objects.
    pub(crate) fn with<T: Kind + Object>(mut self, objects: Vec<T>) -> Self {
        self.cached.extend(objects.into_iter().map(|object| (T::TYPE.resource, Arc::new(object) as Arc<dyn Object>)));
        self
    }

    /// The same where files state these.
    pub(crate) fn with_files(mut self, files: Vec<Arc<dyn Object>>) -> Self {
        self.files = files;
        self
    }

    fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<dyn Object>> {
        let is_it = |object: &dyn Object| object.meta().name == name && object.meta().namespace == namespace;
        let found = self.cached.iter().find(|(own, object)| *own == resource && is_it(&**object));
        found.map(|(_, object)| Arc::clone(object))
    }

    /// How often the cache was asked.
    pub(super) fn asked(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    pub(crate) fn context(&self) -> Context {
        Context {
            lookup: Arc::new(self.clone()),
            manifests: Arc::new(Files(self.files.clone())),
            versions: Arc::new(crate::OneVersion),
            callers: crate::webhook::Callers::none(),
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

#[async_trait]
impl Lookup for Fixture {
    fn cached(&self, [_, _, resource]: [&str; 3], namespace: &str, name: &str) -> Option<Arc<dyn Object>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.find(resource, namespace, name)
    }
    fn at_hand(&self, [_, _, resource]: [&str; 3], namespace: &str) -> Option<Vec<Arc<dyn Object>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let is_in = |object: &dyn Object| namespace.is_empty() || object.meta().namespace == namespace;
        let found = self.cached.iter().filter(|(own, object)| *own == resource && is_in(&**object));
        Some(found.map(|(_, object)| Arc::clone(object)).collect())
    }
    fn has_any(&self, [_, _, resource]: [&str; 3]) -> bool {
        self.cached.iter().any(|(own, _)| *own == resource)
    }
    async fn all_filled(&self, place: [&str; 3], namespace: &str) -> Result<Vec<Arc<dyn Object>>, ApiError> {
        Ok(self.all_cached(place, namespace))
    }
    async fn live(&self, place: [&str; 3], namespace: &str, name: &str) -> Result<Arc<dyn Object>, ApiError> {
        let stored = self.stored.iter().find(|object| object.meta().name == name).cloned();
        let resource = GroupResource { group: place[0].to_owned().into(), resource: place[2].to_owned().into() };
        stored.or_else(|| self.find(place[2], namespace, name)).ok_or_else(|| ApiError::not_found(&resource, name))
    }
    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError> {
        (self as &dyn Lookup).list_filled(namespace).await
    }
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError> {
        self.charged.lock().push(quota);
        Ok(())
    }
    fn is_served(&self, _: [&str; 3]) -> bool {
        true
    }
    fn resource_of(&self, kind: &GroupVersionKind) -> Option<ParamResource> {
        let at = |resource: &str, namespaced| Some(ParamResource { resource: resource.to_owned(), namespaced });
        match (&*kind.group, &*kind.version, &*kind.kind) {
            ("", "v1", "Node") => at("nodes", false),
            ("apps", "v1", "ReplicaSet") => at("replicasets", true),
            _ => None,
        }
    }
    async fn decide(&self, _: &Arc<UserInfo>, question: &Question) -> Decision {
        let wanted: (&str, &str) = (&question.verb, &question.name);
        Decision { allowed: self.allowed.contains(&wanted), ..Decision::default() }
    }
    async fn create_namespace(&self, name: &str) -> Result<(), ApiError> {
        match name {
            "late" => Err(ApiError::already_exists(&GroupResource::new("", "namespaces"), name)),
            "broken" => Err(ApiError::internal("no store")),
            _ => {
                self.created.lock().push(name.to_owned());
                Ok(())
            }
        }
    }
    async fn authorize(&self, _: &Arc<UserInfo>, access: &ResourceAttributes<'_>) -> Decision {
        self.wishes.lock().push(format!(
            "{} {}/{}/{}/{} {}/{}",
            access.verb,
            access.group,
            access.version,
            access.resource,
            access.subresource,
            access.namespace,
            access.name
        ));
        let wanted: (&str, &str) = (access.verb, access.name);
        let allowed = self.allowed.contains(&wanted);
        Decision { allowed, reason: if allowed { String::new() } else { "not you".to_owned() }, error: None }
    }
}
