//! TaintNodesByCondition: a new node takes no pods until its lifecycle controller has seen it ready.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::core_v1::{Node, Taint};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "TaintNodesByCondition",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(TaintNodesByCondition),
};

const NOT_READY: &str = "node.kubernetes.io/not-ready";

struct TaintNodesByCondition;

#[async_trait]
impl Plugin for TaintNodesByCondition {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.is("", "nodes") && attributes.operation == Operation::Create
    }

    async fn mutate(
        &self,
        _: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(node) = object.and_then(|object| object.downcast_mut::<Node>()) else { return Ok(()) };
        let taints = &mut node.spec.taints;
        if !taints.iter().any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule") {
            taints.push(Taint { key: NOT_READY.into(), effect: "NoSchedule".into(), ..Taint::default() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn a_node_starts_tainted_once() {
        let (fixture, mut node) = (Fixture::default(), Node::default());
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "nodes"), &mut node).await.unwrap();
        }
        assert_eq!(node.spec.taints.len(), 1);
    }
}
