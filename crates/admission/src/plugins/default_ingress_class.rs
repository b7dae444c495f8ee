//! DefaultIngressClass: an Ingress that says nothing of its class gets the cluster's default.

use std::cmp::Reverse;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::networking_v1::{Ingress, IngressClass};
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "DefaultIngressClass",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&IngressClass::TYPE],
    configuration: None,
    build: |_| Box::new(DefaultIngressClass),
};

/// Where the class of an Ingress was before it had a field.
const OWN_CLASS: &str = "kubernetes.io/ingress.class";
const DEFAULT_MARK: &str = "ingressclass.kubernetes.io/is-default-class";

struct DefaultIngressClass;

fn is_default(class: &IngressClass) -> bool {
    class.metadata.annotations.get(DEFAULT_MARK).is_some_and(|value| value == "true")
}

#[async_trait]
impl Plugin for DefaultIngressClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is("networking.k8s.io", "ingresses")
    }

    async fn mutate(
        &self,
        cx: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(ingress) = object.and_then(|object| object.downcast_mut::<Ingress>()) else { return Ok(()) };
        if ingress.spec.ingress_class_name.is_some() || ingress.metadata.annotations.contains_key(OWN_CLASS) {
            return Ok(());
        }
        let defaults = cx.lookup.list::<IngressClass>("").into_iter().filter(|class| is_default(class));
        let newest =
            defaults.min_by_key(|class| (Reverse(class.metadata.creation_timestamp), class.metadata.name.clone()));
        ingress.spec.ingress_class_name = newest.map(|class| class.metadata.name.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn class(name: &str, mark: &str, at: i64) -> IngressClass {
        let mut class = IngressClass::default();
        class.metadata.name = name.into();
        class.metadata.creation_timestamp = Time::from_unix_seconds(at);
        class.metadata.annotations.insert(DEFAULT_MARK.into(), mark.into());
        class
    }

    #[tokio::test]
    async fn the_newest_default_is_taken() {
        let all = [class("old", "true", 1), class("b", "true", 2), class("a", "true", 2), class("other", "yes", 3)];
        let cases = [
            (&all[..], None, false, Some("a")),
            (&all[..1], None, false, Some("old")),
            (&all[3..], None, false, None),
            (&[], None, false, None),
            (&all[..], Some("other"), false, Some("other")),
            (&all[..], None, true, None),
        ];
        for (classes, given, annotated, expected) in cases {
            let fixture = Fixture::default().with(classes.to_vec());
            let mut ingress = Ingress::default();
            ingress.spec.ingress_class_name = given.map(str::to_owned);
            if annotated {
                ingress.metadata.annotations.insert(OWN_CLASS.into(), "nginx".into());
            }
            for _ in 0..2 {
                fixture.mutate(&ENTRY, &create("networking.k8s.io", "ingresses"), &mut ingress).await.unwrap();
                assert_eq!(ingress.spec.ingress_class_name.as_deref(), expected, "{given:?} {annotated}");
            }
        }
    }
}
