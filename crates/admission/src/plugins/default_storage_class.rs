//! DefaultStorageClass: a claim that says nothing of its class gets the cluster's default.

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::PersistentVolumeClaim;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;
use component_helpers::volumes::classes;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "DefaultStorageClass",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&StorageClass::TYPE],
    configuration: None,
    build: |_| Box::new(DefaultStorageClass),
};

struct DefaultStorageClass;

#[async_trait]
impl Plugin for DefaultStorageClass {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is("", "persistentvolumeclaims")
    }

    async fn mutate(
        &self,
        cx: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(claim) = object.and_then(|object| object.downcast_mut::<PersistentVolumeClaim>()) else {
            return Ok(());
        };
        if classes::names_class(claim) {
            return Ok(());
        }
        let class = classes::default_class(cx.lookup.list::<StorageClass>(""));
        claim.spec.storage_class_name = class.map(|class| class.metadata.name.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_machinery::time::Time;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    fn class(name: &str, default: bool, at: i64) -> StorageClass {
        let mut class = StorageClass::default();
        class.metadata.name = name.into();
        class.metadata.creation_timestamp = Time::from_unix_seconds(at);
        class.metadata.annotations.insert(classes::DEFAULT_CLASS_ANNOTATIONS[0].into(), default.to_string());
        class
    }

    #[tokio::test]
    async fn the_newest_default_is_taken() {
        let storage_classes = vec![class("old", true, 1), class("new", true, 2), class("other", false, 3)];
        let fixture = Fixture::default().with(storage_classes);
        for (given, expected) in [(None, Some("new")), (Some(""), Some("")), (Some("other"), Some("other"))] {
            let mut claim = PersistentVolumeClaim::default();
            claim.spec.storage_class_name = given.map(str::to_owned);
            for _ in 0..2 {
                fixture.mutate(&ENTRY, &create("", "persistentvolumeclaims"), &mut claim).await.unwrap();
                assert_eq!(claim.spec.storage_class_name.as_deref(), expected);
            }
        }
    }
}
