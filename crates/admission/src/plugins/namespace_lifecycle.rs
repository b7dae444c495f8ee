//! NamespaceLifecycle: nothing is created in a namespace that is missing or on its way out, and the system's own
//! namespaces stay.

use std::collections::VecDeque;
use std::time::Duration;

use api_machinery::field_path::Cause;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use api_types::core_v1::constants::namespace_phase;
use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "NamespaceLifecycle",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(NamespaceLifecycle::default()),
};

/// Namespaces that cannot be deleted.
const IMMORTAL: &[&str] = &["default", "kube-system", "kube-public"];
/// How long a create waits for the cache to hear of a namespace that was created just before.
const CACHE_LAG: Duration = Duration::from_millis(50);

/// How long a deletion is remembered: the cache may show the namespace as living a little longer.
const DELETION_MEMORY: Duration = Duration::from_secs(30);
/// Deletions remembered at once; beyond it the oldest is forgotten.
const MAX_DELETIONS: usize = 100;

#[derive(Default)]
struct NamespaceLifecycle {
    /// Namespaces that a client began to delete, oldest first.
    deletions: Mutex<VecDeque<(String, Instant)>>,
}

impl NamespaceLifecycle {
    fn remember(&self, name: &str, now: Instant) {
        let mut deletions = self.deletions.lock();
        deletions.retain(|(own, since)| own != name && now.duration_since(*since) < DELETION_MEMORY);
        if deletions.len() >= MAX_DELETIONS {
            deletions.pop_front();
        }
        deletions.push_back((name.to_owned(), now));
    }

    fn remembers(&self, name: &str, now: Instant) -> bool {
        let deletions = self.deletions.lock();
        deletions.iter().any(|(own, since)| own == name && now.duration_since(*since) < DELETION_MEMORY)
    }
}

#[async_trait]
impl Plugin for NamespaceLifecycle {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation != Operation::Connect
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        _: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let of_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        let deleting = attributes.operation == Operation::Delete;
        if of_namespace && deleting && IMMORTAL.contains(&attributes.name.as_str()) {
            return Err(attributes.forbidden("this namespace may not be deleted"));
        }
        if of_namespace && deleting {
            self.remember(&attributes.name, cx.clock.monotonic());
        }
        let exempt = attributes.namespace.is_empty() || attributes.resource == "localsubjectaccessreviews";
        if of_namespace || deleting || exempt {
            return Ok(());
        }
        let name = &attributes.namespace;
        let mut phase = phase_in_cache(cx, name);
        if phase.is_none() && attributes.operation == Operation::Create {
            tokio::time::sleep(CACHE_LAG).await;
            phase = phase_in_cache(cx, name);
        }
        let may_lag = |phase: &str| phase == namespace_phase::ACTIVE && self.remembers(name, cx.clock.monotonic());
        let phase = match phase {
            Some(phase) if !may_lag(&phase) => phase,
            _ => cx.lookup.get_live::<Namespace>("", name).await?.status.phase.clone(),
        };
        if attributes.operation == Operation::Create && phase == namespace_phase::TERMINATING {
            return Err(terminating(attributes));
        }
        Ok(())
    }
}

fn phase_in_cache(cx: &Context, name: &str) -> Option<String> {
    cx.lookup.get::<Namespace>("", name).map(|namespace| namespace.status.phase.clone())
}

fn terminating(attributes: &Attributes) -> ApiError {
    let name = &attributes.namespace;
    let text = format!("unable to create new content in namespace {name} because it is being terminated");
    let mut error = attributes.forbidden(text);
    if let Some(details) = &mut error.details {
        details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {name} is being terminated"),
            field: "metadata.namespace".into(),
        });
    }
    error
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use api_types::core_v1::{ConfigMap, Namespace};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn namespace(name: &str, phase: &str) -> Namespace {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        namespace.status.phase = phase.into();
        namespace
    }

    #[tokio::test(start_paused = true)]
    async fn only_living_namespaces_take_new_content() {
        let namespaces = vec![namespace("alive", "Active"), namespace("dying", "Terminating")];
        let fixture = Fixture::default().with(namespaces);
        for (name, expected) in [
            ("alive", None),
            ("dying", Some("because it is being terminated")),
            ("missing", Some("namespaces \"missing\" not found")),
        ] {
            let mut attributes = create("", "configmaps");
            attributes.namespace = name.into();
            let outcome = fixture.mutate(&ENTRY, &attributes, &mut ConfigMap::default()).await;
            match (outcome, expected) {
                (Ok(()), None) => {}
                (Err(error), Some(part)) => assert!(error.message.contains(part), "{}", error.message),
                (outcome, _) => panic!("{name}: {outcome:?}"),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_is_known_before_the_cache_shows_it() {
        let lagging = |stored: &str| {
            let cached = Fixture::default().with(vec![namespace("n", "Active")]);
            Fixture { stored: vec![Arc::new(namespace("n", stored))], ..cached }
        };
        let (plugin, stale) = (NamespaceLifecycle::default(), lagging("Terminating").context());
        let mut create = create("", "configmaps");
        create.namespace = "n".into();
        plugin.mutate(&stale, &create, None, None).await.unwrap();
        let mut delete = super::super::testing::create("", "namespaces");
        (delete.operation, delete.name, delete.namespace) = (Operation::Delete, "n".into(), "n".into());
        plugin.mutate(&stale, &delete, None, None).await.unwrap();
        assert_eq!(plugin.mutate(&stale, &create, None, None).await.unwrap_err().code, 403);
        plugin.mutate(&lagging("Active").context(), &create, None, None).await.unwrap();
        tokio::time::advance(DELETION_MEMORY).await;
        plugin.mutate(&stale, &create, None, None).await.unwrap();
        for index in 0..2 * MAX_DELETIONS {
            delete.name = format!("n{index}");
            plugin.mutate(&stale, &delete, None, None).await.unwrap();
        }
        assert_eq!(plugin.deletions.lock().len(), MAX_DELETIONS);
    }

    #[tokio::test]
    async fn the_systems_namespaces_stay() {
        let fixture = Fixture::default();
        let mut attributes = create("", "namespaces");
        (attributes.operation, attributes.name) = (Operation::Delete, "kube-system".into());
        let error = fixture.mutate(&ENTRY, &attributes, &mut Namespace::default()).await.unwrap_err();
        assert_eq!(error.message, "namespaces \"kube-system\" is forbidden: this namespace may not be deleted");
        attributes.name = "kube-node-lease".into();
        fixture.mutate(&ENTRY, &attributes, &mut Namespace::default()).await.unwrap();
    }
}
