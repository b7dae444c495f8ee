//! DefaultStorageClass: a claim that says nothing of its class gets the cluster's default.

use std::cmp::Reverse;

use api_machinery::object::{Kind as _, Object};
use api_machinery::status::ApiError;
use api_types::core_v1::PersistentVolumeClaim;
use api_types::core_v1::constants::BETA_STORAGE_CLASS_ANNOTATION;
use api_types::storage_v1::StorageClass;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "DefaultStorageClass",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[&StorageClass::TYPE],
    configuration: None,
    build: |_| Box::new(DefaultStorageClass),
};

const DEFAULT_MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

struct DefaultStorageClass;

fn is_default(class: &StorageClass) -> bool {
    DEFAULT_MARKS.iter().any(|mark| class.metadata.annotations.get(*mark).is_some_and(|value| value == "true"))
}

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
        if claim.spec.storage_class_name.is_some()
            || claim.metadata.annotations.contains_key(BETA_STORAGE_CLASS_ANNOTATION)
        {
            return Ok(());
        }
        let defaults = cx.lookup.list::<StorageClass>("").into_iter().filter(|class| is_default(class));
        let newest =
            defaults.min_by_key(|class| (Reverse(class.metadata.creation_timestamp), class.metadata.name.clone()));
        claim.spec.storage_class_name = newest.map(|class| class.metadata.name.clone());
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
        class.metadata.annotations.insert(DEFAULT_MARKS[0].into(), default.to_string());
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
