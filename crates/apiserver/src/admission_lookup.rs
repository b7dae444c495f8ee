//! The cluster state that admission plugins look at, out of the registry's caches.

use std::sync::{Arc, Weak};

use admission::{ParamResource, ResourceAttributes};
use api_machinery::gvk::{GroupResource, GroupVersionKind};
use api_machinery::meta::ListOptions;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::authentication_v1::UserInfo;
use api_types::core_v1::{Namespace, ResourceQuota};
use async_trait::async_trait;
use authz::{Attributes, Authorizer, Decision};
use cel::kubernetes::authorizer::{self, Question};
use kinds::rules::Endpoint;
use registry::{AdmitAll, Hooks, Registry, Replace, Resource, Stored};

use crate::charged_quotas::Charged;
use crate::own_request::server_request;
use crate::reviews;

/// Whether admission looks at the resource of this name, such as `priorityclasses.scheduling.k8s.io`.
pub(crate) fn looks_at(resource: &str) -> bool {
    let mut kinds = admission::ALL.iter().flat_map(|plugin| plugin.reads);
    kinds.any(|kind| GroupResource::new(kind.group, kind.resource).to_string() == resource)
}

/// Reads of the registry for admission.
pub(crate) struct RegistryLookup {
    registry: Weak<Registry>,
    authorizer: Arc<dyn Authorizer>,
    charged: Charged,
}

impl RegistryLookup {
    pub(crate) fn new(registry: &Arc<Registry>, authorizer: Arc<dyn Authorizer>) -> Self {
        Self { registry: Arc::downgrade(registry), authorizer, charged: Charged::default() }
    }

    fn resource(&self, [group, version, resource]: [&str; 3]) -> Option<Arc<Resource>> {
        self.registry.upgrade()?.resource(group, version, resource)
    }
}

fn objects(items: &[Arc<Stored>]) -> Vec<Arc<dyn Object>> {
    items.iter().map(|item| item.shared_object()).collect()
}

#[async_trait]
impl admission::Lookup for RegistryLookup {
    fn cached(&self, place: [&str; 3], namespace: &str, name: &str) -> Option<Arc<dyn Object>> {
        Some(self.resource(place)?.one_at_hand(namespace, name)?.shared_object())
    }

    fn at_hand(&self, place: [&str; 3], namespace: &str) -> Option<Vec<Arc<dyn Object>>> {
        Some(objects(&self.resource(place)?.at_hand(namespace)?))
    }

    fn has_any(&self, place: [&str; 3]) -> bool {
        let any = self.resource(place).and_then(|resource| resource.has_any_at_hand());
        any.unwrap_or(true)
    }

    async fn all_filled(&self, place: [&str; 3], namespace: &str) -> Result<Vec<Arc<dyn Object>>, ApiError> {
        let resource = self.resource(place).ok_or_else(ApiError::unknown_resource)?;
        if let Some(items) = resource.at_hand(namespace) {
            return Ok(objects(&items));
        }
        let options = ListOptions { resource_version: "0".to_owned(), ..ListOptions::default() };
        Ok(objects(&resource.list(&server_request(resource.rule_context(), namespace), &options).await?.items))
    }

    async fn all_shared(&self, place: [&str; 3]) -> Result<Arc<[Arc<dyn Object>]>, ApiError> {
        match self.resource(place).and_then(|resource| resource.all_at_hand()) {
            Some(all) => Ok(all),
            None => Ok(self.all_filled(place, "").await?.into()),
        }
    }

    async fn live(&self, place: [&str; 3], namespace: &str, name: &str) -> Result<Arc<dyn Object>, ApiError> {
        let resource = self.resource(place).ok_or_else(ApiError::unknown_resource)?;
        let found = resource.get(&server_request(resource.rule_context(), namespace), name, "").await?;
        Ok(found.shared_object())
    }

    async fn quotas(&self, namespace: &str) -> Result<Vec<Arc<ResourceQuota>>, ApiError> {
        let cached = (self as &dyn admission::Lookup).list_filled(namespace).await?;
        Ok(self.charged.newest(cached))
    }
    async fn charge(&self, quota: ResourceQuota) -> Result<(), ApiError> {
        let resource = self.resource(ResourceQuota::TYPE.place()).ok_or_else(ApiError::unknown_resource)?;
        let cx = server_request(resource.rule_context(), &quota.metadata.namespace);
        let name = quota.metadata.name.clone();
        let change = Replace(Box::new(quota));
        let hooks = Hooks { admission: &AdmitAll, track: None };
        let written = resource.update(&cx, &name, Endpoint::Status, &change, &hooks).await;
        let (outcome, shown) = match written {
            Ok(written) => (Ok(()), Some(written.item)),
            // Whoever tries again at once would find the cache as it was.
            Err(error) if error.is_conflict() => (Err(error), resource.get(&cx, &name, "").await.ok()),
            Err(error) => (Err(error), None),
        };
        if let Some(quota) = shown.as_ref().and_then(|item| item.object().downcast_ref::<ResourceQuota>()) {
            self.charged.note(quota);
        }
        outcome
    }

    fn is_served(&self, place: [&str; 3]) -> bool {
        self.resource(place).is_some()
    }

    fn resource_of(&self, kind: &GroupVersionKind) -> Option<ParamResource> {
        let resource = self.registry.upgrade()?.resource_of(kind)?;
        let info = resource.info();
        Some(ParamResource { resource: info.resource.to_owned(), namespaced: info.namespaced })
    }

    async fn decide(&self, user: &Arc<UserInfo>, question: &Question) -> authorizer::Decision {
        let status = reviews::decide(&*self.authorizer, user, question).await;
        let error = Some(status.evaluation_error).filter(|error| !error.is_empty());
        authorizer::Decision { allowed: status.allowed, reason: status.reason, error }
    }

    async fn create_namespace(&self, name: &str) -> Result<(), ApiError> {
        let resource = self.resource(Namespace::TYPE.place()).ok_or_else(ApiError::unknown_resource)?;
        let mut namespace = Namespace::default();
        name.clone_into(&mut namespace.metadata.name);
        resource.rules().set_defaults(&mut namespace);
        let hooks = Hooks { admission: &AdmitAll, track: None };
        resource.create(&server_request(resource.rule_context(), ""), Box::new(namespace), &hooks).await.map(drop)
    }

    async fn authorize(&self, user: &Arc<UserInfo>, access: &ResourceAttributes<'_>) -> authorizer::Decision {
        let version = if access.version.is_empty() { "*" } else { access.version };
        let attributes = Attributes {
            user: Arc::clone(user),
            verb: access.verb.to_owned(),
            resource_request: true,
            namespace: access.namespace.to_owned(),
            group: access.group.to_owned(),
            version: version.to_owned(),
            resource: access.resource.to_owned(),
            subresource: access.subresource.to_owned(),
            name: access.name.to_owned(),
            ..Attributes::default()
        };
        let outcome = self.authorizer.authorize(&attributes).await;
        let allowed = outcome.decision == Decision::Allow;
        authorizer::Decision { allowed, reason: outcome.reason, error: outcome.error }
    }
}
