//! NamespaceAutoProvision: a namespace that something is created in is created first, where it is missing.

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::Namespace;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "NamespaceAutoProvision",
    enabled_by_default: false,
    passes: Passes::Mutating,
    reads: &[&Namespace::TYPE],
    configuration: None,
    build: |_| Box::new(NamespaceAutoProvision),
};

struct NamespaceAutoProvision;

#[async_trait]
impl Plugin for NamespaceAutoProvision {
    fn handles(&self, attributes: &Attributes) -> bool {
        let of_namespace = attributes.group.is_empty() && attributes.resource == "namespaces";
        let creates = attributes.operation == Operation::Create && !attributes.dry_run;
        creates && !of_namespace && !attributes.namespace.is_empty()
    }

    async fn mutate(
        &self,
        cx: &Context,
        attributes: &Attributes,
        _: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let name = &attributes.namespace;
        if cx.lookup.get::<Namespace>("", name).is_some() {
            return Ok(());
        }
        match cx.lookup.create_namespace(name).await {
            Err(error) if error.is_forbidden() => Err(error),
            Err(error) if !error.is_already_exists() => Err(attributes.forbidden(error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::ConfigMap;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn what_is_missing_is_created() {
        for (namespace, created, refusal) in [
            ("there", None, None),
            ("missing", Some("missing"), None),
            ("late", None, None),
            ("broken", None, Some("configmaps \"x\" is forbidden: Internal error occurred: no store")),
        ] {
            let mut there = Namespace::default();
            there.metadata.name = "there".into();
            let fixture = Fixture::default().with(vec![there]);
            let attributes = Attributes { namespace: namespace.into(), ..create("", "configmaps") };
            let outcome = fixture.mutate(&ENTRY, &attributes, &mut ConfigMap::default()).await;
            assert_eq!(outcome.err().map(|error| error.message).as_deref(), refusal, "{namespace}");
            assert_eq!(fixture.created.lock().first().map(String::as_str), created, "{namespace}");
        }
    }

    #[test]
    fn a_dry_run_creates_nothing() {
        let attributes = Attributes { namespace: "n".into(), ..create("", "configmaps") };
        assert!(NamespaceAutoProvision.handles(&attributes));
        for other in [
            Attributes { dry_run: true, ..attributes.clone() },
            Attributes { operation: Operation::Update, ..attributes.clone() },
            Attributes { namespace: String::new(), ..attributes.clone() },
            Attributes { resource: "namespaces".into(), ..attributes.clone() },
        ] {
            assert!(!NamespaceAutoProvision.handles(&other), "{other:?}");
        }
    }
}
