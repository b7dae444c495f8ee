//! Registering the versions that this server answers for, and keeping them registered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use api_machinery::meta::{DeleteOptions, Preconditions};
use api_machinery::object::{Kind as _, Object};
use api_types::apiextensions_v1::CustomResourceDefinition;
use api_types::apiregistration_v1::APIService;
use async_trait::async_trait;
use client::{Client, ClientError};

use super::registration::{ALWAYS, AT_START, Action, plan};
use super::state::Aggregation;
use crate::cx::ApiCx;
use crate::follow::{Follower, follow};
use crate::hooks::{HookError, PostStartHook};

/// Pause before work that failed is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The hook `kube-apiserver-autoregistration`.
pub(super) struct Controller(pub(super) Arc<Aggregation>);

impl Follower for Controller {
    fn set(&self, _: &Arc<str>, object: &dyn Object) {
        let Some(definition) = object.downcast_ref::<CustomResourceDefinition>() else { return };
        let versions = definition.spec.versions.iter().filter(|own| own.served).map(|own| own.name.clone());
        let served = (definition.spec.group.clone(), versions.collect());
        let definitions = &self.0.registration.definitions;
        definitions.served.lock().insert(definition.metadata.name.clone(), served);
        definitions.changed.notify_one();
    }

    fn gone(&self, _: &str, name: &str) {
        let definitions = &self.0.registration.definitions;
        definitions.served.lock().remove(name);
        definitions.changed.notify_one();
    }

    fn complete(&self) {
        let definitions = &self.0.registration.definitions;
        definitions.is_complete.store(true, Ordering::Release);
        definitions.changed.notify_one();
    }
}

#[async_trait]
impl PostStartHook for Controller {
    fn name(&self) -> &'static str {
        "kube-apiserver-autoregistration"
    }

    async fn run(&self, cx: &Arc<ApiCx>) -> Result<(), HookError> {
        let of = CustomResourceDefinition::TYPE;
        let follower = Arc::new(Self(Arc::clone(&self.0)));
        follow(cx.registry(), (of.group, of.version, of.resource), follower, cx.tasks());
        let (own, client) = (Arc::clone(&self.0), cx.loopback().clone());
        cx.tasks().spawn_cancellable("apiservice-registration", async move { own.register_all(&client).await });
        Ok(())
    }
}

impl Aggregation {
    /// Keeps the APIServices of this server for as long as it runs.
    async fn register_all(&self, client: &Client) {
        let (registration, mut is_first) = (&self.registration, true);
        loop {
            let mut failed = false;
            if self.table.is_complete() {
                let stored: Vec<Arc<APIService>> = self.table.current().all().map(|(own, _)| Arc::clone(own)).collect();
                registration.see(&stored);
                let mut actions = Vec::new();
                if is_first {
                    actions.extend(plan(&stored, &registration.built_in, AT_START));
                }
                if registration.definitions.is_complete.load(Ordering::Acquire) {
                    actions.extend(plan(&stored, &registration.definitions.wanted(), ALWAYS));
                }
                for action in actions {
                    if let Err(error) = action.run(client).await {
                        tracing::debug!(%error, "Registering a version failed; it will be tried again");
                        failed = true;
                    }
                }
                is_first &= failed;
            }
            tokio::select! {
                () = self.table.changed() => {}
                () = registration.definitions.changed.notified() => {}
                () = tokio::time::sleep(RETRY_DELAY), if failed => {}
            }
        }
    }
}

impl Action {
    async fn run(self, client: &Client) -> Result<(), ClientError> {
        let api = client.all::<APIService>();
        let outcome = match self {
            Self::Create(object) => api.create(&object).await.map(drop),
            Self::Update(object) => api.update(&object).await.map(drop),
            Self::Delete(meta) => {
                let preconditions = Some(Preconditions { uid: Some(meta.uid), ..Preconditions::default() });
                let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
                api.delete(&meta.name, &options).await.map(drop)
            }
        };
        match outcome {
            // Another server may have been faster.
            Err(error) if error.is_already_exists() || error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }
}
