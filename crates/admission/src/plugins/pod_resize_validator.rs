//! PodResizeValidator: a pod does not grow beyond what its node could ever give it, nor on one that cannot resize.

use api_machinery::field_path::Cause;
use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{Node, Pod};
use async_trait::async_trait;
use component_helpers::pod_requests::{amount, requests};

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodResizeValidator",
    enabled_by_default: true,
    passes: Passes::Validating,
    reads: &[&Node::TYPE],
    configuration: None,
    build: |_| Box::new(PodResizeValidator),
};

const OS: &str = "kubernetes.io/os";

struct PodResizeValidator;

/// What the pod asks for that the node does not have at all.
fn missing(pod: &Pod, node: &Node) -> Vec<String> {
    let (wanted, room) = (requests(pod), &node.status.allocatable);
    let mut missing = Vec::new();
    let cpu = (amount(&wanted, "cpu").milli_value(), amount(room, "cpu").milli_value());
    let memory = (amount(&wanted, "memory").value(), amount(room, "memory").value());
    for (name, (requested, allocatable)) in [("cpu", cpu), ("memory", memory)] {
        if requested > allocatable {
            missing.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    missing
}

fn refused(attributes: &Attributes, reason: &str, text: &str) -> ApiError {
    let mut error = attributes.forbidden(text);
    let cause = Cause { reason: reason.to_owned(), message: text.to_owned(), ..Cause::default() };
    error.details.get_or_insert_default().causes.push(cause);
    error
}

#[async_trait]
impl Plugin for PodResizeValidator {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Update && attributes.is_sub("", "pods", "resize")
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
        let Some(node) = cx.lookup.get::<Node>("", name) else {
            return Err(attributes.forbidden(format_args!("node {name:?} not found")));
        };
        if let Some(os) = node.metadata.labels.get(OS).filter(|os| *os != "linux") {
            let text = format!("pod resize is only supported on linux nodes, node {name:?} is {os:?}");
            return Err(refused(attributes, "UnsupportedPlatform", &text));
        }
        let missing = missing(pod, &node);
        if missing.is_empty() {
            return Ok(());
        }
        let text = format!("node didn't have enough allocatable resources: {}", missing.join("; "));
        Err(refused(attributes, "NodeCapacity", &text))
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::quantity::Quantity;
    use api_types::core_v1::{Container, ResourceList};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn amounts(cpu: &str, memory: &str) -> ResourceList {
        [("cpu", cpu), ("memory", memory)].map(|(name, text)| (name.into(), Quantity::parse(text).unwrap())).into()
    }

    fn node(name: &str, os: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = name.into();
        if !os.is_empty() {
            node.metadata.labels.insert(OS.into(), os.into());
        }
        node.status.allocatable = amounts("2", "1Ki");
        node
    }

    fn pod(node: &str, cpu: &str, memory: &str, generation: i64) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.generation = generation;
        pod.spec.node_name = node.into();
        let mut container = Container::default();
        container.resources.requests = amounts(cpu, memory);
        pod.spec.containers.push(container);
        pod
    }

    #[tokio::test]
    async fn pods_do_not_outgrow_their_node() {
        let nodes = vec![node("n1", "linux"), node("old", ""), node("w", "windows")];
        let fixture = Fixture::default().with(nodes);
        let resize = Attributes { operation: Operation::Update, subresource: "resize".into(), ..create("", "pods") };
        let short = "node didn't have enough allocatable resources: ";
        for (node, cpu, memory, generation, expected) in [
            ("n1", "2", "1Ki", 2, None),
            ("old", "2", "1Ki", 2, None),
            ("", "9", "1Ki", 2, None),
            ("n1", "9", "1Ki", 1, None),
            (
                "n1",
                "2001m",
                "1Ki",
                2,
                Some((format!("{short}cpu, requested: 2001, allocatable: 2000"), "NodeCapacity")),
            ),
            (
                "n1",
                "3",
                "2Ki",
                2,
                Some((
                    format!(
                        "{short}cpu, requested: 3000, allocatable: 2000; memory, requested: 2048, allocatable: 1024"
                    ),
                    "NodeCapacity",
                )),
            ),
            (
                "w",
                "1",
                "1Ki",
                2,
                Some((
                    "pod resize is only supported on linux nodes, node \"w\" is \"windows\"".to_owned(),
                    "UnsupportedPlatform",
                )),
            ),
            ("gone", "1", "1Ki", 2, Some(("node \"gone\" not found".to_owned(), ""))),
        ] {
            let (new, old) = (pod(node, cpu, memory, generation), pod(node, "1", "1Ki", 1));
            let outcome = fixture.validate_update(&ENTRY, &resize, &new, &old).await;
            let found = outcome.err().map(|error| {
                let causes = error.details.map(|details| details.causes).unwrap_or_default();
                let reason = causes.last().map(|cause| cause.reason.clone()).unwrap_or_default();
                (error.message, reason)
            });
            let expected =
                expected.map(|(text, reason)| (format!("pods \"x\" is forbidden: {text}"), reason.to_owned()));
            assert_eq!(found, expected, "{node} {cpu} {memory}");
        }
    }
}
