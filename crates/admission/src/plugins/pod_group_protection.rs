//! PodGroupProtection: groups of pods carry a finalizer, so that their controller can keep one in use from going. They
//! are only served behind the gate `GenericWorkload`.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use api_types::scheduling_v1alpha2::GROUP;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "PodGroupProtection",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(PodGroupProtection),
};

const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

struct PodGroupProtection;

#[async_trait]
impl Plugin for PodGroupProtection {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && attributes.is(GROUP, "podgroups")
    }

    async fn mutate(
        &self,
        _: &Context,
        _: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let Some(object) = object else { return Ok(()) };
        let finalizers = &mut object.meta_mut().finalizers;
        if !finalizers.iter().any(|own| own == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_types::scheduling_v1alpha2::PodGroup;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn a_group_is_protected_once() {
        let (fixture, mut group) = (Fixture::default(), PodGroup::default());
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create(GROUP, "podgroups"), &mut group).await.unwrap();
        }
        assert_eq!(group.metadata.finalizers, ["scheduling.k8s.io/podgroup-protection"]);
    }
}
