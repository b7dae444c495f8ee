//! ExtendedResourceToleration: pods that ask for extended resources tolerate the taints by which the nodes that have them
//! keep others away.

use std::collections::BTreeSet;

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::{Pod, Toleration};
use async_trait::async_trait;
use component_helpers::resource_names::is_extended;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "ExtendedResourceToleration",
    enabled_by_default: false,
    passes: Passes::Mutating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(ExtendedResourceToleration),
};

struct ExtendedResourceToleration;

#[async_trait]
impl Plugin for ExtendedResourceToleration {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "pods") && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    async fn mutate(
        &self,
        _: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        for resource in extended(pod) {
            tolerate(&mut pod.spec.tolerations, resource);
        }
        Ok(())
    }
}

/// The extended resources that a pod's containers ask for.
fn extended(pod: &Pod) -> BTreeSet<String> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    let asked = containers.flat_map(|container| container.resources.requests.keys());
    asked.filter(|name| is_extended(name)).cloned().collect()
}

/// Adds the toleration; one that is the same but for its time becomes it.
fn tolerate(tolerations: &mut Vec<Toleration>, key: String) {
    let wanted = Toleration { key, operator: "Exists".into(), effect: "NoSchedule".into(), ..Toleration::default() };
    let same = |own: &&mut Toleration| Toleration { toleration_seconds: None, ..(**own).clone() } == wanted;
    match tolerations.iter_mut().find(same) {
        Some(own) => *own = wanted,
        None => tolerations.push(wanted),
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn asking(names: &[&str]) -> Container {
        let mut container = Container::default();
        for name in names {
            container.resources.requests.insert((*name).into(), "1".parse().unwrap());
        }
        container
    }

    #[tokio::test]
    async fn what_is_asked_for_is_tolerated_once() {
        let (fixture, mut pod) = (Fixture::default(), Pod::default());
        pod.spec.containers.push(asking(&["cpu", "example.com/gpu", "node.kubernetes.io/own"]));
        pod.spec.init_containers.push(asking(&["example.com/fpga", "example.com/gpu"]));
        pod.spec.tolerations.push(Toleration { key: "example.com/gpu".into(), ..Toleration::default() });
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
        }
        let shown = |own: &Toleration| format!("{} {} {}", own.key, own.operator, own.effect);
        let all: Vec<String> = pod.spec.tolerations.iter().map(shown).collect();
        assert_eq!(
            all,
            ["example.com/gpu  ", "example.com/fpga Exists NoSchedule", "example.com/gpu Exists NoSchedule"]
        );
    }
}
