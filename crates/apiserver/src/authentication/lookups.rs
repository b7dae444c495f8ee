//! The objects that credentials depend on, read from the registry: from its caches, and from the store where a cache has
//! nothing, as it may lag behind.

use std::sync::Arc;

use api_types::core_v1::{Secret, ServiceAccount};
use async_trait::async_trait;
use authn::service_account::{BoundObjects, ObjectState, TokenSecrets};
use authn::{LookupError, Secrets};
use component_helpers::legacy_tokens::LAST_USED;
use kinds::rules::Endpoint;
use registry::{AdmitAll, Hooks, Registry, Replace, Stored};

use crate::own_request::server_request;

/// Reads core objects for authenticators.
pub(crate) struct RegistryObjects {
    registry: Arc<Registry>,
}

impl RegistryObjects {
    pub(crate) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<Arc<Stored>>, LookupError> {
        let Some(resource) = self.registry.resource("", "v1", resource) else { return Ok(None) };
        let cx = server_request(resource.rule_context(), namespace);
        for version in ["0", ""] {
            match resource.get(&cx, name, version).await {
                Ok(found) => return Ok(Some(found)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(LookupError(error.message)),
            }
        }
        Ok(None)
    }

    async fn state(&self, resource: &str, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        let found = self.find(resource, namespace, name).await?;
        Ok(found.map(|stored| ObjectState::from(stored.object().meta())))
    }
}

#[async_trait]
impl BoundObjects for RegistryObjects {
    async fn service_account(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.state("serviceaccounts", namespace, name).await
    }
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.state("pods", namespace, name).await
    }
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.state("secrets", namespace, name).await
    }
    async fn node(&self, name: &str) -> Result<Option<ObjectState>, LookupError> {
        self.state("nodes", "", name).await
    }
}

#[async_trait]
impl Secrets for RegistryObjects {
    async fn secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError> {
        let found = self.find("secrets", namespace, name).await?;
        Ok(found.and_then(|stored| stored.shared()))
    }
}

#[async_trait]
impl TokenSecrets for RegistryObjects {
    async fn token_secret(&self, namespace: &str, name: &str) -> Result<Option<Arc<Secret>>, LookupError> {
        Secrets::secret(self, namespace, name).await
    }

    async fn account(&self, namespace: &str, name: &str) -> Result<Option<Arc<ServiceAccount>>, LookupError> {
        let found = self.find("serviceaccounts", namespace, name).await?;
        Ok(found.and_then(|stored| stored.shared()))
    }

    async fn note_use(&self, secret: &Secret, date: &str) {
        let Some(resource) = self.registry.resource("", "v1", "secrets") else { return };
        let cx = server_request(resource.rule_context(), &secret.metadata.namespace);
        let mut noted = secret.clone();
        noted.metadata.labels.insert(LAST_USED.to_owned(), date.to_owned());
        let name = noted.metadata.name.clone();
        // Whoever changed the Secret meanwhile wins; the next use is noted.
        let (change, hooks) = (Replace(Box::new(noted)), Hooks { admission: &AdmitAll, track: None });
        if let Err(error) = resource.update(&cx, &name, Endpoint::Main, &change, &hooks).await {
            tracing::warn!(%error, secret = name, "Noting the use of a token Secret failed");
        }
    }
}
