//! StorageObjectInUseProtection: volumes, claims and classes of attributes carry a finalizer, so that their controllers can keep what is in
//! use from going.

use api_machinery::object::Object;
use api_machinery::status::ApiError;
use async_trait::async_trait;

use crate::{Attributes, Context, Operation, Passes, Plugin, PluginEntry};

pub(super) const ENTRY: PluginEntry = PluginEntry {
    name: "StorageObjectInUseProtection",
    enabled_by_default: true,
    passes: Passes::Mutating,
    reads: &[],
    configuration: None,
    build: |_| Box::new(Protection),
};

struct Protection;

fn finalizer(attributes: &Attributes) -> Option<&'static str> {
    if attributes.is("", "persistentvolumes") {
        Some("kubernetes.io/pv-protection")
    } else if attributes.is("", "persistentvolumeclaims") {
        Some("kubernetes.io/pvc-protection")
    } else if attributes.is("storage.k8s.io", "volumeattributesclasses") {
        Some("kubernetes.io/vac-protection")
    } else {
        None
    }
}

#[async_trait]
impl Plugin for Protection {
    fn handles(&self, attributes: &Attributes) -> bool {
        attributes.operation == Operation::Create && finalizer(attributes).is_some()
    }

    async fn mutate(
        &self,
        _: &Context,
        attributes: &Attributes,
        object: Option<&mut dyn Object>,
        _: Option<&dyn Object>,
    ) -> Result<(), ApiError> {
        let (Some(object), Some(finalizer)) = (object, finalizer(attributes)) else { return Ok(()) };
        let finalizers = &mut object.meta_mut().finalizers;
        if !finalizers.iter().any(|own| own == finalizer) {
            finalizers.push(finalizer.to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use api_types::core_v1::PersistentVolumeClaim;

    use super::*;
    use crate::plugins::testing::{Fixture, create};

    #[tokio::test]
    async fn a_claim_is_protected_once() {
        let (fixture, mut claim) = (Fixture::default(), PersistentVolumeClaim::default());
        for _ in 0..2 {
            fixture.mutate(&ENTRY, &create("", "persistentvolumeclaims"), &mut claim).await.unwrap();
        }
        assert_eq!(claim.metadata.finalizers, ["kubernetes.io/pvc-protection"]);
    }
}
