//! RuntimeClass: a pod takes over what its runtime class costs and on which nodes it runs.

use std::sync::Arc;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Pod;
use api_types::node_v1::{RuntimeClass as Class, Scheduling};
use async_trait::async_trait;

use super::tolerations;
use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "RuntimeClass",
    enabled_by_default: true,
    passes: Passes::Both,
    reads: &[&Class::TYPE],
    configuration: None,
    build: |_| Box::new(RuntimeClass),
};

struct RuntimeClass;

/// The pod's class; nothing where it names none.
async fn class_of(cx: &Context, attributes: &Attributes, pod: &Pod) -> Result<Option<Arc<Class>>, ApiError> {
    let Some(name) = pod.spec.runtime_class_name.as_deref().filter(|name| !name.is_empty()) else { return Ok(None) };
    if let Some(class) = attributes.findings.get::<Class>(name) {
        return Ok(Some(class));
    }
    let class = match cx.lookup.get::<Class>("", name) {
        Some(class) => class,
        // The cache may not have heard of a class that was just made.
        None => match cx.lookup.get_live::<Class>("", name).await {
            Ok(class) => class,
            Err(error) if error.is_not_found() => {
                return Err(attributes.forbidden(format_args!("pod rejected: RuntimeClass \"{name}\" not found")));
            }
            Err(error) => return Err(error),
        },
    };
    attributes.findings.note(name, Arc::clone(&class));
    Ok(Some(class))
}

#[async_trait]
impl Plugin for RuntimeClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is("", "pods")
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_mut::<Pod>()) else { return Ok(()) };
        let Some(class) = class_of(cx, attributes, pod).await? else { return Ok(()) };
        if let Some(overhead) = &class.overhead {
            if !pod.spec.overhead.is_empty() && pod.spec.overhead != overhead.pod_fixed {
                let text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
                return Err(attributes.forbidden(text));
            }
            pod.spec.overhead.clone_from(&overhead.pod_fixed);
        }
        class.scheduling.as_ref().map_or(Ok(()), |scheduling| schedule(attributes, pod, scheduling))
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(pod) = object.and_then(|object| object.downcast_ref::<Pod>()) else { return Ok(()) };
        let class = class_of(cx, attributes, pod).await?;
        match class.as_ref().and_then(|class| class.overhead.as_ref()) {
            Some(overhead) if overhead.pod_fixed != pod.spec.overhead => {
                let text = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
                Err(attributes.forbidden(text))
            }
            None if !pod.spec.overhead.is_empty() => {
                let text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(attributes.forbidden(text))
            }
            _ => Ok(()),
        }
    }
}

/// The nodes of the class become the pod's.
fn schedule(attributes: &Attributes, pod: &mut Pod, scheduling: &Scheduling) -> Result<(), ApiError> {
    for (key, value) in &scheduling.node_selector {
        match pod.spec.node_selector.get(key) {
            Some(own) if own != value => {
                return Err(attributes.forbidden(format_args!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = \
                     {own}"
                )));
            }
            _ => drop(pod.spec.node_selector.insert(key.clone(), value.clone())),
        }
    }
    pod.spec.tolerations = tolerations::merged(&pod.spec.tolerations, &scheduling.tolerations);
    Ok(())
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::Toleration;
    use api_types::node_v1::Overhead;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn fixture() -> Fixture {
        let mut class = Class::default();
        class.metadata.name = "heavy".into();
        let fixed = [("cpu".to_owned(), Quantity::parse("10m").unwrap())].into();
        class.overhead = Some(Overhead { pod_fixed: fixed });
        class.scheduling = Some(Scheduling {
            node_selector: [("kind".to_owned(), "heavy".to_owned())].into(),
            tolerations: vec![Toleration { key: "heavy".into(), ..Toleration::default() }],
        });
        Fixture::default().with(vec![class])
    }

    fn pod(class: &str) -> Pod {
        let mut pod = Pod::default();
        pod.spec.runtime_class_name = Some(class.into());
        pod
    }

    #[tokio::test]
    async fn a_pod_takes_over_cost_and_place() {
        let (fixture, mut pod) = (fixture(), pod("heavy"));
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
            assert_eq!(pod.spec.overhead["cpu"].to_string(), "10m");
            assert_eq!((pod.spec.node_selector.len(), pod.spec.tolerations.len()), (1, 1));
        }
        fixture.validate(&ENTRY, &create("", "pods"), &pod).await.unwrap();
    }

    #[tokio::test]
    async fn a_class_is_looked_up_once_for_a_request() {
        let (fixture, mut pod, attributes) = (fixture(), pod("heavy"), create("", "pods"));
        fixture.mutate(&ENTRY, &attributes, &mut pod).await.unwrap();
        fixture.validate(&ENTRY, &attributes, &pod).await.unwrap();
        assert_eq!(fixture.asked(), 1);
        pod.spec.runtime_class_name = Some("other".into());
        fixture.validate(&ENTRY, &attributes, &pod).await.unwrap_err();
        fixture.validate(&ENTRY, &create("", "pods"), &super::tests::pod("heavy")).await.unwrap_err();
        assert_eq!(fixture.asked(), 3, "another class, and another request");
    }

    #[tokio::test]
    async fn what_does_not_fit_is_refused() {
        let fixture = fixture();
        let mut other = pod("heavy");
        other.spec.overhead.insert("cpu".into(), Quantity::parse("20m").unwrap());
        let mut astray = pod("heavy");
        astray.spec.node_selector.insert("kind".into(), "light".into());
        for (mut pod, expected) in [
            (pod("absent"), "pod rejected: RuntimeClass \"absent\" not found"),
            (other, "Pod's Overhead doesn't match"),
            (astray, "runtimeClass.scheduling.nodeSelector[kind] = heavy; pod.spec.nodeSelector[kind] = light"),
        ] {
            let error = fixture.mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap_err();
            assert_eq!(error.code, 403);
            assert!(error.message.contains(expected), "{}", error.message);
        }
        let mut bare = Pod::default();
        bare.spec.overhead.insert("cpu".into(), Quantity::default());
        let error = fixture.validate(&ENTRY, &create("", "pods"), &bare).await.unwrap_err();
        assert!(error.message.contains("without corresponding RuntimeClass defined Overhead"), "{}", error.message);
    }
}
