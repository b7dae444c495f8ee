//! NodeDeclaredFeatureValidator: a pod does not change to what needs a feature that its node does not declare (gate
//! `NodeDeclaredFeatures`).

use std::collections::BTreeMap;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{Node, Pod, ResourceRequirements};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "NodeDeclaredFeatureValidator",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&Node::TYPE],
    configuration: None,
    build: |settings| Box::new(NodeDeclaredFeatureValidator { enabled: settings.node_declared_features }),
};

type Needed = fn(&Pod, &Pod) -> bool;

/// Features of nodes, and which changes of a pod need them; in the order of their names.
const FEATURES: [(&str, Needed); 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", |new, old| new.spec.resources != old.spec.resources),
    ("InPlacePodVerticalScalingInitContainers", |new, old| init_resources(new) != init_resources(old)),
];

struct NodeDeclaredFeatureValidator {
    enabled: bool,
}

/// What the init containers that end ask for.
fn init_resources(pod: &Pod) -> BTreeMap<&str, &ResourceRequirements> {
    let ends = pod.spec.init_containers.iter().filter(|own| own.restart_policy.as_deref() != Some("Always"));
    ends.map(|container| (container.name.as_str(), &container.resources)).collect()
}

#[async_trait]
impl Plugin for NodeDeclaredFeatureValidator {
    fn handles(&self, attributes: &Attributes) -> bool {
        let of_pod = attributes.is("", "pods") || attributes.is_sub("", "pods", "resize");
        self.enabled && attributes.operation == Operation::Update && of_pod
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        object: Option<&dyn Object>,
        old: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (Some(object), Some(old)) = (object, old) else { return Ok(()) };
        let (Some(pod), Some(old)) = (object.downcast_ref::<Pod>(), old.downcast_ref::<Pod>()) else { return Ok(()) };
        let name = &pod.spec.node_name;
        if name.is_empty() || pod.metadata.generation == old.metadata.generation {
            return Ok(());
        }
        let mut needed = FEATURES.iter().filter(|(_, needs)| needs(pod, old)).map(|(feature, _)| *feature).peekable();
        if needed.peek().is_none() {
            return Ok(());
        }
        let Some(node) = cx.lookup.get::<Node>("", name) else {
            return Err(attributes.forbidden(format_args!("node {name:?} not found")));
        };
        let declares = |feature: &&str| node.status.declared_features.iter().any(|own| own == feature);
        let missing: Vec<&str> = needed.filter(|feature| !declares(feature)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        let text = format_args!("pod update requires features {missing} which are not available on node {name:?}");
        Err(attributes.forbidden(text))
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Container;

    use super::*;
    use crate::Settings;
    use crate::plugins::testing::{Fixture, create};

    const POD: &str = "InPlacePodLevelResourcesVerticalScaling";
    const INIT: &str = "InPlacePodVerticalScalingInitContainers";

    fn asking(cpu: &str) -> ResourceRequirements {
        let requests = [("cpu".to_owned(), cpu.parse().unwrap())].into();
        ResourceRequirements { requests, ..ResourceRequirements::default() }
    }

    fn pod(node: &str, all: Option<&str>, init: &str, sidecar: &str) -> Pod {
        let mut pod = Pod::default();
        pod.spec.node_name = node.into();
        pod.spec.resources = all.map(asking);
        let container = |name: &str, cpu: &str, policy: Option<&str>| Container {
            name: name.into(),
            resources: asking(cpu),
            restart_policy: policy.map(Into::into),
            ..Container::default()
        };
        pod.spec.init_containers = vec![container("i", init, None), container("s", sidecar, Some("Always"))];
        pod
    }

    fn node(name: &str, features: &[&str]) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.status.declared_features = features.iter().map(|own| (*own).into()).collect();
        node
    }

    #[tokio::test]
    async fn changes_need_what_the_node_declares() {
        let fixture = Fixture::default().with(vec![node("old", &[]), node("half", &[INIT]), node("new", &[INIT, POD])]);
        let lacks = |features: &str, node: &str| {
            Some(format!("pod update requires features {features} which are not available on node {node:?}"))
        };
        for (name, all, init, sidecar, expected) in [
            ("old", Some("1"), "1", "2", None),
            ("old", Some("2"), "2", "1", lacks(&format!("{POD}, {INIT}"), "old")),
            ("half", Some("2"), "2", "1", lacks(POD, "half")),
            ("half", Some("1"), "2", "1", None),
            ("half", None, "1", "1", lacks(POD, "half")),
            ("new", Some("2"), "2", "1", None),
            ("", Some("2"), "2", "1", None),
            ("gone", Some("2"), "1", "1", Some("node \"gone\" not found".to_owned())),
        ] {
            let (mut new, old) = (pod(name, all, init, sidecar), pod(name, Some("1"), "1", "1"));
            for subresource in ["", "resize"] {
                let update =
                    Attributes { operation: Operation::Update, subresource: subresource.into(), ..create("", "pods") };
                new.metadata.generation = 1;
                let outcome = fixture.validate_update(&ENTRY, &update, &new, &old).await;
                let expected = expected.as_ref().map(|text| format!("pods \"x\" is forbidden: {text}"));
                assert_eq!(outcome.err().map(|error| error.message), expected, "{name} {all:?} {init} {sidecar}");
                new.metadata.generation = 0;
                fixture.validate_update(&ENTRY, &update, &new, &old).await.unwrap();
            }
        }
    }

    #[test]
    fn nothing_is_asked_without_the_gate() {
        let off = Settings { node_declared_features: false, ..Settings::default() };
        let update = Attributes { operation: Operation::Update, ..create("", "pods") };
        assert!(!(ENTRY.build)(&off).handles(&update) && (ENTRY.build)(&Settings::default()).handles(&update));
    }
}
