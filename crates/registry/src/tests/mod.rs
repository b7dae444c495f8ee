//! The engine end to end on the memory store, with paused time and seeded chance.

mod allocation;
mod deletion;
mod lists;
mod pods;
mod unreadable;
mod values;
mod versions;
mod warnings;
mod watches;
mod writes;

use std::sync::Arc;

use api_machinery::meta::ListOptions;
use api_machinery::object::Object;
use api_types::core_v1::{ConfigMap, Pod};
use base::{Rng, TaskGroup, TokioClock};
use kinds::rules::RuleContext;
use storage::{Memory, MemoryOptions};

use crate::{Registry, RegistryOptions, RequestCx, Resource, Stored};

pub(crate) struct Fixture {
    pub(crate) registry: Arc<Registry>,
    pub(crate) store: Arc<Memory>,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(adjust: impl FnOnce(&mut RegistryOptions)) -> Self {
        let (clock, group) = (TokioClock::shared(), TaskGroup::new("test"));
        let store = Memory::new(MemoryOptions::default(), Arc::clone(&clock), &group);
        let backend = Arc::clone(&store) as Arc<dyn storage::Backend>;
        let mut options = RegistryOptions::new(backend, Arc::clone(&clock), Rng::seeded(1), group.clone());
        adjust(&mut options);
        let registry = Registry::new(options);
        registry.install_built_in();
        registry.ready().await;
        Self { registry, store }
    }

    pub(crate) fn resource(&self, name: &str) -> Arc<Resource> {
        self.registry.resource("", "v1", name).unwrap()
    }

    pub(crate) fn cx(&self, namespace: &str) -> RequestCx {
        let rules = RuleContext { user: "tester".into(), ..self.registry.rule_context() };
        RequestCx { rules, namespace: namespace.into(), dry_run: false }
    }

    pub(crate) fn dry(&self, namespace: &str) -> RequestCx {
        RequestCx { dry_run: true, ..self.cx(namespace) }
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Box<dyn Object> {
    let mut map = ConfigMap::default();
    map.metadata.name = name.into();
    map.metadata.namespace = "default".into();
    map.data.insert("key".into(), value.into());
    Box::new(map)
}

pub(crate) fn pod(name: &str, node: &str) -> Box<dyn Object> {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.metadata.namespace = "default".into();
    pod.spec.node_name = node.into();
    pod.spec.termination_grace_period_seconds = Some(30);
    pod.spec.containers.push(api_types::core_v1::Container {
        name: "main".into(),
        image: "registry.example/app:1".into(),
        ..Default::default()
    });
    Box::new(pod)
}

/// A pod with everything that its kind's rules require.
pub(crate) fn defaulted(fixture: &Fixture, resource: &str, mut object: Box<dyn Object>) -> Box<dyn Object> {
    fixture.resource(resource).rules().set_defaults(&mut *object);
    object
}

pub(crate) fn value(item: &Stored) -> String {
    item.object().downcast_ref::<ConfigMap>().and_then(|map| map.data.get("key")).cloned().unwrap_or_default()
}

pub(crate) fn names(list: &crate::List) -> Vec<String> {
    list.items.iter().map(|item| item.object().meta().name.clone()).collect()
}

pub(crate) fn page(limit: i64, continue_: &str) -> ListOptions {
    ListOptions { limit, continue_: continue_.into(), ..ListOptions::default() }
}
