//! PodTopologyLabels: a pod learns the zone and the region of its node by its own labels, when it is bound to the node
//! or made on it.

use std::collections::BTreeMap;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::{Binding, Node, Pod};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodTopologyLabels",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&Node::TYPE],
    configuration: None,
    build: |settings| Box::new(PodTopologyLabels { enabled: settings.topology_labels }),
};

const COPIED: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

struct PodTopologyLabels {
    enabled: bool,
}

/// Copies the labels of a node; one that nobody knows has none.
fn copy(cx: &Context, node: &str, labels: &mut BTreeMap<String, String>) {
    let Some(node) = cx.lookup.get::<Node>("", node) else { return };
    let found = COPIED.into_iter().filter_map(|key| node.metadata.labels.get_key_value(key));
    labels.extend(found.map(|(key, value)| (key.clone(), value.clone())));
}

#[async_trait]
impl Plugin for PodTopologyLabels {
    fn handles(&self, attributes: &Attributes) -> bool {
        let is_pod = attributes.is("", "pods") || attributes.is_sub("", "pods", "binding");
        self.enabled && attributes.operation == Operation::Create && is_pod
    }

    async fn mutate(
        &self,
        cx: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        if let Some(binding) = object.downcast_mut::<Binding>() {
            if binding.target.kind == "Node" {
                copy(cx, &binding.target.name, &mut binding.metadata.labels);
            }
        } else if let Some(pod) = object.downcast_mut::<Pod>()
            && !pod.spec.node_name.is_empty()
        {
            copy(cx, &pod.spec.node_name, &mut pod.metadata.labels);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::Node;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn fixture() -> Fixture {
        let mut node = Node::default();
        node.metadata.name = "n1".into();
        let labels = [(COPIED[0], "a"), (COPIED[1], "eu"), ("kubernetes.io/hostname", "n1")];
        node.metadata.labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Fixture::default().with(vec![node])
    }

    fn shown(labels: &BTreeMap<String, String>) -> String {
        labels
            .iter()
            .map(|(key, value)| format!("{}={value}", key.rsplit('/').next().unwrap()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[tokio::test]
    async fn pods_learn_where_they_are() {
        for (node, own, expected) in [
            ("n1", "", "region=eu zone=a"),
            ("n1", "b", "region=eu zone=a"),
            ("n2", "b", "zone=b"),
            ("", "b", "zone=b"),
        ] {
            let own: BTreeMap<String, String> = Some(own)
                .filter(|own| !own.is_empty())
                .map(|own| (COPIED[0].to_owned(), own.to_owned()))
                .into_iter()
                .collect();
            let mut pod = Pod::default();
            (pod.spec.node_name, pod.metadata.labels) = (node.to_owned(), own.clone());
            let mut binding = Binding::default();
            (binding.target.kind, binding.target.name) = ("Node".to_owned(), node.to_owned());
            binding.metadata.labels = own;
            let to_pod = Attributes { subresource: "binding".into(), ..create("", "pods") };
            for _ in 0..2 {
                fixture().mutate(&ENTRY, &create("", "pods"), &mut pod).await.unwrap();
                fixture().mutate(&ENTRY, &to_pod, &mut binding).await.unwrap();
                assert_eq!(shown(&pod.metadata.labels), expected, "{node}");
                assert_eq!(shown(&binding.metadata.labels), expected, "{node}");
            }
        }
        let mut elsewhere = Binding::default();
        (elsewhere.target.kind, elsewhere.target.name) = ("Machine".to_owned(), "n1".to_owned());
        let to_pod = Attributes { subresource: "binding".into(), ..create("", "pods") };
        fixture().mutate(&ENTRY, &to_pod, &mut elsewhere).await.unwrap();
        assert!(elsewhere.metadata.labels.is_empty());
    }

    #[test]
    fn nothing_is_copied_without_the_gate() {
        let off = crate::Settings { topology_labels: false, ..crate::Settings::default() };
        let pods = create("", "pods");
        assert!(!(ENTRY.build)(&off).handles(&pods) && (ENTRY.build)(&crate::Settings::default()).handles(&pods));
    }
}
