//! NamespaceExists: nothing is written in a namespace that is not there.

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "NamespaceExists",
    enabled_by_default: false,
    passes: Passes::Validating,
    reads: &[&Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(NamespaceExists),
};

struct NamespaceExists;

#[async_trait]
impl Plugin for NamespaceExists {
    fn handles(&self, attributes: &Attributes) -> bool {
        let of_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        attributes.operation != Operation::Connect && !of_namespace && !attributes.namespace.is_empty()
    }

    async fn validate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        _: Option<&dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        cx.lookup.namespace(&attributes.namespace).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::{ConfigMap, Namespace};

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn the_namespace_must_be_there() {
        let mut there = Namespace::default();
        there.metadata.name = "there".into();
        let fixture = Fixture::default().with(vec![there]);
        for (namespace, code) in [("there", None), ("gone", Some(404))] {
            let attributes = Attributes { namespace: namespace.into(), ..create("", "configmaps") };
            let outcome = fixture.validate(&ENTRY, &attributes, &ConfigMap::default()).await;
            assert_eq!(outcome.err().map(|error| error.code), code, "{namespace}");
        }
    }
}
